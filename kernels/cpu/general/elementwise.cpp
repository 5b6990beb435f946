// SPDX-License-Identifier: Apache-2.0
// Functions of each element. What is dense or repeated in all operands from some dimension on is one row; rows are
// shared among threads, where a gradient is a sum over them, samples are.
#include <algorithm>
#include <optional>
#include <vector>

#include "core/index.hpp"
#include "kernels/cpu/general/arithmetic.hpp"
#include "kernels/cpu/general/curves.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/general/lines.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/general/functions.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels::cpu {
namespace {

using kernels::general::Arguments;
using kernels::general::Function;

// The operands of a row: where they begin, and 1, or 0 for one number that is repeated.
struct Row {
    const float* from[most_operands];
    std::int64_t step[most_operands];
    std::size_t operands;
    std::int64_t size;
};

template <std::size_t count>
void load(const Row& row, std::int64_t i, float* args) {
    for (std::size_t k = 0; k < count; ++k) args[k] = row.from[k][i * row.step[k]];
}

// result(arguments, i) of each element, by as many operands as the compiler can be told of.
template <std::size_t count, typename Result>
void along(const Row& row, Result result) {
    const bool dense = std::all_of(row.step, row.step + row.operands, [](std::int64_t step) { return step == 1; });
    if (dense && count <= 2) {
        for (std::int64_t i = 0; i < row.size; ++i) {
            float args[count];
            for (std::size_t k = 0; k < count; ++k) args[k] = row.from[k][i];
            result(Arguments<float>{args, count}, i);
        }
        return;
    }
    for (std::int64_t i = 0; i < row.size; ++i) {
        float args[count];
        load<count>(row, i, args);
        result(Arguments<float>{args, count}, i);
    }
}

template <typename Result>
void along(const Row& row, Result result) {
    if (row.operands == 1) return along<1>(row, result);
    if (row.operands == 2) return along<2>(row, result);
    if (row.operands == 3) return along<3>(row, result);
    for (std::int64_t i = 0; i < row.size; ++i) {
        float args[most_operands];
        for (std::size_t k = 0; k < row.operands; ++k) args[k] = row.from[k][i * row.step[k]];
        result(Arguments<float>{args, row.operands}, i);
    }
}

struct Part {
    kernels::general::Operand operand;
    std::vector<std::int64_t> strides;  // along the result's dimensions
    std::vector<std::int64_t> begins;   // of each row
    std::int64_t step = 0;              // within a row
    float number = 0;
    bool dense = false;  // every element of a sample once, in order
};

class Elements final : public Shared {
public:
    explicit Elements(const Problem& problem)
        : Shared(problem, 0),
          op_(std::get<Elementwise>(problem.op)),
          pass_(problem.pass),
          batch_(problem.batch),
          count_(elements(op_.shape)),
          function_(*kernels::general::function_of(op_.function)),
          reads_(pass_ == Pass::forward || rehearse::reads(problem.op, pass_).src) {
        for (const auto& operand : kernels::general::operands_of(op_)) {
            Part part{operand, std::vector<std::int64_t>(op_.shape.size(), 0), {}};
            if (operand.kind == 'n') part.number = static_cast<float>(op_.numbers[operand.number]);
            if (operand.kind == 'x') part.strides = kernels::general::strides_in(op_.inputs[operand.number], op_.shape);
            if (operand.kind == 'c')
                part.strides = kernels::general::strides_in(op_.constants[operand.number], op_.shape);
            parts_.push_back(std::move(part));
        }
        find_weights();
        find_rows();
        // Sums of gradients in double, each worker's own: of a sample's operand, or of all weights.
        for (const Part& part : parts_)
            if (part.operand.kind == wanted()) sums_ += whole_lines(2 * part.operand.size);
        if (pass_ != Pass::forward) reserve(workers_ * sums_);
    }

private:
    char wanted() const { return pass_ == Pass::backward_data ? 'x' : 'w'; }

    // Weights that do not broadcast are told apart when the kernel runs: they have no strides.
    void find_weights() {
        for (Part& part : parts_) {
            if (part.operand.kind != 'w') continue;
            try {
                part.strides = kernels::general::strides_in(op_.weights[part.operand.number], op_.shape);
            } catch (const std::exception&) {
                part.strides = kernels::general::strides_of(op_.shape);  // of what was chosen
            }
        }
    }

