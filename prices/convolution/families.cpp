// SPDX-License-Identifier: Apache-2.0
#include "prices/convolution/families.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"

namespace rehearse::prices {

namespace {

constexpr double full_power = 16;       // W a TFLOP/s that the boost clock takes
constexpr double clock_of_power = 0.4;  // clock ~ power^0.4
constexpr double blocks_at_a_time = 2;  // 256 threads of 128 registers each: two fit into a processor's 65,536
constexpr double lone_block = 0.641;    // time of a block that has a processor to itself, over that of two
constexpr double memory_share = 0.481;  // of the bandwidth, by kernels that read overlapping tiles

constexpr std::array all{Family{"winograd", winograd_fused},
                         Family{"winograd not fused", winograd_transformed},
                         Family{"implicit gemm", implicit_gemm},
                         Family{"fft", fourier},
                         Family{"direct", direct},
                         Family{"grouped", grouped}};

}  // namespace

double energy_of(double nanometres) { return nanometres >= 12 ? 1 : nanometres > 5 ? 0.65 : 0.335; }

double sustained_clock(double watts, FlopRate peak_f32, double energy) {
    return std::min(1.0, std::pow(watts / (peak_f32.value * 1e-12) / (full_power * energy), clock_of_power));
}

double loaded_clock(double watts, FlopRate peak_f32, double energy) {
    constexpr double all_power = 17.6, clock_of_loaded = 1.055;
    return std::min(1.0, std::pow(watts / (peak_f32.value * 1e-12) / (all_power * energy), clock_of_loaded));
}

std::span<const Family> families() { return all; }

double LibraryChoice::behind(std::size_t family) const {
    return times[family] ? 3 * std::min(1.0, std::log(times[family]->time / best().time)) : 3.0;
}

LibraryChoice library_choice(const ConvolutionShape& shape, const Board& board) {
    LibraryChoice choice;
    const FamilyTime* least = nullptr;
    for (const Family& family : all) choice.times.push_back(family.time(shape, board));
    for (std::size_t i = 0; i < choice.times.size(); ++i) {
        if (!choice.times[i] || (least != nullptr && least->time <= choice.times[i]->time)) continue;
        least = &*choice.times[i];
        choice.chosen = i;
    }
    require(least != nullptr, "some family can do every convolution");
    return choice;
}

Seconds in_waves(double blocks, Flops flops, double share, const Board& board) {
    const double waves = blocks / (blocks_at_a_time * board.processors), full = std::floor(waves), rest = waves - full;
    double last = 0;
    if (rest > 0) last = rest * blocks_at_a_time <= 1 ? lone_block : 1;
    return (full + last) * blocks_at_a_time * (flops / (board.peak * (share / board.processors)));
}

Seconds moved(double values, const Board& board) { return values * board.element / (board.bandwidth * memory_share); }

}  // namespace rehearse::prices
