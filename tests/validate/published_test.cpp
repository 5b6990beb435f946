// SPDX-License-Identifier: Apache-2.0
// Rows of published figures, and the rules that map them. Oracle: small tables written out by hand.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "models/models.hpp"
#include "validate/published.hpp"
#include "validate/replay_rules.hpp"

namespace rehearse::validate {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

const std::string header =
    "id,system,machine,device,n_devices,model,precision,strategy,batch_per_device,global_batch,metric,value,unit,extra,"
    "provenance\n";

PublishedRow row(const std::string& strategy, const std::string& model = "GPT") {
    return read_published(
               header + fmt::format("a,S,M,D,8,{},fp16,\"{}\",1,8,throughput,2.5,samples/s,,read\n", model, strategy),
               "t.csv")
        .at(0);
}

ReplaySettings settings(std::string_view rules, const PublishedRow& row) {
    ReplayRules read;
    read.add(rules, "r.toml");
    return read.settings(row);
}

TEST(PublishedRows, KeepEveryColumnAndReadTheirNumbers) {
    const PublishedRow read = row("TP2, and a comma");
    EXPECT_EQ(read.text("strategy"), "TP2, and a comma");
    EXPECT_EQ(read.text("absent"), "");
    EXPECT_EQ(read.devices, 8);
    EXPECT_DOUBLE_EQ(read.value, 2.5);
    EXPECT_DOUBLE_EQ(read.number("global_batch").value(), 8);
    EXPECT_FALSE(read.number("extra").has_value());
}

TEST(PublishedRows, SayWhereAndWhatIsWrong) {
    const auto read = [](const std::string& text) { return [text] { read_published(text, "t.csv"); }; };
    EXPECT_THAT(read("id,system\na,b\n"), ThrowsMessage<InputError>(HasSubstr("t.csv:1: no column 'machine'")));
    EXPECT_THAT(read(header + "a,S,M,D,8,N,fp32,DP,1,8,throughput,fast,samples/s,,read\n"),
                ThrowsMessage<InputError>(HasSubstr("t.csv:2: value is 'fast'")));
    EXPECT_THAT(
        read(header + "a,S,M,D,8,N,fp32,DP,1,8,step_time,0.1,images/s,,read\n"),
        ThrowsMessage<InputError>(HasSubstr("t.csv:2: a 'step_time' is a time (s, ms, min, h), not 'images/s'")));
    EXPECT_NO_THROW(read(header + "a,S,M,D,8,N,fp32,DP,1,8,step_time,0.1,s (of 16),,read\n")());
    EXPECT_THAT(read(header + "a,S,M,D,none,N,fp32,DP,1,8,throughput,1,samples/s,,read\n"),
                ThrowsMessage<InputError>(HasSubstr("n_devices is 'none'")));
}

TEST(PublishedRows, MaySayOfThemselvesWhatIsSimulated) {
    const auto read = [](const std::string& columns, const std::string& values) {
        std::string names = header;
        names.pop_back();
        return read_published(
                   names + columns + "\na,S,M,D,8,N,fp32,DP,1,8,throughput,1,samples/s,,read" + values + "\n", "t.csv")
            .at(0);
    };
    const PublishedRow own = read(",run.machine,run.plan,run.why", ",summit,,\"its paper, section 2\"");
    EXPECT_THAT(settings(R"(
        [[rule]]
        why = "all"
        when = { system = 'S' }
        machine = "abci"
        plan = "data"
        )",
                         own),
                UnorderedElementsAre(Pair("plan", "data"), Pair("machine", "summit")));
    EXPECT_EQ(read(",run.machine,run.why", ",,").text("run.machine"), "") << "most rows have none";
    EXPECT_THAT([&] { read(",run.machine,run.why", ",summit,"); }, ThrowsMessage<InputError>(HasSubstr("run.why")));
    EXPECT_THAT([&] { read(",run.machin,run.why", ",summit,x"); },
                ThrowsMessage<InputError>(HasSubstr("did you mean 'machine'")));
}

TEST(ReplayRules, FillInGroupsAndColumns) {
    EXPECT_THAT(settings(R"(
        [[rule]]
        why = "the strategy names the mesh"
        when = { strategy = 'tp(\d+) x pp(\d+).*' }
        plan = "pipe={strategy.2},data,tensor={strategy.1}"
        network = "{model}-{n_devices}"
        )",
                         row("TP2 x PP4, interleaved")),
                UnorderedElementsAre(Pair("plan", "pipe=4,data,tensor=2"), Pair("network", "GPT-8")));
}

TEST(ReplayRules, TheLastRuleThatMatchesWins) {
    constexpr std::string_view rules = R"(
        [[rule]]
        why = "all"
        when = { system = 'S' }
        machine = "one"
        plan = "data"
        [[rule]]
        why = "some"
        when = { strategy = 'DP', model = '.*' }
        machine = "two"
        )";
    EXPECT_EQ(settings(rules, row("DP")).at("machine"), "two");
    EXPECT_EQ(settings(rules, row("DP")).at("plan"), "data");
    EXPECT_EQ(settings(rules, row("DP2")).at("machine"), "one");  // whole columns match, not parts
}

TEST(ReplayRules, RefuseWhatTheyMustNotDo) {
    const auto add = [](std::string text) { return [text = std::move(text)] { ReplayRules{}.add(text, "r.toml"); }; };
    EXPECT_THAT(add("[[rule]]\nwhy = \"x\"\nwhen = { id = 'a' }\nplan = \"data\"\n"),
                ThrowsMessage<InputError>(HasSubstr("must not look at the id")));
    EXPECT_THAT(add("[[rule]]\nwhy = \"x\"\nwhen = { model = 'a(' }\n"),
                ThrowsMessage<InputError>(HasSubstr("r.toml:3: rule: when: model 'a(': not a regular expression")));
    EXPECT_THAT(add("[[rule]]\nwhy = \"x\"\nwhen = { model = 'a' }\nnetwrok = \"b\"\n"),
                ThrowsMessage<InputError>(HasSubstr("did you mean 'network'?")));
    EXPECT_THAT(add("[[rule]]\nwhen = { model = 'a' }\n"), ThrowsMessage<InputError>(HasSubstr("'why' is missing")));
    EXPECT_THAT([] { settings("[[rule]]\nwhy = \"x\"\nwhen = { model = 'G.*' }\nplan = \"{model.1}\"\n", row("DP")); },
                ThrowsMessage<InputError>(HasSubstr("'{model.1}' is no column")));
}

// Every network and machine that a rule names without a group exists.
TEST(ReplayRules, ShippedOnesNameWhatThereIs) {
    const ReplayRules rules = shipped_replay_rules();
    const std::vector<PublishedRow> rows = shipped_published();
    EXPECT_GT(rows.size(), 800U);
    std::set<std::string> machines, networks;
    for (const PublishedRow& published : rows) {
        const ReplaySettings found = rules.settings(published);
        if (const auto m = found.find("machine"); m != found.end()) machines.insert(m->second);
        if (const auto n = found.find("network"); n != found.end()) networks.insert(n->second);
    }
    for (const std::string& name : machines) EXPECT_NO_THROW(models::load_machine(name)) << name;
    for (const std::string& name : networks) EXPECT_NO_THROW(models::load_network(name)) << name;
}

}  // namespace
}  // namespace rehearse::validate
