// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory_of_software.hpp"

#include <algorithm>

#include "core/ring_attention.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/methods/gathers.hpp"

namespace rehearse::schedule {

MemoryHabits habits_of(const Plan& plan, const Machine& machine) {
    MemoryHabits habits = plan.methods.get<MemoryHabits>();
    const bool of_software = std::ranges::any_of(
        machine.classes, [](const DeviceClass& device) { return device.tiles != nullptr && !device.host; });
    if (!habits.loss) habits.loss = of_software ? MemoryHabits::Loss::operators : MemoryHabits::Loss::kernel;
    if (!habits.keeps_probabilities)
        habits.keeps_probabilities = of_software && machine.software.score_passes.value > 0;
    return habits;
}

bool keeps_probabilities(const Plan& plan, const MemoryHabits& habits) {
    if (plan.keep_attention) return *plan.keep_attention;
    if (plan.recompute == Recompute::attention) return true;
    return habits.keeps_probabilities.value_or(false) && !plan.methods.get<RingAttention>().on;
}

// PyTorch's operators keep log-probabilities, which of scores in f32 are in their place, and hold the gradients of
// these and of the scores in f32 at once: 12 bytes a score of either type with the scores and their gradient, as its
// allocator counts. Megatron-LM makes all of it in one f32 copy of the scores (Korthikanti et al. 2022: 4 s b v / t
// bytes).
LossCopies loss_copies(const Op& op, const MemoryHabits& habits, Bytes size) {
    const MemoryHabits::Loss loss = habits.loss.value_or(MemoryHabits::Loss::kernel);
    const bool scores = std::holds_alternative<SoftmaxLoss>(op) || std::holds_alternative<SoftmaxTerms>(op);
    if (!scores || loss == MemoryHabits::Loss::kernel) return {};
    const double wide = size_of(DataType::f32).value, count = static_cast<double>(elements(input_shapes(op)[0]));
    const bool narrow = size.value < wide;
    if (loss == MemoryHabits::Loss::fused) return {narrow ? (wide - size.value) * count : 0, 0};
    return {narrow ? wide * count : 0, wide * count};
}

double copied_to_buckets(const Schedule& schedule, const RankClass& rank_class) {
    if (!schedule.methods.get<MemoryHabits>().bucket_copies || gathers_weights(rank_class)) return 0;
    double sum = 0;
    for (const Bucket& bucket : rank_class.part.buckets) {
        const bool shared = bucket.axis >= 0 && size_of(schedule.mesh, bucket.axis) > 1;
        if (shared && !updates_directly(rank_class.part.network, bucket)) sum += static_cast<double>(bucket.elements);
    }
    return sum;
}

}  // namespace rehearse::schedule
