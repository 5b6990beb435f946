// SPDX-License-Identifier: Apache-2.0
// LAMB (You et al. 2020, algorithm 2) where ranks have pieces of tensors: squares of a rank's weights and directions
// are summed with the others', and their ratio is how far Adam's step goes on its pieces of that tensor. A tensor that
// several of these ranks have whole is summed as often in both, which leaves its ratio as it is.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/methods/trust_ratios.hpp"
#include "kernels/convert.hpp"
#include "run/methods/method.hpp"
#include "run/pieces.hpp"
#include "run/train.hpp"

namespace rehearse::run {

namespace {

/// A rank's elements of one tensor, from the beginning of its piece of the bucket.
struct TensorPiece {
    std::int64_t begin = 0, end = 0;
    std::size_t norms = 0;  // where the two of its tensor stand among those that are summed
    kernels::Kernel* kernel = nullptr;
};

double trust_ratio(std::span<const float> norms) {
    const double weights = norms[0], direction = norms[1];
    return weights > 0 && direction > 0 ? std::sqrt(weights / direction) : 1;
}

/// Adam on each tensor's piece, as far as its tensor is to go.
class PiecewiseUpdate final : public kernels::Kernel {
public:
    PiecewiseUpdate(std::span<const TensorPiece> pieces, std::span<const float> norms)
        : pieces_(pieces), norms_(norms) {}

    void run(const kernels::Buffers& all) override {
        for (const TensorPiece& piece : pieces_) {
            const auto part = [&](auto view) { return view.subspan(at(piece.begin), at(piece.end - piece.begin)); };
            kernels::Buffers own = all;
            own.weights = part(all.weights);
            own.diff_weights = part(all.diff_weights);
            own.momentum = part(all.momentum);
            own.second_moment = part(all.second_moment);
            if (!all.weights_copy.empty()) own.weights_copy = part(all.weights_copy);
            own.learning_rate = static_cast<float>(all.learning_rate * trust_ratio(norms_.subspan(piece.norms, 2)));
            piece.kernel->run(own);
        }
    }

private:
    std::span<const TensorPiece> pieces_;
    std::span<const float> norms_;
};

/// The numbers as f32, in `room` where they are of another type.
std::span<const float> as_floats(kernels::ConstView numbers, std::vector<float>& room) {
    if (numbers.type() == DataType::f32) return numbers.as<float>();
    room.resize(numbers.size());
    kernels::convert(numbers, room);
    return room;
}

class TrustRatiosMethod : public Method {
public:
    explicit TrustRatiosMethod(RankContext& rank) : rank_(rank), updates_(rank.part().buckets.size()) {}

    bool prepare(ReadyStep& ready) override {
        const auto* const communicate = std::get_if<Communicate>(&ready.step->action);
        if (communicate == nullptr || communicate->content != Content::norms) return false;
        std::vector<float>& norms = summed_[{communicate->bucket(), communicate->micro_batch}];
        norms.resize(at(communicate->elements));
        ready.data = std::span<float>{norms};
        return true;
    }

    /// A bucket's norms are made before the first sum of those that its update waits for.
    void complete(std::span<ReadyStep> steps) override {
        std::map<const Step*, std::size_t> taken;  // norms, of buckets so far
        for (ReadyStep& ready : steps) {
            const auto* const update = std::get_if<Update>(&ready.step->action);
            if (update == nullptr || !by_known_norms(rank_.schedule, *update)) continue;
            ReadyStep& sum = first_sum(*update, *ready.step, steps);
            Pieces& of = pieces_[ready.step];
            of.bucket = update->bucket;
            of.own = update->sharded >= 0 ? rank_.own_piece(of.bucket)
                                          : Range{0, rank_.part().buckets[at(of.bucket)].elements};
            of.tensors = tensors_of(of, update->problem, taken[sum.step]);
            taken[sum.step] += 2 * rank_.tensors.bucket(of.bucket).tensor_sizes.size();
            const std::span<float> norms = sum.data.as<float>();
            sum.before = [this, &of, norms, first = std::move(sum.before)] {
                if (first) {
                    first();
                } else {
                    std::ranges::fill(norms, 0.0F);
                }
                add_squares(of, norms);
            };
            ready.before = [this, bucket = of.bucket, first = std::move(ready.before)] {
                if (first) first();
                ++updates_[at(bucket)];
            };
            kernels_.push_back(std::make_unique<PiecewiseUpdate>(of.tensors, norms));
            ready.kernel = kernels_.back().get();
        }
        for (const auto& [sum, norms] : taken) {
            require(static_cast<std::int64_t>(norms) == std::get<Communicate>(sum->action).elements,
                    "norms are of the buckets whose updates wait for them");
        }
    }

