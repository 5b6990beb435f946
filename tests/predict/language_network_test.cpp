// SPDX-License-Identifier: Apache-2.0
// Oracle: sizes from the models' cards.
#include "predict/language_network.hpp"

#include <gmock/gmock.h>

#include "models/huggingface/families.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"

namespace rehearse::predict {
namespace {

Framework megatron_core() { return framework_of(models::load_framework("megatron-core"), Optimizer::adam); }

Job job_of(const std::string& network, const std::string& plan, std::int64_t batch) {
    return {.network = models::load_network(network),
            .machine = models::load_machine("selene"),
            .plan = schedule::parse_plan(plan),
            .devices = {8},
            .global_batch = batch,
            .precision = Precision::bf16,
            .optimizer = Optimizer::adam,
            .framework = megatron_core()};
}

TEST(LanguageNetwork, IsToldByItsOperators) {
    const auto llama = language_model_of(models::load_network("llama3-8b@4096"));
    ASSERT_TRUE(llama.has_value());
    EXPECT_EQ(llama->layers, 32);
    EXPECT_EQ(llama->hidden, 4096);
    EXPECT_EQ(llama->heads, 32);
    EXPECT_EQ(llama->key_heads, 8);
    EXPECT_EQ(llama->head_size, 128);
    EXPECT_EQ(llama->ffn, 14336);
    EXPECT_EQ(llama->vocabulary, 128256);
    EXPECT_EQ(llama->sequence, 4096);
    EXPECT_TRUE(llama->gated);
    for (const char* other : {"resnet50", "bert-large", "mixtral-8x7b"})
        EXPECT_FALSE(language_model_of(models::load_network(other)).has_value()) << other;
}

// Llama 3.2 1B: 1,235,814,400 weights in its file on huggingface.co, of which the table of 128,256 words of 2,048
// numbers is one, read for the words and for their scores. Megatron-Core has it once on one stage, and copies on the
// first and the last of several.
TEST(LanguageNetwork, CountsATableThatWordsAndScoresShareOnce) {
    const Network network = models::huggingface::from_config(
        R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
            "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
            "head_dim": 64, "vocab_size": 128256, "max_position_embeddings": 512, "tie_word_embeddings": true})",
        "config.json", "tied", {});
    const auto model = language_model_of(network);
    ASSERT_TRUE(model.has_value());
    EXPECT_TRUE(model->tied);
    const auto weights = [&](std::int64_t pipe, StageIndex stage) {
        LanguagePlan plan;
        plan.pipe = pipe;
        return stage_weights(*model, plan, stage).dense;
    };
    const double table = 128256.0 * 2048;
    EXPECT_EQ(weights(1, StageIndex{0}), 1235814400.0);
    EXPECT_EQ(weights(2, StageIndex{0}) + weights(2, StageIndex{1}), 1235814400.0 + table);
    EXPECT_FALSE(language_model_of(models::load_network("llama3-8b@4096"))->tied);
}

TEST(LanguageNetwork, TakesWhatItsStagesTake) {
    const auto setup = setup_of(job_of("llama3-8b@4096", "pipe=2:microbatches=8,data=4:zero=1", 32), 8);
    ASSERT_EQ(setup.language_memory.size(), 2U);
    const Bytes most = std::max(total(setup.language_memory[0]), total(setup.language_memory[1]));
    EXPECT_EQ(setup.schedule.memory_peak, most);
    EXPECT_EQ(setup.language_memory[0].loss.value, 0);
    EXPECT_GT(setup.language_memory[1].loss.value, 0);
    EXPECT_GT(setup.language_memory[0].activations, setup.language_memory[1].activations) << "two in flight, not one";
}

// The schedule counts, where the framework has no accounting, or none of this plan, precision or optimizer.
TEST(LanguageNetwork, LeavesOtherJobsToTheSchedule) {
    Job job = job_of("llama3-8b@4096", "data=8:zero=1", 8);
    EXPECT_FALSE(setup_of(job, 8).language_memory.empty());
    job.precision = Precision::mixed;
    EXPECT_TRUE(setup_of(job, 8).language_memory.empty());
    job = job_of("llama3-8b@4096", "data=8:zero=1", 8);
    job.optimizer = Optimizer::sgd;
    EXPECT_TRUE(setup_of(job, 8).language_memory.empty());
    job = job_of("llama3-8b@4096", "pipe=2:schedule=gpipe:microbatches=4,data=4:zero=1", 16);
    EXPECT_TRUE(setup_of(job, 8).language_memory.empty());
    job = job_of("llama3-8b@4096", "data=8:zero=1", 8);
    job.framework = {};
    const auto plain = setup_of(job, 8);
    EXPECT_TRUE(plain.language_memory.empty());
    EXPECT_EQ(plain.schedule.memory_peak, schedule::total(schedule::memory_use(plain.schedule)));
}