    void find_rows() {
        std::size_t first = op_.shape.size();
        const std::vector<std::int64_t> dense = kernels::general::strides_of(op_.shape);
        const auto one_row = [&](std::size_t from) {
            return std::ranges::all_of(parts_, [&](const Part& part) {
                bool repeated = true, whole = true;
                for (std::size_t d = from; d < op_.shape.size(); ++d) {
                    repeated = repeated && (part.strides[d] == 0 || op_.shape[d] == 1);
                    whole = whole && (part.strides[d] == dense[d] || op_.shape[d] == 1);
                }
                return repeated || whole;
            });
        };
        while (first > 0 && one_row(first - 1)) --first;
        const Shape outer(op_.shape.begin(), op_.shape.begin() + static_cast<std::ptrdiff_t>(first));
        size_ = count_ / elements(outer);
        rows_ = elements(outer);
        for (Part& part : parts_) {
            for (std::size_t d = first; d < op_.shape.size(); ++d)
                if (part.strides[d] != 0 && op_.shape[d] > 1) part.step = 1;
            const std::vector<std::int64_t> strides(part.strides.begin(),
                                                    part.strides.begin() + static_cast<std::ptrdiff_t>(first));
            part.begins.resize(at(rows_));
            kernels::general::for_each_place(outer, strides,
                                             [&](std::int64_t i, std::int64_t offset) { part.begins[at(i)] = offset; });
            part.dense = part.strides == dense || (part.operand.kind != 'n' && part.operand.size == count_);
        }
    }

    Row row(const Buffers& b, const std::vector<std::vector<float>>& chosen, std::int64_t sample,
            std::int64_t r) const {
        Row all{{}, {}, parts_.size(), size_};
        static constexpr float nothing = 0;
        for (std::size_t k = 0; k < parts_.size(); ++k) {
            const Part& part = parts_[k];
            const std::int64_t begin = part.begins[at(r)];
            all.step[k] = part.step;
            if (part.operand.kind == 'n') {
                all.from[k] = &part.number;
            } else if (part.operand.kind == 'c') {
                all.from[k] = b.fixed[part.operand.number].data() + begin;
            } else if (!reads_) {
                all.from[k] = &nothing;
                all.step[k] = 0;
            } else if (part.operand.kind == 'x') {
                all.from[k] = b.src[part.operand.number].data() + sample * part.operand.size + begin;
            } else if (!chosen[k].empty()) {
                all.from[k] = chosen[k].data() + r * size_;  // of each element its own
                all.step[k] = 1;
            } else {
                all.from[k] = b.weights.data() + part.operand.offset + begin;
            }
        }
        return all;
    }

    // Weights as they are meant, where some are chosen.
    std::vector<std::vector<float>> chosen_weights(const Buffers& b) const {
        std::vector<std::vector<float>> all(parts_.size());
        for (std::size_t k = 0; k < parts_.size() && reads_; ++k) {
            const auto& operand = parts_[k].operand;
            if (!is_chosen(b, parts_[k])) continue;
            const std::vector<std::int32_t>& places = b.chosen[operand.number];
            all[k].resize(places.size());
            for (std::size_t i = 0; i < places.size(); ++i) all[k][i] = b.weights[operand.offset + places[i]];
        }
        return all;
    }
    static bool is_chosen(const Buffers& b, const Part& part) {
        return part.operand.kind == 'w' && part.operand.number < b.chosen.size() &&
               !b.chosen[part.operand.number].empty();
    }

    void compute(const Buffers& b, float* scratch) override {
        const std::vector<std::vector<float>> chosen = chosen_weights(b);
        if (pass_ == Pass::forward) {
            float* const dst = b.dst.data();
            return share(batch_ * rows_, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
                for (std::int64_t i = part.begin; i < part.end; ++i) {
                    const Row one = row(b, chosen, i / rows_, i % rows_);
                    forward(one, dst + i * size_);
                }
            });
        }
        backward(b, chosen, reinterpret_cast<double*>(scratch));
    }

    // What bends and takes numbers besides goes by vectors.
    std::optional<Curve> curve(const Row& row) const {
        using enum Function;
        const bool alone =
            std::all_of(row.step + 1, row.step + row.operands, [](std::int64_t step) { return step == 0; });
        if (!is_curve(function_) || row.step[0] != 1 || !alone) return std::nullopt;
        const double first = function_ == selu ? kernels::general::selu_alpha : 1;
        return Curve{function_, row.operands > 1 ? *row.from[1] : static_cast<float>(first),
                     row.operands > 2 ? *row.from[2] : static_cast<float>(kernels::general::selu_gamma)};
    }

    // What is a few operations goes by vectors, too, where a row fills some.
    std::optional<ArithmeticRow> arithmetic(const Row& row) const {
        constexpr std::int64_t least = 16;
        if (row.size < least || !is_arithmetic(function_, row.operands)) return std::nullopt;
        ArithmeticRow all{.operands = row.operands, .size = row.size};
        std::copy_n(row.from, row.operands, all.from);
        std::copy_n(row.step, row.operands, all.step);
        return all;
    }

    void forward(const Row& one, float* dst) const {
        if (const auto bent = curve(one)) return along_curve(*bent, one.from[0], one.size, dst);
        if (const auto plain = arithmetic(one)) return along_arithmetic(function_, *plain, dst);
        kernels::general::with_function(function_, [&]<Function f>() {
            along(one,
                  [&](const Arguments<float>& args, std::int64_t i) { dst[i] = kernels::general::value<f>(args); });
        });
    }

