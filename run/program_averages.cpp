// SPDX-License-Identifier: Apache-2.0
// Buckets of ranks that do not simply sum their gradients: models of their own, gradients in fewer bits, servers.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "run/compression.hpp"
#include "run/program.hpp"

namespace rehearse::run {

void Program::prepare_own_way(ReadyStep& ready, const Communicate& communicate) {
    const int b = communicate.bucket;
    if (communicate.content == Content::compressed) return prepare_compressed(ready, communicate);
    if (communicate.content == Content::differences) return prepare_differences(ready, b);
    if (communicate.kind == CollectiveKind::broadcast) {
        ready.data = fresh(b);
        return;
    }
    const kernels::View weights = tensors_->bucket(b).weights;
    ready.data = weights;
    const auto models = static_cast<float>(size_of(schedule_.mesh, communicate.axis));
    ready.after = [weights, models] {
        for (float& weight : std::span<float>{weights}) weight /= models;
    };
}

void Program::make_models() {
    const auto learners = at(schedule_.averaging.learners);
    if (learners == 1) return;
    const std::span<const float> weights = tensors_->weights();
    models_.assign(learners, {weights.begin(), weights.end()});
    momenta_.assign(learners, std::vector<float>(weights.size()));
    second_moments_ = momenta_;
}

std::int64_t Program::offset(kernels::View weights) const { return weights.data() - tensors_->weights().data(); }

// A rank's models and the average one as they are when the step begins: d = w - z is kept, its sum over all comes.
void Program::prepare_differences(ReadyStep& ready, int b) {
    Average& of = averages_[b];
    const std::span<float> weights = tensors_->bucket(b).weights;
    of.average.assign(weights.begin(), weights.end());  // all models begin with the same
    of.last = of.average;
    of.own.assign(at(schedule_.averaging.learners), std::vector<float>(weights.size()));
    of.sum.resize(weights.size());
    ready.data = std::span<float>{of.sum};
    std::vector<const float*> models;
    for (const std::vector<float>& model : models_) models.push_back(model.data() + offset(weights));
    if (models.empty()) models.push_back(weights.data());
    ready.before = [&of, models] {
        std::ranges::fill(of.sum, 0.0F);
        for (std::size_t m = 0; m < models.size(); ++m) {
            for (std::size_t i = 0; i < of.sum.size(); ++i) {
                of.own[m][i] = models[m][i] - of.average[i];
                of.sum[i] += of.own[m][i];
            }
        }
    };
}

// After the first update of a model; the average moves with the last of them.
void Program::pull_together(int b, int learner) {
    Average& of = averages_.at(b);
    const auto share = static_cast<float>(schedule_.averaging.elastic);
    const auto momentum = static_cast<float>(schedule_.averaging.momentum);
    const kernels::View all = tensors_->bucket(b).weights;
    float* weights = models_.empty() ? all.data() : models_[at(learner)].data() + offset(all);
    const std::vector<float>& own = of.own[at(learner)];
    for (std::size_t i = 0; i < own.size(); ++i) weights[i] -= share * own[i];
    if (learner + 1 < schedule_.averaging.learners) return;
    for (std::size_t i = 0; i < own.size(); ++i) {
        const float before = of.average[i];
        of.average[i] += share * of.sum[i] + momentum * (before - of.last[i]);
        of.last[i] = before;
    }
}

void Program::prepare_compressed(ReadyStep& ready, const Communicate& communicate) {
    const std::span<float> gradients = tensors_->bucket(communicate.bucket).applied;
    const std::int64_t ranks = size_of(schedule_.mesh, communicate.axis);
    const std::size_t each = at(compressed_words(schedule_.compression, static_cast<std::int64_t>(gradients.size())));
    require(communicate.elements == ranks * static_cast<std::int64_t>(each), "a rank's words after the other's");
    std::vector<float>& left = left_out_[communicate.bucket];
    std::vector<float>& words = words_[communicate.bucket];
    left.resize(gradients.size());
    words.resize(each * at(ranks));
    ready.data = std::span<float>{words};
    const std::size_t own = at(place_on(schedule_.mesh, communicate.axis, rank_at(schedule_.mesh, coordinates_)));
    ready.before = [this, &left, &words, gradients, each, own] {
        for (std::size_t i = 0; i < left.size(); ++i) left[i] += gradients[i];
        compress(schedule_.compression, left, std::span{words}.subspan(own * each, each));
    };
    ready.after = [this, &words, gradients, each] {
        std::ranges::fill(gradients, 0.0F);
        for (std::size_t from = 0; from < words.size(); from += each) {
            add_compressed(schedule_.compression, std::span{words}.subspan(from, each), gradients);
        }
    };
}

void Program::prepare(ReadyStep& ready, const Trade& trade) {
    if (trade.sent != trade.received) {
        throw InputError(
            fmt::format("run: plan '{}': dense=vectors is predicted, not run, in this version", schedule_.plan));
    }
    const kernels::ConstView gradients = tensors_->bucket(trade.bucket).applied;
    const kernels::View weights = fresh(trade.bucket);
    ready.data = weights;
    ready.before = [gradients, weights] { std::ranges::copy(std::span<const float>{gradients}, weights.begin()); };
}

// The layers of a bucket go on with the weights of this step until it is over.
kernels::View Program::fresh(int b) {
    std::vector<float>& memory = fresh_[b];
    memory.resize(tensors_->bucket(b).weights.size());
    return std::span<float>{memory};
}

void Program::take_fresh_weights() {
    for (const auto& [b, memory] : fresh_) std::ranges::copy(memory, tensors_->bucket(b).weights.begin());
    if (!models_.empty()) std::ranges::copy(models_.back(), tensors_->weights().begin());
}

}  // namespace rehearse::run
