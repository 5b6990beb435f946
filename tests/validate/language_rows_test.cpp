// SPDX-License-Identifier: Apache-2.0
#include "validate/language_rows.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "models/frameworks.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "validate/language_bands.hpp"

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

// Columns of a recipe that a table may have: the last of the header.
std::string with_recipe(const std::string& table, const std::string& columns, const std::string& values) {
    std::string text;
    for (std::size_t begin = 0, end = 0; begin < table.size(); begin = end + 1) {
        end = table.find('\n', begin);
        text += table.substr(begin, end - begin) + "," + (begin == 0 ? columns : values) + "\n";
    }
    return text;
}

TEST(LanguageRows, HaveTheirRecipe) {
    using predict::Float8Scaling;
    using predict::LanguageSoftware;
    const auto plan = [](const std::string& text) { return read_language_rows(text, "t.csv").at(0).plan; };
    const std::string table = header + row("a", "1", "2", "8", "1");
    EXPECT_EQ(plan(table).software, LanguageSoftware::megatron);
    EXPECT_FALSE(plan(table).overlap);
    std::string sharded = table;
    sharded.replace(sharded.find("1,1,1,no,fused"), 14, "1,1,3,no,fused");
    EXPECT_EQ(plan(sharded).software, LanguageSoftware::pytorch) << "a guess, where the table does not say it";
    EXPECT_TRUE(plan(sharded).compiled);
    EXPECT_TRUE(plan(sharded).overlap);
    const std::string columns = "software,compiled,async_tensor,float8,overlap,assumed";
    const auto told = plan(with_recipe(sharded, columns, "composer,no,yes,none,no,all of it"));
    EXPECT_EQ(told.software, LanguageSoftware::composer);
    EXPECT_FALSE(told.compiled);
    EXPECT_TRUE(told.async_tensor);
    EXPECT_FALSE(told.overlap);
    std::string eight = sharded;
    eight.replace(eight.find("bf16"), 4, "fp8");
    EXPECT_EQ(plan(with_recipe(eight, "float8", "rowwise")).float8, Float8Scaling::rowwise);
    const auto free = plan(with_recipe(sharded, "extra", "torch.compile; AsyncTP"));
    EXPECT_TRUE(free.compiled && free.async_tensor);
    EXPECT_FALSE(plan(with_recipe(sharded, "extra", "eager")).compiled);
    const auto wrong = [&](const std::string& text) { return message([&] { plan(text); }); };
    EXPECT_THAT(wrong(with_recipe(table, "float8", "rowwise")), HasSubstr("t.csv:2: float8 is 'rowwise' where"));
    EXPECT_THAT(wrong(with_recipe(eight, "float8", "colwise")), HasSubstr("one of delayed, rowwise, tensorwise"));
    EXPECT_THAT(wrong(with_recipe(table, "software", "torch")), HasSubstr("software is 'torch': one of composer,"));
    EXPECT_EQ(read_language_rows(with_recipe(table, "assumed", "much"), "t.csv")[0].assumed, "much");
}

// Rows of three sources on three boards: a fifth too long and too short elsewhere make a band of 1.645 times that;
// errors on its own board and of its own source do not.
TEST(LanguageRows, HaveBandsFromElsewhere) {
    std::string text = header;
    text += row("a", "2", "1", "4", "1") + row("b", "2", "1", "4", "1", "B200") + row("c", "2", "1", "4", "1", "H200");
    text += row("d", "1", "2", "8", "1");
    std::vector<LanguageRow> rows = read_language_rows(text, "t.csv");
    rows[1].source = "theirs";
    rows[2].source = "others";
    const std::vector<double> off{std::exp(0.9), std::exp(0.2), std::exp(-0.2), std::exp(0.9)};
    for (std::size_t i = 0; const LanguageAnswer& each : answer(rows)) {
        rows[i].measured = off[i] * predict::total(each.time);
        ++i;
    }
    const std::vector<LanguageAnswer> answers = answer(rows);
    const LanguageBands bands = bands_of(answers);
    // Beside what the host may change, which is little where the device is busy.
    const auto with_host = [&](std::size_t i, double others) {
        return std::exp(1.645 * std::hypot(others, answers[i].host));
    };
    ASSERT_EQ(bands.cold.size(), 4U);
    EXPECT_NEAR(bands.cold[0]->reach, with_host(0, 0.2), 1e-9);
    EXPECT_FALSE(bands.cold[0]->holds);
    std::vector<LanguageAnswer> by_host = answers;
    by_host[0].host = 0.3;
    EXPECT_NEAR(bands_of(by_host).cold[0]->reach, std::exp(1.645 * std::hypot(0.2, 0.3)), 1e-9);
    EXPECT_NEAR(bands.cold[1]->reach, with_host(1, std::sqrt((0.9 * 0.9 + 0.2 * 0.2) / 2)), 1e-9) << "two sets";
    EXPECT_TRUE(bands.cold[1]->holds);
    EXPECT_FALSE(bands.anchored[0].has_value()) << "no pilot anywhere else";
    EXPECT_FALSE(bands.anchored[1].has_value()) << "none of its own";
    rows[2].assumed = "its recipe";
    const std::vector<LanguageAnswer> fewer = answer(rows);
    EXPECT_NEAR(bands_of(fewer).cold[0]->reach, with_host(0, 0.2), 1e-9) << "by what is printed";
    EXPECT_FALSE(bands_of({fewer[0], fewer[3]}).cold[0].has_value()) << "nothing from elsewhere";
}

