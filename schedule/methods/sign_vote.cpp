// SPDX-License-Identifier: Apache-2.0
// SignSGD (Bernstein et al. 2018): ranks gather the signs of each other's gradients, and the majority decides.
#include "core/methods/sign_vote.hpp"

#include <array>

#include "schedule/bucket_steps.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

void read_signs(Plan& plan, std::string_view value) {
    plan.methods.edit<SignVote>().on = read_choice("signs", value, "off", "vote");
}

constexpr std::array words{
    Word{{"signs", "off|vote",
          "vote: ranks send the signs of their gradients, and all update by that which most of them have (signSGD); "
          "default off",
          "data"},
         read_signs},
};

constexpr std::string_view equal_votes = "a rank with fewer samples would have the same vote";
constexpr std::string_view no_gradients = "no gradients are sent";
constexpr std::string_view signs_already = "signs are sent already";
constexpr std::array conflicts{
    Conflict{"zero=3", When::later, "zero=3 sums gradients after each micro-batch"},
    Conflict{"sequence=on", When::later, "gradients of shared rows would have to be summed before"},
    Conflict{"spatial", When::never, "a rank's gradients are of pieces of images: their sum has a sign, they have not"},
    Conflict{"shares", When::never, equal_votes},
    Conflict{"allreduce=adasum", When::never, "votes are counted, gradients not combined"},
    Conflict{"compress=fp16", When::never, signs_already},
    Conflict{"compress=1bit", When::never, signs_already},
    Conflict{"compress=top", When::never, signs_already},
    Conflict{"local", When::never, no_gradients},
    Conflict{"server", When::later, "servers are sent gradients as they are"},
    Conflict{"kfac", When::never, "directions are of sums of gradients"},
};
constexpr std::array features{
    Feature{"signs=vote", "data:signs=vote", [](const Asked& a) { return a.plan.methods.get<SignVote>().on; },
            conflicts},
};

class VotedSteps : public MethodSteps {
public:
    using MethodSteps::MethodSteps;

    bool sum(int bucket) override {
        const std::int64_t ranks = buckets_.sharing(bucket), whole = context_.part.buckets[at(bucket)].elements;
        if (ranks == 1) return true;  // nobody to vote with: its gradients are applied
        Communicate action = buckets_.message(bucket, CollectiveKind::all_gather);
        action.content = Content::compressed;
        action.type = DataType::f32;
        action.elements = ranks * words_of_signs(whole);
        action.beside = {{sum_of(whole), 1 + ranks}};  // signs are taken of gradients, and of all ranks counted
        context_.ready_by[at(bucket)] = buckets_.append(std::move(action), {context_.last_compute});
        return true;
    }
};

}  // namespace

extern const Method sign_vote;  // a row of table.cpp
constinit const Method sign_vote{
    .name = "sign_vote",
    .summary = "ranks vote on the signs of gradients",
    .vocabulary = {words, features},
    .as_vectors = [](const Plan& plan) { return plan.methods.get<SignVote>().on; },
    .steps = [](StepContext& context, BucketSteps& buckets) -> std::unique_ptr<MethodSteps> {
        if (!context.schedule.methods.get<SignVote>().on) return nullptr;
        return std::make_unique<VotedSteps>(context, buckets);
    }};

}  // namespace rehearse::schedule
