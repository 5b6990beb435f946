// SPDX-License-Identifier: Apache-2.0
// Gradient lag (Kurth et al. 2018, section V-B4): a step sums the gradients of the step before it, beside all of its
// own computation, and updates by these.
#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/methods/lag.hpp"
#include "core/precision.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/memory.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

void read_lag(Plan& plan, std::string_view value) {
    if (value != "0" && value != "1") throw InputError(fmt::format("lag={}: write 0 or 1", value));
    plan.methods.edit<Lag>().steps = value.front() - '0';
}

constexpr std::array words{
    Word{{"lag", "0|1", "1: gradients are summed during the next step, and applied at its end; default 0", "data"},
         read_lag},
};

constexpr std::array conflicts{
    Conflict{"overlap=off", When::never, "it sums gradients beside the whole next step"},
    Conflict{"pipedream", When::never, "schedule=pipedream updates after every micro-batch"},
};
constexpr std::array features{
    Feature{"lag=1", "data:lag=1", [](const Asked& a) { return a.plan.methods.get<Lag>().steps > 0; }, conflicts},
};

class LagSteps : public MethodSteps {
public:
    using MethodSteps::MethodSteps;

    void begin() override { buckets_.sum_rest(true); }
};

std::unique_ptr<MethodSteps> steps(StepContext& context, BucketSteps& buckets) {
    return context.schedule.methods.get<Lag>().steps > 0 ? std::make_unique<LagSteps>(context, buckets) : nullptr;
}

/// The gradients of the step before.
void add_memory(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use) {
    use.gradients += schedule.methods.get<Lag>().steps * static_cast<double>(parameters(rank_class.part.network)) *
                     size_of(wire_type(schedule.precision));
}

}  // namespace

extern const Method lag;  // a row of table.cpp
constinit const Method lag{.name = "lag",
                           .summary = "a step updates by the gradients of the step before it",
                           .vocabulary = {words, features},
                           .add_memory = add_memory,
                           .steps = steps};

}  // namespace rehearse::schedule
