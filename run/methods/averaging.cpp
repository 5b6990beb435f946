// SPDX-License-Identifier: Apache-2.0
// Buckets of ranks that do not simply sum their gradients: models of their own, gradients in fewer bits, servers.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "run/methods/compression.hpp"
#include "run/program.hpp"

namespace rehearse::run {

void Program::prepare_own_way(ReadyStep& ready, const Communicate& communicate) {
    const int b = communicate.bucket;
    if (communicate.content == Content::compressed) return prepare_compressed(ready, communicate);
    if (communicate.content == Content::differences) return prepare_differences(ready, b);
    if (communicate.content == Content::factors) {
        ready.data = std::span<float>{factors_.at(b)};
        return;
    }
    if (communicate.content == Content::directions) {
        ready.data = tensors_->bucket(b).applied;
        return;
    }
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

// This rank's model and the average one as they are when the step begins: d = w - z is kept, its sum over all comes.
void Program::prepare_differences(ReadyStep& ready, int b) {
    Average& of = averages_[b];
    const std::span<float> weights = tensors_->bucket(b).weights;
    of.average.assign(weights.begin(), weights.end());  // all models begin with the same
    of.last = of.average;
    of.own.resize(weights.size());
    of.sum.resize(weights.size());
    ready.data = std::span<float>{of.sum};
    ready.before = [&of, weights] {
        for (std::size_t i = 0; i < of.sum.size(); ++i) of.own[i] = of.sum[i] = weights[i] - of.average[i];
    };
}

// After the first update of a model; the average moves with it.
void Program::pull_together(int b) {
    Average& of = averages_.at(b);
    const auto share = static_cast<float>(schedule_.averaging.elastic);
    const auto momentum = static_cast<float>(schedule_.averaging.momentum);
    const std::span<float> weights = tensors_->bucket(b).weights;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= share * of.own[i];
    for (std::size_t i = 0; i < weights.size(); ++i) {
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
    if (sends_vectors(trade)) return prepare_vectors(ready, trade);
    const BucketTensors& bucket = tensors_->bucket(trade.bucket);
    const kernels::ConstView given = schedule_.averaging.period > 0 ? bucket.weights : bucket.applied;
    const kernels::View taken = fresh(trade.bucket);
    ready.data = taken;
    ready.before = [given, taken] { std::ranges::copy(std::span<const float>{given}, taken.begin()); };
}

// What the gradient of a dense layer is a product of: the inputs of all rows, then their errors.
void Program::prepare_vectors(ReadyStep& ready, const Trade& trade) {
    if (schedule_.micro_batches > 1) {
        throw InputError(fmt::format(
            "run: plan '{}': dense=vectors with microbatches is predicted, not run, in this version", schedule_.plan));
    }
    const int index = part().buckets[at(trade.bucket)].layers.front();
    const kernels::ConstView inputs = tensors_->layer(part().network.layers[at(index)].inputs.front()).output;
    const kernels::ConstView errors = tensors_->layer(index).diff;
    require(static_cast<std::int64_t>(inputs.size() + errors.size()) == trade.sent, "vectors of all rows are sent");
    ready.data = fresh(trade.bucket);  // of the weights that come: more
    ready.before = [inputs, errors, taken = ready.data] {
        std::ranges::copy(std::span<const float>{inputs}, taken.begin());
        std::ranges::copy(std::span<const float>{errors}, taken.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    };
}

// The layers of a bucket go on with the weights of this step until it is over. With elastic, what they give up.
kernels::View Program::fresh(int b) {
    std::vector<float>& memory = fresh_[b];
    memory.resize(tensors_->bucket(b).weights.size());
    return std::span<float>{memory};
}

void Program::take_fresh_weights() {
    for (const auto& [b, memory] : fresh_) {
        const kernels::View weights = tensors_->bucket(b).weights;
        if (schedule_.averaging.period == 0) {
            std::ranges::copy(memory, weights.begin());
            continue;
        }
        for (std::size_t i = 0; i < memory.size(); ++i) weights.data()[i] -= memory[i];
    }
}

void Program::visit_own_state(const std::function<void(std::span<float>)>& use) {
    require(schedule_.precision == Precision::fp32 && device_ == nullptr, "ranks that go their own ways train in f32");
    for (std::size_t b = 0; b < part().buckets.size(); ++b) {
        const BucketTensors& bucket = tensors_->bucket(static_cast<int>(b));
        use(bucket.weights);
        use(bucket.momentum);
        if (!bucket.second_moment.empty()) use(bucket.second_moment);
        auto count = static_cast<float>(updates_[static_cast<int>(b)]);  // exact to 2^24
        use({&count, 1});
        updates_[static_cast<int>(b)] = static_cast<std::int64_t>(count);
    }
    for (std::size_t i = 0; i < part().network.layers.size(); ++i) use(tensors_->layer(static_cast<int>(i)).state);
    for (auto& [b, of] : averages_) {
        use(of.average);
        use(of.last);
    }
    for (auto& [b, left] : left_out_) use(left);
}

}  // namespace rehearse::run
