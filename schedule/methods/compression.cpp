// SPDX-License-Identifier: Apache-2.0
// Gradients in fewer bits: rounded to 16 on the wire and summed, or as signs (Seide et al. 2014) or the largest of them
// (Aji and Heafield 2017), gathered, with what is left out kept for the next step.
#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "core/methods/compression.hpp"
#include "core/precision.hpp"
#include "schedule/axes/tables.hpp"
#include "schedule/bucket_steps.hpp"
#include "schedule/memory.hpp"
#include "schedule/methods/method.hpp"
#include "schedule/step_context.hpp"

namespace rehearse::schedule {

namespace {

using Kind = Compression::Kind;

void read_compress(Plan& plan, std::string_view value) {
    if (value == "1bit") {
        plan.methods.edit<Compression>() = {Kind::one_bit, 0};
    } else if (value.starts_with("top(") && value.ends_with(")")) {
        plan.methods.edit<Compression>() = {Kind::top, read_share("top", value.substr(4, value.size() - 5), 1)};
    } else if (value == "fp16" || value == "bf16") {
        plan.methods.edit<Rounding>().type = value == "fp16" ? DataType::f16 : DataType::bf16;
    } else {
        throw InputError(
            fmt::format("compress={}: write fp16 or bf16, what gradients are rounded to, 1bit, or the share of them "
                        "that is sent, like top(0.01)",
                        value));
    }
}

constexpr std::array words{
    Word{{"compress", "fp16|bf16|1bit|top(SHARE)",
          "gradients are rounded for the wire, and summed in 16 bits; or sent as signs, or only the largest of them, "
          "and what is left out is kept for the next step; default: as they are",
          "data"},
         read_compress},
};

constexpr std::array features{
    Feature{"compress=fp16", "data:compress=fp16",
            [](const Asked& a) { return a.plan.methods.get<Rounding>().type.has_value(); }},
    Feature{"compress=1bit", "data:compress=1bit",
            [](const Asked& a) { return a.plan.methods.get<Compression>().kind == Kind::one_bit; }},
    Feature{"compress=top", "data:compress=top(0.25)",
            [](const Asked& a) { return a.plan.methods.get<Compression>().kind == Kind::top; }},
};

class CompressedSteps : public MethodSteps {
public:
    using MethodSteps::MethodSteps;

    bool sum(int bucket) override {
        if (buckets_.sharing(bucket) == 1) return true;
        const BucketSteps::Summed summed = buckets_.sum_of_samples(bucket);
        if (summed.along == none) return true;  // it is the whole batch's
        const std::int64_t ranks = size_of(context_.schedule.mesh, summed.along);
        const auto& by = context_.schedule.methods.get<Compression>();
        const std::int64_t whole = context_.part.buckets[at(bucket)].elements;
        Communicate action = buckets_.message(bucket, CollectiveKind::all_gather);
        action.axis = AxisIndex{summed.along};
        action.content = Content::compressed;
        action.type = DataType::f32;
        action.elements = ranks * compressed_words(by, whole);
        // Gradients and what was left out; what is chosen of them; what all ranks send.
        action.beside = {{sum_of(whole), 2}};
        action.beside.push_back(by.kind == Kind::one_bit ? Work{sum_of(whole), ranks} : Work{sum_of(action.elements)});
        context_.ready_by[at(bucket)] = buckets_.append(std::move(action), summed.after);
        return true;
    }
};

std::unique_ptr<MethodSteps> steps(StepContext& context, BucketSteps& buckets) {
    return context.schedule.methods.get<Compression>() == Compression{}
               ? nullptr
               : std::make_unique<CompressedSteps>(context, buckets);
}

/// What has not been sent yet.
void add_memory(const Schedule& schedule, const RankClass& rank_class, MemoryUse& use) {
    if (schedule.methods.get<Compression>() == Compression{}) return;
    for (const Bucket& bucket : rank_class.part.buckets) {
        if (updates_directly(rank_class.part.network, bucket)) continue;
        use.gradients += static_cast<double>(bucket.elements) * size_of(wire_type(schedule.precision));
    }
}

}  // namespace

extern const Method compression;  // a row of table.cpp
constinit const Method compression{
    .name = "compression",
    .summary = "gradients travel in fewer bits",
    .vocabulary = {words, features},
    .as_vectors = [](const Plan& plan) { return plan.methods.get<Compression>() != Compression{}; },
    .add_memory = add_memory,
    .steps = steps};

}  // namespace rehearse::schedule
