// SPDX-License-Identifier: Apache-2.0
#include "prices/convolution_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "prices/chip_kernels.hpp"
#include "prices/convolution/families.hpp"
#include "prices/price_model.hpp"
#include "prices/tile_model.hpp"

namespace rehearse {

namespace {

struct Beyond {
    double times, spread;  // the bound; one standard deviation of the logarithm
    std::string_view source;
};

// What the steps of ResNeXt-101 (32 x 4d, PyTorch and TensorFlow) and EfficientNet B0 and B4 (TensorFlow 2) take beyond
// all other layers' prices on one V100 and one A100, in f32, TF32 and f16, is 1 to 7 times the bound of their grouped
// convolutions, and about as often below this as above.
constexpr Beyond of_groups{2.5, 0.7, "as networks with groups on V100 and A100 (NVIDIA DeepLearningExamples)"};
// DeepBench's convolutions of all sorts and passes over the same bound: on eleven GPUs in f32 medians of 0.9 to 1.4 and
// a standard deviation of 0.3 to 0.8, in f16 on matrix units (V100, T4) medians of 1.7 and 2.0, with strides 3.4, and
// up to 30.
constexpr Beyond of_lanes{1.2, 0.45, "as DeepBench's convolutions in f32 on ten GPUs"};
constexpr Beyond of_matrix_units{2.2, 0.7, "as DeepBench's convolutions in f16 on V100 and T4"};
// DeepBench's P100 in "fp16_in_fp32_math": half the bytes, and of its kernels some fall back to slow ones.
constexpr Beyond of_halves{1.2, 0.7, "as DeepBench's convolutions in f32 on ten GPUs, computed in f32"};

// Streaming multiprocessors; nothing where no table and no data sheet says how many there are.
std::optional<double> processors_of(const DeviceClass& device) {
    if (device.tiles != nullptr) return device.tiles->processors.value;
    if (device.model == nullptr) return std::nullopt;
    const auto known = std::ranges::find_if(device.model->kernels(), [](const auto& k) { return !k.sheet.host; });
    if (known == device.model->kernels().end()) return std::nullopt;
    return static_cast<double>(known->sheet.processors);
}

std::optional<prices::Board> board_of(DataType type, const DeviceClass& device) {
    const auto peak = device.peak.find(type), lanes = device.peak.find(DataType::f32);
    const std::optional<double> processors = processors_of(device);
    if (device.host || !processors || peak == device.peak.end() || lanes == device.peak.end()) return std::nullopt;
    if (!(device.memory_bandwidth.value.value > 0)) return std::nullopt;
    prices::Board board;
    board.peak = peak->second.value;
    // Sums in f16 are none that frameworks ask for: without matrix units f16 is read, and computed in f32.
    if (has_matrix_units(device, type))
        board.lanes = lanes->second.value;
    else
        board.peak = std::min(board.peak, lanes->second.value);
    board.bandwidth = device.memory_bandwidth.value;
    board.processors = *processors;
    board.element = size_of(type);
    return board;
}

const Beyond& beyond_of(DataType type, const prices::Board& board) {
    if (board.lanes.value > 0) return of_matrix_units;
    return size_of(type) < size_of(DataType::f32) ? of_halves : of_lanes;
}

// A library may run the kernels of f32 in place of those that it has for fewer bits.
Price no_longer_than_in_f32(Price price, Problem problem, const DeviceClass& device) {
    auto* conv = std::get_if<Conv>(&problem.op);
    if (problem.type == DataType::f32 || conv == nullptr) return price;
    conv->bias = false;
    problem.type = DataType::f32;
    const Price slowest = rehearse::price(problem, device);
    if (price.time <= slowest.time) return price;
    price.time = slowest.time;
    price.source = fmt::format("no longer than in f32: {}", slowest.source);
    return price;
}

}  // namespace

bool has_groups(const Problem& problem) {
    const auto* conv = std::get_if<Conv>(&problem.op);
    return conv != nullptr && conv->groups > 1;
}

std::optional<Price> convolution_price(const Problem& problem, const DeviceClass& device) {
    const auto shape = prices::convolution_shape(problem, prices::Volumes::folded);
    if (!shape) return std::nullopt;
    const auto board = board_of(problem.type, device);
    if (!board) return std::nullopt;
    const prices::LibraryChoice choice = prices::library_choice(*shape, *board);
    const Beyond& beyond = shape->groups > 1 ? of_groups : beyond_of(problem.type, *board);
    Price answer{choice.best().time * beyond.times + device.launch.value, beyond.spread,
                 fmt::format("{:.2g} times the least of a library's algorithms, {}, by the data sheet of {}: {}",
                             beyond.times, choice.name(), device.name, beyond.source)};
    return no_longer_than_in_f32(std::move(answer), problem, device);
}

std::optional<Price> price_by_sample(const Problem& problem, const DeviceClass& device) {
    const auto* conv = std::get_if<Conv>(&problem.op);
    if (device.model == nullptr || !device.model->volumes_by_sample()) return std::nullopt;
    if (conv == nullptr || conv->depth == 0) return std::nullopt;
    const auto shape = prices::convolution_shape(problem, prices::Volumes::folded);
    const auto board = board_of(problem.type, device);
    if (!shape || !board) return std::nullopt;
    const std::optional<prices::FamilyTime> least = prices::gradient_by_sample(*shape, *board);
    if (!least) return std::nullopt;
    const Beyond& beyond = beyond_of(problem.type, *board);
    return Price{
        least->time * beyond.times + device.launch.value, beyond.spread,
        fmt::format("{:.2g} times a product of which each block passes over all voxels of a sample, by the data "
                    "sheet of {}: {}",
                    beyond.times, device.name, beyond.source)};
}

std::optional<Price> price_without_transforms(const Problem& problem, const DeviceClass& device) {
    const auto shape = prices::convolution_shape(problem, prices::Volumes::folded);
    const auto board = board_of(problem.type, device);
    if (!shape || !board || shape->groups > 1 || board->lanes.value > 0) return std::nullopt;
    std::optional<prices::FamilyTime> least = prices::implicit_gemm(*shape, *board);
    if (const auto direct = prices::direct(*shape, *board); !least || (direct && direct->time < least->time))
        least = direct;
    if (!least) return std::nullopt;
    return Price{
        least->time * of_lanes.times + device.launch.value, of_lanes.spread,
        fmt::format("{:.2g} times the least of a library's algorithms without transforms, by the data sheet of "
                    "{}: {}",
                    of_lanes.times, device.name, of_lanes.source)};
}

}  // namespace rehearse
