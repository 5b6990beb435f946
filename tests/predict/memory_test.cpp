// SPDX-License-Identifier: Apache-2.0
// What a framework keeps in memory reaches the figures, and what moves takes time. Oracle: bytes counted by hand.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "predict/remarks.hpp"
#include "schedule/memory.hpp"

namespace rehearse::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Job job_under(const char* framework, const char* network, const char* machine, const char* plan) {
    Job job{.network = models::load_network(network),
            .machine = models::load_machine(machine),
            .plan = schedule::parse_plan(plan),
            .devices = {8},
            .batch = 1,
            .optimizer = Optimizer::adam};
    if (*framework != 0) follow(job, models::load_framework(framework));
    return job;
}

schedule::MemoryUse use_of(const Job& job) { return schedule::memory_use(setup_of(job, 8).schedule); }

// DistributedDataParallel's buckets are copies of all gradients, of 4 B each; without it only what arrives has a
// buffer.
TEST(MemoryOfFrameworks, CountsTheBucketsOfDistributedDataParallel) {
    const Job ddp = job_under("pytorch-ddp", "gpt-h256-a4-l4-v1024@64", "dgx-a100", "data");
    const double weights = static_cast<double>(parameters(ddp.network));
    EXPECT_EQ(use_of(ddp).communication.value, 4 * weights);
    EXPECT_EQ(use_of(ddp).gradients.value, 4 * weights);
    EXPECT_LT(use_of(job_under("", "gpt-h256-a4-l4-v1024@64", "dgx-a100", "data")).communication.value, 4 * weights);
}

TEST(MemoryOfFrameworks, IsReadFromProfiles) {
    using Loss = MemoryHabits::Loss;
    const auto of = [](const char* name) { return framework_of(models::load_framework(name), Optimizer::adam).memory; };
    EXPECT_EQ(of("pytorch-ddp").loss, Loss::operators);
    EXPECT_EQ(of("pytorch-ddp").pool_index, 8);
    EXPECT_TRUE(of("pytorch-ddp").bucket_copies);
    EXPECT_FALSE(of("pytorch-fsdp").bucket_copies);
    EXPECT_EQ(of("megatron-lm").loss, Loss::fused);
    EXPECT_EQ(of("megatron-lm").keeps_probabilities, true);
    EXPECT_EQ(of("megatron-core").keeps_probabilities, false);
    EXPECT_EQ(of("rehearse").loss, std::nullopt);
    for (const auto& [name, value] : {std::pair{"loss", "some"}, {"bucket_memory", "views"}, {"pool_index", "-1B"}}) {
        const models::FrameworkProfile wrong{.name = "mine", .summary = "", .settings = {{name, value, "guessed"}}};
        EXPECT_THROW(static_cast<void>(memory_habits_of(wrong)), InputError) << name;
    }
}

// Megatron-LM of 2021: 5 a s^2 bytes of probabilities a block and sample in 16 bits (Korthikanti et al. 2022), and the
// time that moves them. The plan's attention=fused has neither.
TEST(MemoryOfFrameworks, AndItsTimeAreOfTheSameAttention) {
    const auto setup = [](const char* plan) {
        Job job = job_under("megatron-lm", "gpt-h1024-a16-l2-v1024@2048", "selene", plan);
        job.precision = Precision::mixed;
        job.bands = false;
        return job;
    };
    const double scores = 5.0 * 16 * 2048 * 2048;
    const Job kept = setup("data"), fused = setup("data:attention=fused");
    EXPECT_EQ((use_of(kept).activations - use_of(fused).activations).value, 2 * scores);
    EXPECT_EQ(use_of(kept).activations, use_of(setup("data:attention=kept")).activations);
    const auto step = [](const Job& job) { return predict(job).points.at(0).figures.time.step; };
    EXPECT_GT(step(kept), step(fused));
    EXPECT_NEAR(step(setup("data:attention=kept")) / step(kept), 1, 1e-9);  // SimGrid's clock has gone on
    EXPECT_THAT(attention_notes(setup_of(kept, 8)), ElementsAre(HasSubstr("as under megatron-lm-2021")));
    EXPECT_THAT(attention_notes(setup_of(fused, 8)), IsEmpty());
}

// VGG's layers add nothing to what they went around; a residual network's blocks do, and hold less for it.
TEST(MemoryOfFrameworks, IsToldWhereRecomputationSavesNone) {
    const auto notes = [](const char* network, const char* plan) {
        return recompute_notes(setup_of(job_under("", network, "dgx-a100", plan), 8));
    };
    EXPECT_THAT(notes("vgg16", "data:recompute=blocks"), ElementsAre(HasSubstr("nothing is computed again")));
    EXPECT_THAT(notes("resnet50", "data:recompute=blocks"), IsEmpty());
    EXPECT_THAT(notes("vgg16", "data"), IsEmpty());
    EXPECT_THAT(notes("deeplabv3plus", "data:recompute=blocks"), ElementsAre(HasSubstr("saves no memory")));
}

}  // namespace
}  // namespace rehearse::predict
