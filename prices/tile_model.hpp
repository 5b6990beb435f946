// SPDX-License-Identifier: Apache-2.0
// Kernels of transformers on a GPU of which none were measured: products as tiles dealt out to its processors in waves,
// the rest by the bytes that it moves, none of them faster than the host issues them (docs/transformer_prices.md). The
// figures stand in the machine file, each with its source.
#pragma once

#include <optional>
#include <vector>

#include "core/machine.hpp"
#include "prices/kernel_point.hpp"
#include "prices/prices.hpp"

namespace rehearse {

/// A product {m, n} = {m, k} x {k, n} is cut into tiles of 256 x 128 values or less, one a processor at a time; the
/// last wave of tiles takes as long as a full one. k may be cut, too: the parts are then added up in memory.
/// Large: the figures of two tables, [device.tiles] of the chip and [software], by their names there.
struct TileModel {
    Sourced<double> processors;  // streaming multiprocessors
    Sourced<double> large_tile;  // share of the peak that a full wave of tiles of 256 x 128 reaches at a long k
    Sourced<double> small_tile;  // speed of tiles of 128 x 128 over that
    Sourced<double> depth;       // values of k in whose time a tile is begun and stored
    Sourced<double> unaligned;   // slowdown where rows do not begin at multiples of 16 bytes (Tensor Cores' loads)
    Sourced<double> memory;      // share of the memory bandwidth that kernels reach
    // Of the software (core/machine.hpp).
    Sourced<double> elementwise_passes, score_passes, masked_passes, loss_passes;
    Sourced<Seconds> issue;
    Sourced<double> dense_kernels, attention_kernels, loss_kernels, mixture_kernels;
    FusedKernel attention_kernel = FusedKernel::library;
    ModulePasses modules;
    bool issues_ahead = false;
    /// Comes before the device's price model where both know a problem: the model was transferred from another chip.
    bool before_model = false;
    double error = 0;  // relative error of a price, one standard deviation
};

/// The figures of the chip with those of the software.
TileModel with_software(TileModel chip, const Software& software, Sourced<Seconds> launch);

/// Whether its transformers are priced by tiles, which were fitted on whole training steps, and not by measured
/// products.
bool fitted_on_steps(const DeviceClass& device);

/// Whether its software decides about some of its prices.
bool has_tiles(const Machine& machine);

/// Of 16-bit operators of transformers, of attention, stacks of products, losses and what is done to each value of rows
/// of tokens in f32 as well, and of updates; nothing for convolutions, elementwise operators of images and what else is
/// not known here.
std::optional<Price> tile_price(const Problem& problem, const DeviceClass& device);

/// What the host takes to issue a pass of an operator under the software of a device that is priced by tiles, whether
/// tiles know its price or not; nothing on other devices.
Seconds issue_time(const Problem& problem, const DeviceClass& device);

/// The sums of gradients that follow `kernel` (gradient_sums) without those that are in prices already: passes over
/// memory that were fitted on whole steps of transformers contain them, that of the kernel or that of the sum.
std::vector<Problem> sums_beside(const Problem& kernel, std::vector<Problem> sums, const DeviceClass& device);

/// Seconds of a product's tiles, wave by wave, where memory keeps up with them.
Seconds tiles_time(const ProductSizes& sizes, std::int64_t count, const TileModel& model, const DeviceClass& device,
                   DataType type);

/// Seconds of a product on the device, without the host: its tiles or what it moves, whichever is longer.
Seconds product_time(const ProductSizes& sizes, std::int64_t count, const TileModel& model, const DeviceClass& device,
                     DataType type);

}  // namespace rehearse