// Six ranks divide neither 32 heads nor 8 of keys: each has all of most layers. Sixteen divide 32, but not 8.
TEST(LanguageNetwork, LeavesWhatRanksCouldNotCutToTheSchedule) {
    const auto known = [](const std::string& plan, std::int64_t devices) {
        return !setup_of(job_of("llama3-8b@4096", plan, 4), devices).language_memory.empty();
    };
    EXPECT_TRUE(known("data=1,tensor=8", 8));
    EXPECT_FALSE(known("data=2:zero=0,tensor=6", 12));
    EXPECT_FALSE(known("data=1,tensor=16", 16));
    EXPECT_FALSE(known("data=1,tensor=8:split=filters", 8));
}

// A cut behind a layer that the plan names is not Megatron-Core's, whose stages have equally many blocks.
TEST(LanguageNetwork, LeavesCutsOfOnesOwnToTheSchedule) {
    const auto known = [](const std::string& cut) {
        const std::string plan = "pipe=2:microbatches=4" + cut + ",data=4:zero=1";
        return !setup_of(job_of("llama3-8b@4096", plan, 16), 8).language_memory.empty();
    };
    EXPECT_TRUE(known(""));
    EXPECT_TRUE(known(":cut=blocks"));
    EXPECT_FALSE(known(":cut=386"));
}

// Each of these keeps something on the ranks (docs/training.md) that Megatron-Core has not.
TEST(LanguageNetwork, LeavesMethodsThatKeepMoreToTheSchedule) {
    const auto known = [](const std::string& plan) {
        return !setup_of(job_of("llama3-8b@4096", plan, 64), 8).language_memory.empty();
    };
    EXPECT_TRUE(known("data=8:zero=0"));
    EXPECT_TRUE(known("data=8:local=4"));
    for (const char* plan : {"data=8:lag=1", "data=8:compress=1bit", "data=8:local=4:elastic=0.1", "data=8:learners=2"})
        EXPECT_FALSE(known(plan)) << plan;
}

// The schedule keeps gradients whole until all micro-batches are summed (OfZeroThreeIsPiecesAndTwoGatheredBuckets).
TEST(LanguageNetwork, KeepsGradientsWholeWhereZeroTwoSumsThemOnce) {
    const auto gradients = [](const std::string& plan) {
        return setup_of(job_of("llama3-8b@4096", plan, 64), 8).language_memory.at(0).gradients.value;
    };
    const double whole = gradients("data=8:zero=1");
    EXPECT_DOUBLE_EQ(gradients("data=8:zero=2"), whole / 8);
    EXPECT_DOUBLE_EQ(gradients("data=8:zero=2:microbatches=8"), whole);
    EXPECT_DOUBLE_EQ(gradients("data=8:zero=2:overlap=off"), whole);
    EXPECT_DOUBLE_EQ(gradients("data=8:zero=3:microbatches=8"), whole / 8);
}

// Qwen3 0.6B normalizes 16 heads of queries and 8 of keys of 128 numbers (its config.json); Gemma 2 what attention and
// the feed-forward layer give, too (Gemma Team 2024, section 2). Llama does neither.
TEST(LanguageNetwork, CountsTheNormsOfABlock) {
    const auto llama = language_model_of(models::load_network("llama3-8b@512"));
    ASSERT_TRUE(llama.has_value());
    EXPECT_EQ(llama->more_norms, 0);
    EXPECT_EQ(llama->normed_heads, 0);
    const auto qwen = language_model_of(models::load_network("qwen3-0.6b@512"));
    ASSERT_TRUE(qwen.has_value());
    EXPECT_EQ(qwen->more_norms, 0);
    EXPECT_EQ(qwen->normed_heads, (16 + 8) * 128);
    const auto gemma = language_model_of(models::huggingface::from_config(
        R"({"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "num_hidden_layers": 42,
            "hidden_size": 3584, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
            "intermediate_size": 14336, "vocab_size": 256000, "max_position_embeddings": 512,
            "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true})",
        "config.json", "gemma2", {}));
    ASSERT_TRUE(gemma.has_value());
    EXPECT_EQ(gemma->more_norms, 2);
    EXPECT_EQ(gemma->normed_heads, 0);
}

}  // namespace
}  // namespace rehearse::predict
