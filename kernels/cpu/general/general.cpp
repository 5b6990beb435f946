// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/general/general.hpp"

#include <fmt/format.h>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/general/by_data.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels::cpu {
namespace {

template <typename... Kinds>
bool is_one(const Op& op) {
    return (std::holds_alternative<Kinds>(op) || ...);
}

class General final : public Algorithm {
public:
    std::string_view algorithm() const override { return "general"; }

private:
    std::string refusal(const Problem& problem) const override {
        const Op& op = problem.op;
        const auto* each = std::get_if<Elementwise>(&op);
        if (each != nullptr && each->function != "rotary" &&
            kernels::general::operands_of(*each).size() > most_operands)
            return fmt::format("general takes up to {} operands", most_operands);
        if (is_one<Elementwise, Rearrangement, Parameter, BatchedMatMul, Normalization, SoftmaxAlong, Recurrent>(op))
            return {};
        if (const auto* picked = std::get_if<Gather>(&op); picked != nullptr && !picked->scatter) return {};
        if (const auto* reduction = std::get_if<Reduction>(&op)) {
            if (reduces_by_lines(*reduction)) return {};
            return fmt::format("general has no reduction by {}", reduction->function);
        }
        return fmt::format("general runs what moves, multiplies, normalizes, reduces or looks at each element, not {}",
                           kind_of(op));
    }
    std::int64_t kept(const Op& op, std::int64_t batch) const override {
        const auto* cells = std::get_if<Recurrent>(&op);
        return cells == nullptr ? 0 : kernels::general::recurrent_workspace(*cells, batch);
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        const Op& op = problem.op;
        if (const auto* each = std::get_if<Elementwise>(&op))
            return each->function == "rotary" ? make_rotary(problem) : make_elementwise(problem);
        if (const auto* moved = std::get_if<Rearrangement>(&op); moved != nullptr && kernels::general::by_data(*moved))
            return make_by_data(problem);
        if (const auto* moved = std::get_if<Rearrangement>(&op); moved != nullptr && moves_last_dimension(*moved))
            return make_transposition(problem);
        if (is_one<Rearrangement, Gather, Parameter>(op)) return make_movement(problem);
        if (std::holds_alternative<BatchedMatMul>(op)) return make_stack(problem);
        if (std::holds_alternative<Recurrent>(op)) return make_recurrent(problem);
        if (std::holds_alternative<Reduction>(op)) return make_reduction(problem);
        return make_sets(problem);
    }
};

}  // namespace

const Backend& general() {
    static const General general;
    return general;
}

}  // namespace rehearse::kernels::cpu
