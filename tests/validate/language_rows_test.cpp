// SPDX-License-Identifier: Apache-2.0
#include "validate/language_rows.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "core/error.hpp"

namespace rehearse::validate {
namespace {

using testing::HasSubstr;

const std::string header =
    "id,source,device,model,n_devices,layers,hidden,heads,kv_heads,head_size,ffn,gated,vocabulary,query_rank,key_rank,"
    "rope,"
    "value_size,experts,top_k,expert_ffn,shared_experts,dense_ffn,dense_layers,sequence,precision,tensor,pipe,chunks,"
    "data,"
    "context,expert_parallel,zero,sequence_parallel,attention,recompute,microbatch,microbatches,global_batch,step_time_"
    "s,"
    "memory_GiB\n";

// Four blocks of a small Llama on two A100, tensor or data ranks.
std::string row(const std::string& id, const std::string& tensor, const std::string& data, const std::string& batch,
                const std::string& time, const std::string& device = "A100-80GB") {
    return id + ",ours," + device + ",little,2,4,1024,8,8,128,4096,yes,32000,0,0,0,0,0,0,0,0,0,0,2048,bf16," + tensor +
           ",1,1," + data + ",1,1,1,no,fused,none,1,4," + batch + "," + time + ",8\n";
}

std::string message(const std::function<void()>& call) {
    try {
        call();
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

TEST(LanguageRows, AreReadWithTheirPlan) {
    const auto rows = read_language_rows(header + row("a", "2", "1", "4", "0.5"), "t.csv");
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].plan.tensor, 2);
    EXPECT_EQ(rows[0].sizes.ffn, 4096);
    EXPECT_DOUBLE_EQ(rows[0].memory->value, 8.0 * (1 << 30));
}

TEST(LanguageRows, TellFileAndLineOfEveryMistake) {
    const auto read = [](const std::string& text) {
        return message([&] { read_language_rows(header + text, "t.csv"); });
    };
    EXPECT_THAT(read(row("a", "2", "2", "8", "0.5")),
                HasSubstr("t.csv:2: tensor 2 x pipe 1 x data 2 x context 1 are not 2"));
    EXPECT_THAT(read(row("a", "1", "2", "9", "0.5")), HasSubstr("are not a batch of 9"));
    EXPECT_THAT(read(row("a", "2", "1", "4", "-1")), HasSubstr("t.csv:2"));
    std::string wrong = row("a", "2", "1", "4", "0.5");
    wrong.replace(wrong.find("fused"), 5, "fussed");
    EXPECT_THAT(read(wrong), HasSubstr("attention is 'fussed': one of fused, kept"));
    EXPECT_THAT(read(""), HasSubstr("no row"));
    EXPECT_THAT(
        message([] { answer(read_language_rows(header + row("a", "2", "1", "4", "0.5", "A100-80G"), "t.csv")); }),
        HasSubstr("did you mean 'A100-80GB'?"));
}

// Both measured twice as long as predicted: cold half of it, with the other as pilot exact, ranked as they are.
TEST(LanguageRows, AreAnchoredAndRanked) {
    std::vector<LanguageRow> rows =
        read_language_rows(header + row("a", "2", "1", "4", "1") + row("b", "1", "2", "8", "1"), "t.csv");
    for (int i = 0; const LanguageAnswer& each : answer(rows)) rows[i++].measured = 2 * predict::total(each.time);
    std::vector<LanguageAnswer> answers = answer(rows);
    EXPECT_NEAR(answers[0].cold(), -0.5, 1e-12);
    EXPECT_NEAR(answers[0].with_pilot.value(), 0, 1e-12);
    EXPECT_EQ(rank_correlation(answers), 1);
    std::swap(answers[0].row.measured, answers[1].row.measured);
    answers[0].row.measured = answers[0].row.measured * 100;
    EXPECT_TRUE(rank_correlation(answers).has_value());
    EXPECT_FALSE(rank_correlation({answers[0]}).has_value());
}

// Rows of machines whose memory is known by kind (docs/language_models.md), with a tenth to spare.
TEST(LanguageRows, OfSimuMaxAreMet) {
    int with_memory = 0;
    double memory = 0, pilot = 0;
    std::vector<LanguageAnswer> kept;
    for (const LanguageAnswer& each : answer(shipped_language_rows())) {
        if (!each.row.source.starts_with("SimuMax")) continue;
        kept.push_back(each);
        pilot += each.with_pilot.value();
        if (!each.row.memory) continue;
        ++with_memory;
        memory += std::abs(predict::total(each.memory) / *each.row.memory - 1);
        EXPECT_NEAR(predict::total(each.memory) / *each.row.memory, 1, 0.047) << each.row.id;
    }
    ASSERT_EQ(with_memory, 43);
    EXPECT_LT(memory / with_memory, 0.0075);
    EXPECT_LT(pilot / static_cast<double>(kept.size()), 0.05);
    EXPECT_GT(rank_correlation(kept).value(), 0.95);
}

}  // namespace
}  // namespace rehearse::validate
