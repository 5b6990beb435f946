// SPDX-License-Identifier: Apache-2.0
#include "kernels/support.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels {

std::string_view to_string(Accumulation accumulation) {
    if (accumulation == Accumulation::f32) return "f32";
    if (accumulation == Accumulation::tf32) return "tf32";
    return accumulation == Accumulation::chunked ? "chunked" : "f16";
}

Support supported_by_any(const Problem& problem) {
    if (const auto* unknown = std::get_if<Unknown>(&problem.op)) {
        return {.yes = false,
                .reason = fmt::format("'{}' is an unknown operator: it can be costed, not run", unknown->type)};
    }
    if (std::string why = general::why_not(problem.op); !why.empty()) return {.yes = false, .reason = std::move(why)};
    if (std::holds_alternative<Communication>(problem.op)) {
        return {.yes = false, .reason = "a communication takes several ranks: it can be costed, not run as a kernel"};
    }
    const bool copies = std::holds_alternative<Flatten>(problem.op) &&
                        (problem.pass == Pass::forward || problem.pass == Pass::backward_data);
    if (!has_pass(problem.op, problem.pass) && !copies) {
        return {.yes = false, .reason = fmt::format("{} has no {}", kind_of(problem.op), to_string(problem.pass))};
    }
    if (problem.batch < 1) {
        return {.yes = false, .reason = fmt::format("the batch is {}, must be at least 1", problem.batch)};
    }
    if (const std::int64_t group = routing_group(problem.op); problem.batch % group != 0) {
        return {.yes = false,
                .reason = fmt::format("the batch is {}, must be of whole groups of {}", problem.batch, group)};
    }
    if (const auto* dropout = std::get_if<Dropout>(&problem.op);
        dropout != nullptr && (dropout->keep <= 0 || dropout->keep > 1)) {
        return {.yes = false, .reason = fmt::format("keep is {}, must be above 0 and at most 1", dropout->keep)};
    }
    return {};
}

void require_supported(const Backend& backend, const Problem& problem) {
    const Support support = backend.supports(problem);
    if (support.yes) return;
    throw BackendError(fmt::format("{} cannot run {}: {}", backend.name(), to_string(problem), support.reason));
}

}  // namespace rehearse::kernels
