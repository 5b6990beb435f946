// SPDX-License-Identifier: Apache-2.0
#include "schedule/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "schedule/precision.hpp"

namespace rehearse::schedule {

namespace {

bool gradient_comes_with_data(const Op& op) { return parameters(op) > 0 && !has_pass(op, Pass::backward_weights); }

/// The gradient of the weights first, as Caffe does: its bucket is ready one pass earlier, and the layer's input can be
/// let go before the gradient of that input is made. PyTorch hands out both at once, after the data's.
std::vector<Pass> backward_passes(const Op& op, bool needs_input_gradient) {
    std::vector<Pass> passes;
    if (has_pass(op, Pass::backward_weights)) passes.push_back(Pass::backward_weights);
    if (has_pass(op, Pass::backward_data) && (needs_input_gradient || gradient_comes_with_data(op))) {
        passes.push_back(Pass::backward_data);
    }
    return passes;
}

/// Appends steps in an order in which dependencies point backwards. Steps of one stream wait for each other by their
/// order alone; `after` is for what another stream must have ended.
class Program {
public:
    Program(const Schedule& schedule, const GradientSum& sum)
        : schedule_(schedule), sum_(sum), reduced_by_(schedule.buckets.size(), -1) {}

    void forward() {
        for (std::size_t i = 0; i < schedule_.network.layers.size(); ++i) {
            if (has_pass(schedule_.network.layers[i].op, Pass::forward)) compute(i, Pass::forward);
        }
    }

    void backward() {
        const std::vector<bool> needed = needs_input_gradient(schedule_.network);
        std::size_t bucket = 0;  // the one being filled
        for (std::size_t i = schedule_.network.layers.size(); i-- > 0;) {
            const Op& op = schedule_.network.layers[i].op;
            for (const Pass pass : backward_passes(op, needed[i])) {
                compute(i, pass);
                const bool gradient = pass == Pass::backward_weights || gradient_comes_with_data(op);
                if (!gradient || static_cast<std::size_t>(schedule_.buckets[bucket].layers.back()) != i) continue;
                if (sum_.overlap) all_reduce(bucket);
                ++bucket;
            }
        }
        for (std::size_t b = 0; !sum_.overlap && b < schedule_.buckets.size(); ++b) all_reduce(b);
    }

    void update() {
        for (std::size_t b = 0; b < schedule_.buckets.size(); ++b) {
            const SgdUpdate sgd{schedule_.buckets[b].elements};
            const Problem problem{sgd, Pass::update, 1, update_type(schedule_.precision)};
            std::vector<int> after;
            if (reduced_by_[b] >= 0) after.push_back(reduced_by_[b]);
            steps_.push_back({fmt::format("bucket{}:update", b), Stream::compute, Update{static_cast<int>(b), problem},
                              std::move(after)});
        }
    }

    std::vector<Step> take() { return std::move(steps_); }

private:
    void compute(std::size_t index, Pass pass) {
        const Layer& layer = schedule_.network.layers[index];
        const Problem problem{layer.op, pass, schedule_.batch_per_rank, compute_type(schedule_.precision)};
        last_compute_ = static_cast<int>(steps_.size());
        steps_.push_back({fmt::format("{}:{}", layer.name, to_string(pass)),
                          Stream::compute,
                          Compute{static_cast<int>(index), problem, 0},
                          {}});
    }

    void all_reduce(std::size_t bucket) {
        if (schedule_.mesh.axes[static_cast<std::size_t>(sum_.axis)].size == 1) return;
        reduced_by_[bucket] = static_cast<int>(steps_.size());
        const AllReduceBucket action{static_cast<int>(bucket), sum_.axis, schedule_.buckets[bucket].elements,
                                     wire_type(schedule_.precision), sum_.algorithm};
        steps_.push_back({fmt::format("bucket{}:allreduce", bucket), Stream::communication, action, {last_compute_}});
    }

    const Schedule& schedule_;
    const GradientSum& sum_;
    std::vector<Step> steps_;
    std::vector<int> reduced_by_;  // the all-reduce step of each bucket; -1 without one
    int last_compute_ = -1;
};

}  // namespace

std::vector<Bucket> make_buckets(const Network& network, DataType wire, Bytes first, Bytes limit) {
    std::vector<Bucket> buckets;
    bool open = false;
    for (std::size_t i = network.layers.size(); i-- > 0;) {
        const std::int64_t count = parameters(network.layers[i].op);
        if (count == 0) continue;
        if (!open) buckets.push_back({});
        Bucket& bucket = buckets.back();
        bucket.layers.push_back(static_cast<int>(i));
        bucket.elements += count;
        const Bytes enough = buckets.size() == 1 ? std::min(first, limit) : limit;
        open = static_cast<double>(bucket.elements) * size_of(wire) < enough;
    }
    return buckets;
}

std::vector<Step> data_parallel_steps(const Schedule& schedule, const GradientSum& sum) {
    Program program(schedule, sum);
    program.forward();
    program.backward();
    program.update();
    return program.take();
}

}  // namespace rehearse::schedule
