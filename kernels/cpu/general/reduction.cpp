// SPDX-License-Identifier: Apache-2.0
// One value of each of the elements along some axes: samples shared among threads. Dimensions that are reduced alike
// are one; the last of them is a line (lines.hpp), whose elements all go to one result or each to its own.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/general/lines.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels::cpu {
namespace {

enum class Taken { sum, mean, max, min, l1, l2, sumsquare, logsum, logsumexp };
struct Named {
    std::string_view name;
    Taken taken;
    Fold fold;
    Spread spread;
};
constexpr std::array names{
    Named{"sum", Taken::sum, Fold::sum, Spread::alike},
    Named{"mean", Taken::mean, Fold::sum, Spread::alike},
    Named{"max", Taken::max, Fold::most, Spread::equal},
    Named{"min", Taken::min, Fold::least, Spread::equal},
    Named{"l1", Taken::l1, Fold::absolute, Spread::sign},
    Named{"l2", Taken::l2, Fold::squares, Spread::times},
    Named{"sumsquare", Taken::sumsquare, Fold::squares, Spread::times},
    Named{"logsum", Taken::logsum, Fold::sum, Spread::alike},
    Named{"logsumexp", Taken::logsumexp, Fold::most, Spread::exponential},
};

const Named* named(std::string_view function) {
    const auto* const found = std::ranges::find(names, function, &Named::name);
    return found == names.end() ? nullptr : found;
}

class Reduced final : public Shared {
public:
    explicit Reduced(const Problem& problem)
        : Shared(problem, 0),
          op_(std::get<Reduction>(problem.op)),
          how_(*named(op_.function)),
          pass_(problem.pass),
          batch_(problem.batch),
          count_(elements(op_.shape)),
          made_(elements(output_shape(problem.op))),
          room_(whole_lines(2 * made_) + 2 * whole_lines(made_)) {
        find_lines();
        reserve(workers_ * room_);
    }

private:
    void find_lines() {
        const std::vector<std::int64_t> places = kernels::general::reduced_places(op_);
        std::vector<bool> reduced(op_.shape.size(), false);
        for (const std::int64_t axis : op_.axes) reduced[at(axis)] = true;
        bool begun = false;
        for (std::size_t d = op_.shape.size(); d-- > 0;) {
            if (op_.shape[d] == 1) continue;
            if (begun && reduced[d] == lines_.apart) break;  // the next dimension is the other way
            lines_.apart = !reduced[d];
            lines_.size *= op_.shape[d];
            begun = true;
        }
        lines_.count = count_ / lines_.size;
        for (std::int64_t line = 0; line < lines_.count; ++line) targets_.push_back(places[at(line * lines_.size)]);
        lines_.targets = targets_.data();
    }

    // Of one sample: results so far in double, what they are compared with, and factors of gradients.
    struct Room {
        double* results;
        float *other, *factors;
    };
    Room room(float* scratch, std::int64_t worker) const {
        float* const own = scratch + worker * room_;
        float* const other = own + whole_lines(2 * made_);
        return {reinterpret_cast<double*>(own), other, other + whole_lines(made_)};
    }

    void fold(const Room& r, Fold fold, const float* src) const {
        constexpr double infinite = std::numeric_limits<double>::infinity();
        std::fill_n(r.results, made_, fold == Fold::most ? -infinite : fold == Fold::least ? infinite : 0.0);
        fold_lines(fold, lines_, src, r.other, r.results);
    }
    void compare_with_results(const Room& r) const {
        std::transform(r.results, r.results + made_, r.other, [](double most) { return static_cast<float>(most); });
    }

    void compute(const Buffers& b, float* scratch) override {
        share(batch_, 1, workers_, [&](std::int64_t worker, Stretch samples) {
            const Room r = room(scratch, worker);
            for (std::int64_t n = samples.begin; n < samples.end; ++n) {
                if (pass_ == Pass::forward) {
                    forward(r, b.src[0].data() + n * count_, b.dst.data() + n * made_);
                } else {
                    const float* const src = reads_source() ? b.src[0].data() + n * count_ : nullptr;
                    backward(r, src, b.diff_dst.data() + n * made_, b.diff_src[0].data() + n * count_);
                }
            }
        });
    }
    bool reads_source() const { return how_.taken != Taken::sum && how_.taken != Taken::mean; }
    double each() const { return static_cast<double>(count_) / static_cast<double>(made_); }

    void forward(const Room& r, const float* src, float* dst) const {
        fold(r, how_.fold, src);
        if (how_.taken == Taken::logsumexp) {
            compare_with_results(r);
            fold(r, Fold::exponentials, src);
        }
        for (std::int64_t i = 0; i < made_; ++i) dst[i] = static_cast<float>(result(r, i));
    }

    double result(const Room& r, std::int64_t i) const {
        if (how_.taken == Taken::mean) return r.results[i] / each();
        if (how_.taken == Taken::l2) return std::sqrt(r.results[i]);
        if (how_.taken == Taken::logsum) return std::log(r.results[i]);
        if (how_.taken == Taken::logsumexp) return r.other[i] + std::log(r.results[i]);
        return r.results[i];
    }

    void backward(const Room& r, const float* src, const float* diff_dst, float* diff_src) const {
        if (how_.taken == Taken::l2 || how_.taken == Taken::logsum || how_.spread == Spread::equal ||
            how_.spread == Spread::exponential)
            fold(r, how_.fold, src);
        if (how_.spread == Spread::equal || how_.spread == Spread::exponential) {
            compare_with_results(r);
            fold(r, how_.spread == Spread::equal ? Fold::equal : Fold::exponentials, src);
        }
        for (std::int64_t i = 0; i < made_; ++i) r.factors[i] = static_cast<float>(factor(r, i) * diff_dst[i]);
        spread_lines(how_.spread, lines_, src, r.factors, r.other, diff_src);
    }

    // Equal largest ones share the gradient, as the reference has it.
    double factor(const Room& r, std::int64_t i) const {
        if (how_.taken == Taken::sum || how_.taken == Taken::l1) return 1;
        if (how_.taken == Taken::mean) return 1 / each();
        if (how_.taken == Taken::sumsquare) return 2;
        if (how_.taken == Taken::l2) return r.results[i] == 0 ? 0 : 1 / std::sqrt(r.results[i]);
        return 1 / r.results[i];
    }

    Reduction op_;
    Named how_;
    Pass pass_;
    std::int64_t batch_, count_, made_, room_;
    Lines lines_;
    std::vector<std::int64_t> targets_;
};

}  // namespace

bool reduces_by_lines(const Reduction& op) { return named(op.function) != nullptr; }

std::unique_ptr<Kernel> make_reduction(const Problem& problem) { return std::make_unique<Reduced>(problem); }

}  // namespace rehearse::kernels::cpu
