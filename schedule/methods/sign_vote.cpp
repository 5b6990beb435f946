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
    Conflict{"shares", When::never, equal_votes},
    Conflict{"allreduce=adasum", When::never, "votes are counted, gradients not combined"},
    Conflict{"compress=fp16", When::never, signs_already},
    Conflict{"compress=1bit", When::never, signs_already},
    Conflict{"compress=top", When::never, signs_already},
    Conflict{"local", When::never, no_gradients},
    Conflict{"server", When::never, "a server takes one push after the other, of which none is a vote", "groups",
             "let groups of ranks vote: groups=N"},
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
        if (buckets_.sharing(bucket) == 1) return true;  // nobody to vote with: its gradients are applied
        const BucketSteps::Summed summed = buckets_.sum_of_samples(bucket);
        if (summed.along == none) return true;
        const std::int64_t whole = context_.part.buckets[at(bucket)].elements;
        const std::int64_t ranks = size_of(context_.schedule.mesh, summed.along);
        Communicate action = buckets_.message(bucket, CollectiveKind::all_gather);
        action.axis = AxisIndex{summed.along};
        action.content = Content::compressed;
        action.type = DataType::f32;
        action.elements = ranks * words_of_signs(whole);
        action.beside = {{sum_of(whole), 1 + ranks}};  // signs are taken of gradients, and of all ranks counted
        context_.ready_by[at(bucket)] = buckets_.append(std::move(action), summed.after);
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
