// SPDX-License-Identifier: Apache-2.0
// Walks every cell of the table: two features go together and make a schedule, or are refused with the table's reason.
#include "schedule/compatibility.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/index.hpp"
#include "schedule/axes/tables.hpp"
#include "tests/run/networks_of_every_kind.hpp"

namespace rehearse::schedule {
namespace {

using testing::HasSubstr;

Machine machine_of(std::int64_t devices) {
    Machine machine;
    machine.name = "host";
    machine.nodes.push_back({"host", 1, {}, {}});
    for (std::int64_t i = 0; i < devices; ++i) {
        machine.nodes[0].vertices.push_back({"core" + std::to_string(i), VertexKind::device, 0});
    }
    return machine;
}

/// The conflicts that the table lists of two features or of what their examples need beside them, first what never goes
/// together.
std::vector<Clash> listed(const Asked& asked) {
    std::set<std::string_view> present;
    for (const Feature* feature : features()) {
        if (feature->in(asked)) present.insert(feature->name);
    }
    std::vector<Clash> clashes;
    for (const Feature* feature : features()) {
        for (const Conflict& conflict : feature->conflicts) {
            if (!present.contains(feature->name) || !present.contains(conflict.with)) continue;
            if (!present.contains(conflict.unless)) clashes.push_back({feature, &conflict});
        }
    }
    std::ranges::stable_partition(clashes, [](const Clash& each) { return each.conflict->when == When::never; });
    return clashes;
}

/// Every weight that the ranks of a class have is updated by them or by a server, in every bucket as often.
void expect_updates(const Schedule& schedule) {
    for (const RankClass& rank_class : schedule.classes) {
        std::vector<int> updates(rank_class.part.buckets.size());
        for (const Step& step : rank_class.steps) {
            if (const auto* update = std::get_if<Update>(&step.action)) ++updates[at(update->bucket)];
            const auto* push_pull = std::get_if<PushPull>(&step.action);
            if (push_pull != nullptr && schedule.methods.get<Averaging>().period == 0) ++updates[at(push_pull->bucket)];
        }
        std::set<int> counts;
        for (std::size_t b = 0; b < updates.size(); ++b) {
            if (!updates_directly(rank_class.part.network, rank_class.part.buckets[b])) counts.insert(updates[b]);
        }
        EXPECT_LE(counts.size(), 1U) << rank_class.name;
        EXPECT_FALSE(counts.contains(0)) << rank_class.name;
    }
}

struct Made {
    int schedules = 0;
    std::string refusals{};
};

/// All schedules of a plan on small networks and 2, 4 and 8 devices, beside what its server takes.
Made make_all(const std::string& text, Job job) {
    Made made;
    const Plan plan = parse_plan(text);
    for (const std::int64_t ranks : {2, 4, 8}) {
        job.devices = ranks + (plan.methods.get<Servers>().shared ? 0 : plan.methods.get<Servers>().count);
        job.batch_per_device = 8;
        for (const Network& network : test::networks_of_every_kind()) {
            try {
                const Schedule schedule = make_schedule(network, machine_of(job.devices), plan, job);
                check(schedule);
                expect_updates(schedule);
                ++made.schedules;
            } catch (const InputError& error) {
                made.refusals += fmt::format("\n  {} on {}: {}", network.name, job.devices, error.what());
            }
        }
    }
    return made;
}

std::string refusal(const std::string& text, Job job) {
    try {
        const Plan plan = parse_plan(text);
        job.devices = 4;
        static_cast<void>(make_schedule(test::networks_of_every_kind().front(), machine_of(4), plan, job));
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Compatibility, OfEveryTwoFeaturesIsWhatTheTableSays) {
    int together = 0, apart = 0;
    for (std::size_t a = 0; a < features().size(); ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
            const std::optional<std::string> text = example_of(*features()[a], *features()[b]);
            if (!text) continue;
            SCOPED_TRACE(fmt::format("{} and {}: {}", features()[a]->name, features()[b]->name, *text));
            Job job;
            if (features()[a]->ask != nullptr) features()[a]->ask(job);
            if (features()[b]->ask != nullptr) features()[b]->ask(job);
            const Plan plan = read_plan(*text);
            const std::vector<Clash> clashes = listed({plan, job});
            if (clashes.empty()) {
                const Made made = make_all(*text, job);
                EXPECT_GT(made.schedules, 0) << made.refusals;
                ++together;
            } else {
                EXPECT_THAT(refusal(*text, job), HasSubstr(to_string(clashes.front())));
                ++apart;
            }
        }
    }
    EXPECT_GT(together, 500);
    EXPECT_GT(apart, 100);
}

TEST(Compatibility, HasEachFeatureAndEachPairOnce) {
    std::set<std::string_view> names;
    std::set<std::set<std::string_view>> pairs;
    for (const Feature* feature : features()) {
        EXPECT_TRUE(names.insert(feature->name).second) << feature->name;
        Job job;
        if (feature->ask != nullptr) feature->ask(job);
        const Plan plan = parse_plan(feature->example);
        EXPECT_TRUE(feature->in({plan, job})) << feature->name << ": its example has it";
    }
    for (const Feature* feature : features()) {
        for (const Conflict& conflict : feature->conflicts) {
            SCOPED_TRACE(fmt::format("{} and {}", feature->name, conflict.with));
            EXPECT_TRUE(names.contains(conflict.with));
            EXPECT_TRUE(conflict.unless.empty() || names.contains(conflict.unless));
            EXPECT_FALSE(conflict.why.empty() || conflict.why.ends_with('.'));
            EXPECT_TRUE(pairs.insert({feature->name, conflict.with}).second) << "listed twice";
        }
        for (const Need& need : feature->needs) {
            EXPECT_TRUE(names.contains(need.feature)) << feature->name << " needs " << need.feature;
            EXPECT_THAT(std::string{feature->example}, HasSubstr(std::string{need.feature}))
                << "an example has what it needs";
        }
    }
}

// Counted by hand on the first lines: rows 1 (data) and 2 (shares) go together, an option with itself is not asked for.
TEST(Compatibility, IsPrintedInAHundredColumns) {
    std::istringstream lines{compatibility_text()};
    std::vector<std::string> read;
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 100U) << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
        read.push_back(line);
    }
    ASSERT_GT(read.size(), features().size() + 3);
    EXPECT_EQ(read[3], "  data                 1");
    EXPECT_EQ(read[4], "  shares               2 .");
    EXPECT_THAT(read, testing::Contains(HasSubstr("kfac                - ")));
}

TEST(Compatibility, IsOnItsPage) {
    const std::string path = REHEARSE_SOURCE_DIR "/docs/compatibility.md";
    std::ifstream file{path};
    std::ostringstream page;
    page << file.rdbuf();
    EXPECT_THAT(page.str(), HasSubstr("```\n" + compatibility_text() + "```\n"))
        << path << " shows what `rehearse predict --plan help` prints: paste it";
}

}  // namespace
}  // namespace rehearse::schedule
