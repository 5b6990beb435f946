// SPDX-License-Identifier: Apache-2.0
#include "prices/fused_attention.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

// A block is so many rows of queries (backward: of keys) beside as many of keys at a time. Kernels have blocks of 64
// and of 128 rows, and take which waste less (Dao 2023, section 3.3).
constexpr double block = 64;
// Of each processor, of NVIDIA's since Volta (CUDA C++ programming guide, arithmetic instructions) as of AMD's, whose
// rate of them is a quarter of 64 lanes.
constexpr double exponentials_a_clock = 16;
// No GPU's boost clock is as high. Matrix units make a power of two of operations a clock, which tells it from the
// peak: 1.41 GHz of an A100 (2,048 operations), 1.83 of an H100 (4,096), 1.86 of a B200 (8,192), 2.52 of an RTX 4090
// (512).
constexpr double highest_clock = 2.7e9;
// Blackwell's matrix units run by themselves and leave their results in a memory of their own, so that exponentials are
// made beside them. Elsewhere a score takes both in turn: FlashAttention-2 on an A100 (0.65 to 0.70 of the peak for
// heads of 128, 0.57 of 64), cuDNN on an H100 (0.535) and on a B200 (0.55) are met to 10 % (docs/language_models.md).
constexpr double operations_beside = 8192;
// Five products a score pass through shared memory, as operands or as results: of three boards' backward passes
// (A100 0.55, H100 0.505, B200 0.42 of the peak) 0.73 to 0.84 of what the products reach forward.
constexpr double backward_share = 0.75;
// FlashAttention-2 and Triton's kernel have Ampere's instructions, which give that share of Hopper's peak (Luo et al.
// 2024, https://arxiv.org/abs/2402.13499, mma on an H100).
constexpr double ampere_operations = 2048, older_instructions = 0.62;
// What Triton's kernel takes over FlashAttention-2 (Dao 2023, section 4.1, https://arxiv.org/abs/2307.08691).
constexpr double triton_forward = 1.4, triton_backward = 2;

struct Processor {
    double clock, operations;  // a second; of its matrix units, a clock
};

Processor processor_of(const TileModel& model, const DeviceClass& device, DataType type) {
    const auto tensor = device.peak.find(DataType::f16);
    const FlopRate all = tensor != device.peak.end() ? tensor->second.value : device.peak.at(type).value;
    Processor processor{all.value / model.processors.value, 1};
    while (processor.clock >= highest_clock) {
        processor.clock /= 2;
        processor.operations *= 2;
    }
    return processor;
}

// Seconds of a score on one processor.
Seconds score_time(const Attention& op, bool backward, const TileModel& model, const DeviceClass& device,
                   DataType type) {
    const auto key = static_cast<double>(op.head_size), value = static_cast<double>(value_size(op));
    const Processor processor = processor_of(model, device, type);
    const bool older = model.attention_kernel != FusedKernel::library && processor.operations > ampere_operations;
    // Backward makes the scores again, and a product for the gradient of each operand of both.
    const Flops work{2 * (backward ? 3 * key + 2 * value : key + value)};
    const double share = model.large_tile.value * (backward ? backward_share : 1) * (older ? older_instructions : 1);
    const Seconds products = work / (device.peak.at(type).value * (share / model.processors.value));
    const Seconds exponential{1 / (exponentials_a_clock * processor.clock)};
    const bool beside = !older && processor.operations >= operations_beside;
    const Seconds score = beside ? std::max(products, exponential) : products + exponential;
    if (model.attention_kernel != FusedKernel::triton) return score;
    return (backward ? triton_backward : triton_forward) * score;
}

}  // namespace

double shown_share(const Attention& op) {
    if (!op.causal) return 1;
    return 1 - (static_cast<double>(op.queries) - 1) / (2 * static_cast<double>(op.keys));
}

Seconds fused_attention_time(const Attention& op, Pass pass, std::int64_t batch, const TileModel& model,
                             const DeviceClass& device, DataType type) {
    const bool backward = pass != Pass::forward;
    const double query_blocks = std::ceil(static_cast<double>(op.queries) / block);
    const double key_blocks = std::ceil(static_cast<double>(op.keys) / block);
    const double dealt_out = backward ? key_blocks : query_blocks, within = backward ? query_blocks : key_blocks;
    const double blocks = dealt_out * static_cast<double>(batch * op.heads);
    const double waves = blocks / model.processors.value;
    // The blocks of a mask are of unlike length, the longest first; others end together, wave by wave.
    const double rounds = op.causal ? std::max(1.0, waves * shown_share(op)) : std::ceil(waves);
    return rounds * (block * block * within * score_time(op, backward, model, device, type));
}

}  // namespace rehearse
