// SPDX-License-Identifier: Apache-2.0
// The algorithms that a GPU library may choose for a convolution, and what each takes at best on a board. One file a
// family; docs/kernel_prices.md draws them and says where the constants come from.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "prices/convolution_shape.hpp"

namespace rehearse::prices {

/// How a library's dense layers in f32 read operands whose rows lie k values apart.
enum class Reads {
    contiguous,   // kernels that turn them into whole lines
    strided_odd,  // a sector of each row at a time, unless two of the three sizes are multiples of 64 (P4)
    strided       // a sector of each row at a time (P100)
};

/// Which tiles a library has for batches of products in f32: by the names of the kernels that ran, few of those that it
/// has for single ones, and the same on all boards of a generation.
enum class BatchTiles { any, pascal, volta, turing, ampere };

/// Whose libraries a board runs: cuBLAS and cuDNN, or rocBLAS.
enum class Library { cuda, rocm };

/// What the families need to know of a board: its data sheet, not its chip's.
struct Board {
    FlopRate peak;        // of the type, at the clock that the board's power sustains
    Bandwidth bandwidth;  // of the data sheet
    double processors = 1;
    Bytes element{4};
    bool small_image_blocks = false;  // libraries have fused Winograd kernels for blocks of several small images
    // Clocks over that of `peak`: before the power limit acts, and under dense products of real values, which take more
    // power than the zeros that `peak` is for.
    double rested = 1, loaded = 1;
    Reads reads = Reads::contiguous;
    Library library = Library::cuda;
    BatchTiles batch_tiles = BatchTiles::any;
    // Of multiply-adds outside of matrix units, where `peak` is theirs; 0: it is not.
    FlopRate lanes{};
};

/// The clock that a board sustains under dense arithmetic, as a share of its boost clock. Power grows with clock and
/// the square of voltage, which grows with the clock too: about clock^2.5. A board with less than 16 W a TFLOP/s of
/// f32 (chips of 16 and 12 nm; the T4 has 8.6, the P4 13.8) runs as fast as its limit allows.
/// `energy`: of a multiply-add on the chip's process, over that of 16 and 12 nm.
double sustained_clock(double watts, FlopRate peak_f32, double energy = 1);
/// The same under dense products of values that are not zeros: every bit that flips takes power, and below the lowest
/// voltage only the clock gives way. It takes 17.6 W a TFLOP/s at the boost clock on chips of 16 and 12 nm.
double loaded_clock(double watts, FlopRate peak_f32, double energy = 1);
/// 0.335 on 4 and 5 nm (the L4's 72 W hold two fifths of its boost clock), 0.65 between (assumed), 1 from 12 nm.
double energy_of(double nanometres);

/// What one family would take, and how it fills the board.
struct FamilyTime {
    Seconds time;
    double blocks = 1;  // of work, dealt out to the processors
    double waste = 1;   // multiplied over wanted results, 1 or more: what rounding to blocks adds
};

struct Family {
    std::string_view name;
    std::optional<FamilyTime> (*time)(const ConvolutionShape&, const Board&);  // nothing: not for this shape
};
std::optional<FamilyTime> winograd_fused(const ConvolutionShape& shape, const Board& board);
std::optional<FamilyTime> winograd_transformed(const ConvolutionShape& shape, const Board& board);
std::optional<FamilyTime> implicit_gemm(const ConvolutionShape& shape, const Board& board);
std::optional<FamilyTime> fourier(const ConvolutionShape& shape, const Board& board);
std::optional<FamilyTime> direct(const ConvolutionShape& shape, const Board& board);
std::optional<FamilyTime> grouped(const ConvolutionShape& shape, const Board& board);

/// The gradient of the weights where k is cut between samples and nowhere else: not in families(), as it is what a
/// library does that has nothing better. Nothing for other passes, and for groups.
std::optional<FamilyTime> gradient_by_sample(const ConvolutionShape& shape, const Board& board);

/// All of them; the index of a family is its place here.
std::span<const Family> families();
/// Those that convolutions without groups were seen to run by: all but direct and grouped kernels.
inline constexpr std::size_t measured_families[] = {0, 1, 2, 3};

/// Every family's time, and which is the least.
struct LibraryChoice {
    std::vector<std::optional<FamilyTime>> times;  // beside families()
    std::size_t chosen = 0;
    const FamilyTime& best() const { return *times[chosen]; }
    /// Three times the logarithm of how far a family is behind the best, as a feature: beyond a factor of e it plays no
    /// part.
    double behind(std::size_t family) const;
    std::string_view name() const { return families()[chosen].name; }
};
LibraryChoice library_choice(const ConvolutionShape& shape, const Board& board);

/// Seconds of `blocks` blocks of work, each `flops`, two of which a processor has at a time; `share` is what a full
/// processor reaches of its peak. A last wave of at most one block a processor takes less than a full one.
Seconds in_waves(double blocks, Flops flops, double share, const Board& board);
/// Bytes of so many values at the bandwidth that kernels reach.
Seconds moved(double values, const Board& board);

}  // namespace rehearse::prices