    // to(i, gradient) of operand k along a row.
    template <typename To>
    void slopes(const Row& one, std::size_t k, const float* diff_dst, To to) const {
        kernels::general::with_function(function_, [&]<Function f>() {
            along(one, [&](const Arguments<float>& args, std::int64_t i) {
                const float slope = kernels::general::slope<f>(args, k);
                to(i, slope == 0 ? 0.0F : slope * diff_dst[i]);
            });
        });
    }

    void backward(const Buffers& b, const std::vector<std::vector<float>>& chosen, double* scratch) {
        const float* const diff_dst = b.diff_dst.data();
        if (pass_ == Pass::backward_weights) std::fill_n(scratch, workers_ * sums_ / 2, 0.0);
        share(batch_, 1, workers_, [&](std::int64_t worker, Stretch samples) {
            double* const own = scratch + worker * sums_ / 2;
            for (std::int64_t n = samples.begin; n < samples.end; ++n) {
                double* sums = own;
                for (std::size_t k = 0; k < parts_.size(); ++k) {
                    const Part& part = parts_[k];
                    if (part.operand.kind != wanted()) continue;
                    const View diff_src = pass_ == Pass::backward_data ? b.diff_src[part.operand.number] : View{};
                    if (pass_ == Pass::backward_weights || !diff_src.empty())
                        of_operand(b, chosen, n, k, diff_dst, diff_src, sums);
                    sums += whole_lines(2 * part.operand.size) / 2;
                }
            }
        });
        if (pass_ != Pass::backward_weights) return;
        std::int64_t begin = 0;
        for (const Part& part : parts_) {
            if (part.operand.kind != 'w') continue;
            for (std::int64_t i = 0; i < part.operand.size; ++i) {
                double sum = 0;
                for (std::int64_t worker = 0; worker < workers_; ++worker)
                    sum += scratch[worker * sums_ / 2 + begin + i];
                b.diff_weights[part.operand.offset + i] = static_cast<float>(sum);
            }
            begin += whole_lines(2 * part.operand.size) / 2;
        }
    }

    // Gradients of a row, some at a time, added to one sum each or all to one.
    void add_slopes(ArithmeticRow row, std::size_t k, const float* g, double* sums, bool apart) const {
        constexpr std::int64_t most = 1024, first = 0;
        float gradients[most];
        for (std::int64_t left = row.size; left > 0; left -= most) {
            row.size = std::min(left, most);
            slopes_of_arithmetic(function_, row, k, g, gradients);
            fold_lines(Fold::sum, {.targets = &first, .count = 1, .size = row.size, .apart = apart}, gradients, nullptr,
                       sums);
            for (std::size_t i = 0; i < row.operands; ++i) row.from[i] += most * row.step[i];
            g += most;
            if (apart) sums += most;
        }
    }

    void of_operand(const Buffers& b, const std::vector<std::vector<float>>& chosen, std::int64_t n, std::size_t k,
                    const float* diff_dst, View diff_src, double* sums) const {
        const Part& part = parts_[k];
        const bool direct = pass_ == Pass::backward_data && part.dense;
        if (pass_ == Pass::backward_data && !direct) std::fill_n(sums, part.operand.size, 0.0);
        const std::int32_t* const places = is_chosen(b, part) ? b.chosen[part.operand.number].data() : nullptr;
        for (std::int64_t r = 0; r < rows_; ++r) {
            const Row one = row(b, chosen, n, r);
            const float* const g = diff_dst + n * count_ + r * size_;
            if (direct) {
                float* const to = diff_src.data() + n * count_ + r * size_;
                if (const auto bent = curve(one); bent && k == 0) {
                    slopes_of_curve(*bent, one.from[0], g, one.size, to);
                } else if (const auto plain = arithmetic(one)) {
                    slopes_of_arithmetic(function_, *plain, k, g, to);
                } else {
                    slopes(one, k, g, [&](std::int64_t i, float gradient) { to[i] = gradient; });
                }
            } else if (places != nullptr) {
                slopes(one, k, g, [&](std::int64_t i, float gradient) { sums[places[r * size_ + i]] += gradient; });
            } else if (const auto plain = arithmetic(one)) {
                add_slopes(*plain, k, g, sums + part.begins[at(r)], part.step == 1);
            } else if (part.step == 1) {
                double* const to = sums + part.begins[at(r)];
                slopes(one, k, g, [&](std::int64_t i, float gradient) { to[i] += gradient; });
            } else {
                double sum = 0;
                slopes(one, k, g, [&](std::int64_t /*i*/, float gradient) { sum += gradient; });
                sums[part.begins[at(r)]] += sum;
            }
        }
        if (pass_ != Pass::backward_data || direct) return;
        for (std::int64_t i = 0; i < part.operand.size; ++i)
            diff_src[n * part.operand.size + i] = static_cast<float>(sums[i]);
    }

    Elementwise op_;
    Pass pass_;
    std::int64_t batch_, count_, size_ = 1, rows_ = 1, sums_ = 0;
    Function function_;
    bool reads_;
    std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_elementwise(const Problem& problem) { return std::make_unique<Elements>(problem); }

}  // namespace rehearse::kernels::cpu
