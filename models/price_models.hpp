// SPDX-License-Identifier: Apache-2.0
// The price models that are built into the binary: names in, measured kernels with what interpolates them out. Their
// tables are calibrate/deepbench/*.csv, learned by `rehearse validate --set deepbench --learn`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "prices/price_model.hpp"

namespace rehearse::models {

/// One kind and type of one model, with what the tables say of it beyond MeasuredKernels.
struct ShippedKernels {
    std::string model;                        // "v100"
    std::string device, precision, snapshot;  // as DeepBench names them
    std::string family;                       // devices that share one covariance: gpu, tensor, knl
    bool teaches = true;                      // whether the family's covariance was learned from it
    Seconds launch{};  // of one kernel
    MeasuredKernels kernels;
};
/// The device that they were measured on, by its data sheet and the whole of its price model.
DeviceClass device_of(const ShippedKernels& kernels);
/// All of them, or those of one model.
std::vector<ShippedKernels> shipped_kernels(std::string_view model = "");

std::vector<std::string> price_models();
/// InputError when there is no such model.
std::shared_ptr<const PriceModel> load_price_model(std::string_view name);

/// A device that was not measured itself: as `like`, in shares of its own peak (times `fraction`) and bandwidth.
struct Likeness {
    std::string like;
    std::int64_t processors = 0;  // 0: as many
    double fraction = 1;          // of what `like` reaches of its peak
    double product_fraction = 1;  // the same of convolutions that no transform fits: may_transform
    double error = 0;             // of the price, beside that of `like`: relative, one standard deviation
    std::string source;
};
/// Of the types whose peak the device has. InputError as load_price_model.
std::shared_ptr<const PriceModel> transferred_price_model(const Likeness& likeness, const DeviceClass& device);

/// `model` (or none) with the kernels that were measured on this very board, which come first where they know a
/// problem; or, where `board` is what a data sheet says ("108 processors, 400 W, 7 nm"), with convolutions of other
/// boards. InputError when no kernels of such a board are built in.
std::shared_ptr<const PriceModel> with_board(const std::shared_ptr<const PriceModel>& model, std::string_view board,
                                             const DeviceClass& device = {});

/// The text of a table that is built in.
std::string_view kernel_file(std::string_view name);
/// What a built-in table of covariances says of a family and kind.
struct LearnedExperts {
    std::vector<Expert> experts;
    double band = 1;
};
LearnedExperts learned_experts(std::string_view name, std::string origin, const std::string& family,
                               const std::string& kind);

/// covariance.csv, from the experts of one kernel set a family and kind.
std::string covariance_table(const std::vector<ShippedKernels>& learned);

}  // namespace rehearse::models