    void visit_state(const UseNumbers& use) override {
        for (std::int64_t& updates : updates_) {
            auto count = static_cast<float>(updates);  // exact to 2^24
            use({&count, 1});
            updates = static_cast<std::int64_t>(count);
        }
    }
    void restore(const ProgramState& state) override { std::ranges::fill(updates_, state.updates); }

private:
    struct Pieces {
        int bucket = 0;
        Range own;  // of the bucket
        std::vector<TensorPiece> tensors{};
    };

    /// Of those along the axes of a bucket: what is summed along one after the other is of one bucket and time.
    ReadyStep& first_sum(const Update& update, const Step& step, std::span<ReadyStep> steps) const {
        const std::vector<int> axes =
            axes_of_norms(rank_.schedule.mesh, rank_.part(), rank_.part().buckets[at(update.bucket)], update.sharded);
        const auto norms_of = [](const Step& of) {
            const auto* const sum = std::get_if<Communicate>(&of.action);
            return sum != nullptr && sum->content == Content::norms ? sum : nullptr;
        };
        for (const int before : step.after) {
            const Communicate* const last = norms_of(*steps[at(before)].step);
            if (last == nullptr) continue;
            std::vector<int> along;
            ReadyStep* first = nullptr;
            for (ReadyStep& each : steps) {
                const Communicate* const sum = norms_of(*each.step);
                if (sum == nullptr || sum->bucket() != last->bucket() || sum->micro_batch != last->micro_batch)
                    continue;
                along.push_back(sum->axis);
                if (first == nullptr) first = &each;
            }
            if (along == axes) return *first;
        }
        require(false, "an update of pieces by LAMB waits for its norms");
        return steps.front();
    }

    std::vector<TensorPiece> tensors_of(const Pieces& of, Problem problem, std::size_t norms) {
        std::vector<TensorPiece> found;
        std::int64_t begin = 0;
        for (const std::int64_t size : rank_.tensors.bucket(of.bucket).tensor_sizes) {
            const std::int64_t first = std::max(begin, of.own.begin), last = std::min(begin + size, of.own.end);
            if (first < last) {
                problem.op = update_op(Optimizer::adam, last - first, 1);
                found.push_back({first - of.own.begin, last - of.own.begin, norms, &rank_.kernels.of_problem(problem)});
            }
            begin += size;
            norms += 2;
        }
        return found;
    }

    // In double, as the whole tensor's norms are (kernels/reference/adam.cpp); the moments are moved by the update.
    void add_squares(const Pieces& of, std::span<float> norms) {
        const Hyperparameters& by = rank_.hyperparameters;
        const BucketTensors& bucket = rank_.tensors.bucket(of.bucket);
        const auto mine = [&](kernels::View whole) {
            return whole.subspan(at(of.own.begin), at(of.own.end - of.own.begin));
        };
        const auto weights = as_floats(mine(bucket.weights), room_[0]);
        const auto gradients = as_floats(mine(bucket.applied), room_[1]);
        const auto first = as_floats(mine(bucket.momentum), room_[2]);
        const auto second = as_floats(mine(bucket.second_moment), room_[3]);
        const auto updates = static_cast<double>(updates_[at(of.bucket)] + 1);
        const auto corrected = [&](float factor) {
            return static_cast<float>(1 / (1 - std::pow(static_cast<double>(factor), updates)));
        };
        const float of_first = corrected(by.momentum), of_second = corrected(by.second_factor);
        const float epsilon = by.epsilon > 0 ? by.epsilon : default_epsilon(Optimizer::lamb);
        const float scale =
            rank_.scale.applied() *
            static_cast<float>(means_summed(rank_.schedule, rank_.part().buckets[at(of.bucket)].axis, rank_.rank));
        for (const TensorPiece& piece : of.tensors) {
            double squares = 0, steps = 0;
            for (auto i = at(piece.begin); i < at(piece.end); ++i) {
                const float gradient = gradients[i] / scale;
                const float mean = by.momentum * first[i] + (1 - by.momentum) * gradient;
                const float square = by.second_factor * second[i] + (1 - by.second_factor) * gradient * gradient;
                const float step =
                    of_first * mean / (std::sqrt(of_second * square) + epsilon) + by.weight_decay * weights[i];
                squares += static_cast<double>(weights[i]) * weights[i];
                steps += static_cast<double>(step) * step;
            }
            norms[piece.norms] += static_cast<float>(squares);
            norms[piece.norms + 1] += static_cast<float>(steps);
        }
    }

    RankContext& rank_;
    std::map<std::pair<int, int>, std::vector<float>> summed_;  // by bucket and micro-batch of the steps that sum them
    std::map<const Step*, Pieces> pieces_;                      // by update
    std::vector<std::int64_t> updates_;                         // so far, by bucket
    std::vector<std::unique_ptr<kernels::Kernel>> kernels_;
    std::array<std::vector<float>, 4> room_;
};

}  // namespace

extern const MethodRow trust_ratios;  // a row of methods.cpp
constinit const MethodRow trust_ratios{
    .name = "trust_ratios", .used = has_known_norms, .make = make_method<TrustRatiosMethod>};

}  // namespace rehearse::run
