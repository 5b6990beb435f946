// SPDX-License-Identifier: Apache-2.0
#include "validate/language_recipes.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "validate/language_rows.hpp"

namespace rehearse::validate {
namespace {

using predict::ExpertRows;
using predict::HostGraphs;
using predict::Recomputation;

const std::string columns =
    "source,model,device,precision,pipe,chunks,experts,recompute,rows,nodes,beside,graphs,sums,tensor,kept,fused,"
    "attention,norms,provenance\n";

predict::LanguagePlan full() {
    predict::LanguagePlan plan;
    plan.recompute = Recomputation::full;
    return plan;
}

TEST(LanguageRecipes, TakeTheFirstThatFits) {
    const LanguageRecipes recipes{
        columns + "Bridge,big,H100,fp8,8,2,*,up+mlp,once,4,yes,parts,16,yes,yes,yes,library8,own,there\n" +
            "Bridge,*,*,*,*,*,*,-,each,0,no,none,32,no,no,yes,library,library,there\n",
        "r.csv"};
    predict::LanguagePlan plan = full();
    plan.type = DataType::fp8;
    EXPECT_TRUE(recipes.apply({"The Bridge's table", "big", "H100", "fp8", "8", "2", "64"}, plan));
    EXPECT_EQ(plan.recompute, Recomputation::none);
    EXPECT_TRUE(plan.again.up_projections && plan.again.feed_forward);
    EXPECT_FALSE(plan.again.norms || plan.again.activations);
    EXPECT_EQ(plan.expert_rows, ExpertRows::once);
    EXPECT_EQ(plan.nodes_of_row, 4);
    EXPECT_TRUE(plan.experts_beside && plan.half_sums);
    EXPECT_EQ(plan.graphs, HostGraphs::parts);
    EXPECT_TRUE(plan.overlap);
    EXPECT_TRUE(plan.fused_experts && plan.library_attention && plan.attention_8bit);
    EXPECT_FALSE(plan.library_norms);
    EXPECT_FALSE(plan.weights_kept) << "not ZeRO 3";
    EXPECT_FALSE(plan.async_tensor) << "no tensor group";
    plan.tensor = 2;
    plan.zero = 3;
    EXPECT_TRUE(recipes.apply({"Bridge", "big", "H100", "fp8", "8", "2", "64"}, plan));
    EXPECT_TRUE(plan.async_tensor && plan.weights_kept);
    plan = full();
    EXPECT_TRUE(recipes.apply({"Bridge", "big", "H100", "bf16", "8", "2", "64"}, plan));
    EXPECT_EQ(plan.recompute, Recomputation::full) << "as the row says";
    EXPECT_EQ(plan.expert_rows, ExpertRows::each);
    EXPECT_FALSE(plan.half_sums);
    EXPECT_FALSE(plan.fused_experts) << "16 bits";
    EXPECT_TRUE(plan.library_attention && plan.library_norms && !plan.attention_8bit);
    EXPECT_TRUE(recipes.apply({"Bridge", "big", "H100", "fp8", "8", "4", "64"}, plan));
    EXPECT_EQ(plan.expert_rows, ExpertRows::each) << "of two chunks";
    EXPECT_FALSE(recipes.apply({"Road", "big", "H100", "fp8", "8", "2", "64"}, plan));
}

TEST(LanguageRecipes, TellFileAndLineOfEveryMistake) {
    const auto message = [](const std::string& line) -> std::string {
        try {
            LanguageRecipes{columns + line, "r.csv"};
        } catch (const InputError& error) {
            return error.what();
        }
        return "no error";
    };
    using testing::HasSubstr;
    EXPECT_THAT(message("a,*,*,*,*,*,*,up+down,once,0,no,none,16,no,no,no,own,own,\n"),
                HasSubstr("r.csv:2: recompute has 'down'"));
    EXPECT_THAT(message("a,*,*,*,*,*,*,up,twice,0,no,none,16,no,no,no,own,own,\n"),
                HasSubstr("rows is 'twice': one of each"));
    EXPECT_THAT(message("a,*,*,*,*,*,*,up,once,-1,no,none,16,no,no,no,own,own,\n"), HasSubstr("r.csv:2"));
    EXPECT_THAT(message("a,*,*,*,*,*,*,up,once,0,no,all,16,no,no,no,own,own,\n"),
                HasSubstr("graphs is 'all': one of none"));
    EXPECT_THAT(message("a,*,*,*,*,*,*,up,once,0,no,none,8,no,no,no,own,own,\n"), HasSubstr("sums is '8'"));
    EXPECT_THAT(message("a,*,*,*,*,*,*,up,once,0,no,none,16,no,no,no,te,own,\n"),
                HasSubstr("attention is 'te': one of"));
}

// The first line that fits, and none for a source that is not named.
TEST(LanguageModels, AreToldBySourceAndName) {
    const std::string header = "source,model,window,biases,clamped,scaled,extra,provenance\n";
    const LanguageModels models{header + "Bridge,big,0,no,no,no,1,there\n*,small,128,yes,yes,yes,0,there\n", "m.csv"};
    predict::LanguageModel sizes;
    models.apply("The Bridge's table", "big", sizes);
    EXPECT_EQ(sizes.extra_tokens, 1);
    predict::LanguageModel of_others;
    models.apply("Road", "big", of_others);
    EXPECT_EQ(of_others.extra_tokens, 0);
    models.apply("Road", "small", of_others);
    EXPECT_EQ(of_others.window, 128);
    EXPECT_TRUE(of_others.biases && of_others.clamped && of_others.scaled_rotation);
    EXPECT_FALSE(sizes.scaled_rotation);
    try {
        LanguageModels{header + "*,small,128,maybe,yes,no,0,there\n", "m.csv"};
        FAIL() << "no error";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("m.csv:2: biases is 'maybe': one of"));
    }
}

// What was assumed of a row gives way; what a source prints does not.
TEST(LanguageRecipes, AreOfRowsWhoseRecipeIsNotPrinted) {
    int followed = 0;
    for (const LanguageRow& row : shipped_language_rows()) {
        const bool changed = row.plan.expert_rows != ExpertRows::by_size;
        EXPECT_FALSE(changed && row.assumed.empty()) << row.id;
        followed += changed ? 1 : 0;
    }
    EXPECT_EQ(followed, 34) << "28 of Megatron Bridge, 6 of AutoModel";
}

TEST(LanguageRecipes, AreAskedForByARow) {
    const auto read = [](const std::string& source, const std::string& recompute = "recipe") {
        const std::string header =
            "id,source,device,model,n_devices,layers,hidden,heads,kv_heads,head_size,ffn,gated,vocabulary,query_rank,"
            "key_rank,rope,value_size,experts,top_k,expert_ffn,shared_experts,dense_ffn,dense_layers,sequence,"
            "precision,tensor,pipe,chunks,data,context,expert_parallel,zero,sequence_parallel,attention,recompute,"
            "microbatch,microbatches,global_batch,step_time_s,memory_GiB\n";
        const std::string row = "a," + source +
                                ",B200,qwen3-30b-a3b,8,48,2048,32,4,128,6144,yes,151936,0,0,0,0,128,8,768,0,0,0,4096,"
                                "bf16,1,1,1,8,1,8,1,no,fused," +
                                recompute + ",4,16,512,9,\n";
        return read_language_rows(header + row, "t.csv").at(0).plan;
    };
    EXPECT_EQ(read("Megatron Bridge").expert_rows, ExpertRows::once);
    EXPECT_EQ(read("Megatron Bridge").graphs, HostGraphs::parts);
    EXPECT_EQ(read("Megatron Bridge", "full").recompute, Recomputation::none) << "no column says what is assumed";
    EXPECT_EQ(read("ours", "full").recompute, Recomputation::full);
    try {
        read("nobody");
        FAIL() << "no recipe, no error";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("t.csv:2: recompute is 'recipe', and"));
    }
}

}  // namespace
}  // namespace rehearse::validate
