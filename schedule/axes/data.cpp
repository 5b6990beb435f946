// SPDX-License-Identifier: Apache-2.0
// The data axis: who works on which samples, in how many parts. What becomes of the gradients is in methods/.
#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "schedule/axes/axis.hpp"

namespace rehearse::schedule {

namespace {

void read_data(Plan& plan, std::string_view size) { add_axis(plan, "data", size); }

/// "3+1", "8x2+8x1": copies with 2 parts of the batch, and with 1.
void read_shares(Plan& plan, std::string_view value) {
    plan.shares = {.balanced = value == "balanced"};
    if (value == "balanced" || value == "even") return;
    plan.shares.parts = read_terms("shares", value);
}

constexpr std::array words{
    Word{{"data", "N", "N copies of the network, each on its share of the batch; without =N: as many as devices", {}},
         read_data},
    Word{{"shares", "even|balanced|A+B+...",
          "how the copies share the batch; balanced: so that all take as long, by the prices and the memory of the "
          "devices that each is on; A+B+...: in these proportions, NxA for N copies; default even",
          "data"},
         read_shares},
    micro_batches_of("data"),
    Word{{"microbatch", "N", "the batch in parts of N samples, instead of microbatches", "data"}, read_micro_batch},
    recompute_of("data"),
    attention_of("data"),
};

constexpr std::array conflicts_of_shares{
    Conflict{"microbatch", When::never, "each copy's are of another size", {}, "say how many: microbatches"},
    Conflict{"dense=shared", When::never, "ranks gather as many samples from each other"},
    Conflict{"tables=shared", When::never, "ranks look up as many samples of each other"},
    Conflict{"kfac", When::never, "factors are means over as many rows of each rank"},
    Conflict{"allreduce=adasum", When::never, "it combines means of as many samples"},
};
constexpr std::array conflicts_of_microbatch{
    Conflict{"microbatches",
             When::never,
             "one says how many parts the batch is in, the other how large they are",
             {},
             "give one"},
};
constexpr std::array conflicts_of_recomputed_attention{
    Conflict{"attention=fused", When::never, "it makes again what fused attention never keeps"},
};

constexpr std::array features{
    Feature{"data", "data", [](const Asked& a) { return has_axis(a.plan, "data"); }},
    Feature{"shares", "data:shares=balanced", [](const Asked& a) { return a.plan.shares != BatchShares{}; },
            conflicts_of_shares},
    Feature{"microbatches", "data:microbatches=2", [](const Asked& a) { return a.plan.micro_batches > 0; }},
    Feature{"microbatch", "data:microbatch=1", [](const Asked& a) { return a.plan.micro_batch > 0; },
            conflicts_of_microbatch},
    Feature{"recompute=on", "data:recompute=on", [](const Asked& a) { return a.plan.recompute == Recompute::all; }},
    Feature{"recompute=blocks", "data:recompute=blocks",
            [](const Asked& a) { return a.plan.recompute == Recompute::blocks; }},
    Feature{"recompute=attention", "data:recompute=attention",
            [](const Asked& a) { return a.plan.recompute == Recompute::attention; }, conflicts_of_recomputed_attention},
    Feature{"attention=fused", "data:attention=fused",
            [](const Asked& a) { return a.plan.keep_attention && !*a.plan.keep_attention; }},
};

void complete(Plan& plan) {
    if (!plan.keep_attention && plan.recompute == Recompute::attention) plan.keep_attention = true;
    if (plan.micro_batches == 0 && plan.micro_batch == 0 && !has_axis(plan, "pipe")) plan.micro_batches = 1;
    const int data = axis_index(plan.mesh, "data");
    const std::int64_t copies = data < 0 ? 0 : plan.mesh.axes[static_cast<std::size_t>(data)].size;
    const auto parts = static_cast<std::int64_t>(plan.shares.parts.size());
    if (parts > 0 && copies > 0 && parts != copies) {
        throw InputError(fmt::format("shares are of {} copies, but data={}; NxA stands for N copies with A parts each",
                                     parts, copies));
    }
}

}  // namespace

constinit const PlanAxis data{{words, features, complete}};

}  // namespace rehearse::schedule
