// SPDX-License-Identifier: Apache-2.0
#include "run/methods/averaging.hpp"

#include <algorithm>
#include <utility>
#include "core/methods/averaging.hpp"

namespace rehearse::run {

void pull_average(double share, std::span<float> model, std::span<float> average) {
    for (std::size_t i = 0; i < model.size(); ++i) {
        model[i] = static_cast<float>(share) * (model[i] - average[i]);
        average[i] += model[i];
    }
}

void pull_average(const Averaging& by, std::span<float> model, std::span<float> average, std::span<float> last) {
    const std::vector<float> before{average.begin(), average.end()};
    pull_average(by.elastic, model, average);
    const auto momentum = static_cast<float>(by.momentum);
    for (std::size_t i = 0; i < average.size(); ++i) average[i] += momentum * (before[i] - last[i]);
    std::ranges::copy(before, last.begin());
}

void move_average(const Averaging& by, std::span<const float> sum, std::span<float> average, std::span<float> last) {
    const auto share = static_cast<float>(by.elastic), momentum = static_cast<float>(by.momentum);
    for (std::size_t i = 0; i < average.size(); ++i) {
        const float before = average[i];
        average[i] += share * sum[i] + momentum * (before - last[i]);
        last[i] = before;
    }
}

bool AveragingMethod::prepare(ReadyStep& ready) {
    const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
    if (communicate == nullptr) return false;
    if (communicate->content == Content::differences) {
        prepare_differences(ready, communicate->bucket());
        return true;
    }
    if (communicate->content != Content::weights || communicate->kind == CollectiveKind::broadcast) return false;
    prepare_mean(ready, *communicate);
    return true;
}

void AveragingMethod::prepare_mean(ReadyStep& ready, const Communicate& communicate) const {
    const kernels::View weights = rank_.tensors.bucket(communicate.bucket()).weights;
    ready.data = weights;
    if (!rank_.schedule.shares.samples.empty()) {  // weighed by the samples that they were trained on
        const std::int64_t own = samples_of(rank_.schedule, shard_of(rank_.schedule.mesh, rank_.rank));
        const auto share =
            static_cast<float>(static_cast<double>(own) / static_cast<double>(global_batch(rank_.schedule)));
        ready.before = [weights, share] {
            for (float& weight : std::span<float>{weights}) weight *= share;
        };
        return;
    }
    const auto models = static_cast<float>(size_of(rank_.schedule.mesh, communicate.axis));
    ready.after = [weights, models] {
        for (float& weight : std::span<float>{weights}) weight /= models;
    };
}

// This rank's model and the average one as they are when the step begins: d = w - z is kept, its sum over all comes.
void AveragingMethod::prepare_differences(ReadyStep& ready, int bucket) {
    Average& of = averages_[bucket];
    const std::span<float> weights = rank_.tensors.bucket(bucket).weights;
    of.average.assign(weights.begin(), weights.end());  // all models begin with the same
    of.last = of.average;
    of.own.resize(weights.size());
    of.sum.resize(weights.size());
    ready.data = std::span<float>{of.sum};
    ready.before = [&of, weights] {
        for (std::size_t i = 0; i < of.sum.size(); ++i) of.own[i] = of.sum[i] = weights[i] - of.average[i];
    };
}

// A model gives up its share after its first update of a step.
void AveragingMethod::complete(std::span<ReadyStep> steps) {
    std::map<int, bool> updated;  // by bucket
    for (ReadyStep& ready : steps) {
        const auto* const update = std::get_if<Update>(&ready.step->action);
        if (update == nullptr || std::exchange(updated[update->bucket], true)) continue;
        if (averages_.contains(update->bucket)) ready.after = [this, b = update->bucket] { pull_together(b); };
    }
}

// The average moves with it.
void AveragingMethod::pull_together(int bucket) {
    Average& of = averages_.at(bucket);
    const Averaging& by = rank_.schedule.methods.get<Averaging>();
    const auto share = static_cast<float>(by.elastic);
    const std::span<float> weights = rank_.tensors.bucket(bucket).weights;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= share * of.own[i];
    move_average(by, of.sum, of.average, of.last);
}

// Each model's losses are means over its own micro-batch.
std::int64_t AveragingMethod::loss_batch(std::int64_t /*batch*/) const { return rank_.micro_batch(); }

void AveragingMethod::visit_state(const UseNumbers& use) {
    for (auto& [bucket, of] : averages_) {
        use(of.average);
        use(of.last);
    }
}

Reference train_models;            // run/reference/single_rank_averaging.cpp
extern const MethodRow averaging;  // a row of methods.cpp
constinit const MethodRow averaging{.name = "averaging",
                                    .used = [](const Schedule& s) { return s.methods.get<Averaging>().period > 0; },
                                    .make = make_method<AveragingMethod>,
                                    .sums_gradients = false,
                                    .own_state = true,
                                    .reference = train_models};

}  // namespace rehearse::run