// Rows with experts whose recipe is assumed tell of each other, on other boards or of another source.
TEST(LanguageRows, HaveBandsByOtherExperts) {
    std::vector<LanguageRow> rows =
        read_language_rows(header + row("a", "2", "1", "4", "1") + row("b", "2", "1", "4", "1", "B200") +
                               row("c", "2", "1", "4", "1", "H200"),
                           "t.csv");
    rows[1].source = "theirs";
    rows[2].source = "theirs";
    for (LanguageRow& each : rows) each.assumed = "much";
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
        rows[i].sizes.experts = 2;
        rows[i].sizes.top = 1;
        rows[i].sizes.expert_ffn = rows[i].sizes.dense_ffn = 1024;
    }
    const std::vector<double> off{std::exp(0.1), std::exp(0.4), std::exp(-0.6)};
    for (std::size_t i = 0; const LanguageAnswer& each : answer(rows)) {
        rows[i].measured = off[i] * predict::total(each.time);
        ++i;
    }
    const std::vector<LanguageAnswer> answers = answer(rows);
    const LanguageBands bands = bands_of(answers);
    EXPECT_FALSE(bands.cold[0].has_value()) << "experts tell nothing of others";
    EXPECT_NEAR(bands.cold[1]->reach, std::exp(1.645 * std::hypot(0.6, answers[1].host)), 1e-9);
    EXPECT_NEAR(bands.cold[2]->reach, std::exp(1.645 * std::hypot(0.4, answers[2].host)), 1e-9);
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
    EXPECT_GT(rank_correlation(kept).value(), 0.9);
}

// Boards and recipes of which nothing was derived from steps (docs/language_models.md), with a third to spare.
TEST(LanguageRows, OfOtherBoardsAreMetCold) {
    std::map<std::string, std::vector<LanguageAnswer>> sets;
    for (const LanguageAnswer& each : answer(shipped_language_rows())) {
        const bool experts = !each.row.assumed.empty() && each.row.sizes.experts > 0;
        sets[experts ? "experts" : each.row.device].push_back(each);
    }
    const auto mean = [&](const std::string& device) {
        double sum = 0;
        for (const LanguageAnswer& each : sets.at(device)) sum += std::abs(each.cold());
        return sum / static_cast<double>(sets.at(device).size());
    };
    EXPECT_LT(mean("H100-96GB-500W"), 0.08);
    EXPECT_LT(mean("H100-80GB"), 0.08);
    EXPECT_LT(mean("B200"), 0.1);
    EXPECT_LT(mean("H100"), 0.12);
    EXPECT_LT(mean("A100-PCIe-80GB"), 0.05);
    EXPECT_LT(mean("GH200-96GB"), 0.16);
    EXPECT_LT(mean("experts"), 0.55) << "how their rows are sent is not printed";
    EXPECT_GT(rank_correlation(sets.at("H100-96GB-500W")).value(), 0.9)
        << "recipes that a plan alone does not tell apart";
}

// What predict says of a job that is a row: its network by its configuration, its plan in predict's words.
TEST(LanguageRows, TakeTheMemoryThatPredictSays) {
    const std::map<std::string, std::string> plans{
        {"simumax-a100-llama3-8b-l32-tp2-mbc4", "tensor=2:sequence=on,data=4:microbatches=4"},
        {"simumax-a100-llama3-8b-l32-tp4-mbc4", "tensor=4:sequence=on,data=2:microbatches=4"},
        {"simumax-a100-llama3-8b-l32-tp8-mbc8", "tensor=8:sequence=on,data=1:microbatches=8"},
        {"simumax-a100-llama3-8b-l32-tp1pp2-mbc8", "pipe=2:microbatches=8,data=4"}};
    int met = 0;
    for (const LanguageRow& row : shipped_language_rows()) {
        const auto plan = plans.find(row.id);
        if (plan == plans.end()) continue;
        const models::FrameworkProfile profile = models::load_framework("megatron-core");
        const predict::Job job{.network = models::load_network("llama3-8b@4096"),
                               .machine = models::load_machine("selene"),
                               .plan = schedule::parse_plan(models::plan_with(plan->second, profile)),
                               .devices = {row.devices},
                               .global_batch = row.batch,
                               .precision = Precision::bf16,
                               .optimizer = Optimizer::adam,
                               .framework = predict::framework_of(profile, Optimizer::adam)};
        const predict::Setup setup = predict::setup_of(job, row.devices);
        ASSERT_FALSE(setup.language_memory.empty()) << row.id;
        EXPECT_NEAR(setup.schedule.memory_peak / *row.memory, 1, 0.03) << row.id;
        ++met;
    }
    EXPECT_EQ(met, 4);
}

}  // namespace
}  // namespace rehearse::validate
