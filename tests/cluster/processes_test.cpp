// SPDX-License-Identifier: Apache-2.0
// Jobs as processes: a shell script stands for `rehearse run`, and does what its command line says.
#include "cluster/processes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <limits>

#include "cluster/child.hpp"
#include "core/error.hpp"
#include "core/file.hpp"

namespace rehearse::cluster {
namespace {

using namespace rehearse::literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Seconds never{std::numeric_limits<double>::infinity()};

// The steps that it has made are a number in a file. Of model "sleeper" it makes one every 50 ms until it is asked to
// stop, of "broken" none; "silent" writes no result, "says:X" writes X.
constexpr const char* trainer = R"sh(#!/bin/bash
while [[ $# -gt 0 ]]; do
    case $1 in
        --model) model=$2 ;; --steps) steps=$2 ;; --checkpoint) folder=$2 ;; --stop-file) stop=$2 ;;
        --output) output=$2 ;; --global-batch) batch=$2 ;; --resume) resumes=1 ;; *) ;;
    esac
    shift
done
echo "$RANKS ranks, batch $batch, ${resumes:+resumed}" >> "$(dirname "$output")/said"
[[ $model != broken ]] || { echo "rehearse: no weights"; exit 3; }
[[ $model != silent ]] || exit 0
[[ $model != says:* ]] || { echo "${model#says:}" > "$output"; exit 0; }
mkdir -p "$folder"
first=0
[[ ! $resumes ]] || first=$(cat "$folder/steps")
done=$first
rows=
while [[ $done -lt $steps ]]; do
    done=$((done + 1))
    seconds=0.0001
    [[ $model != warming || $rows ]] || seconds=0.0004  # its first step
    [[ $model != warming || $done -ne 5 ]] || seconds=0.0003  # of 4: once in a while
    rows+="${rows:+,}{\"seconds\": $seconds}"
    [[ ! -e $stop ]] || break
    [[ $model != sleeper ]] || sleep 0.05
done
echo $done > "$folder/steps"
echo "{\"steps\": [$rows]}" > "$output"
)sh";

class Running : public testing::Test {
protected:
    Running() {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_processes_XXXXXX").string();
        folder_ = mkdtemp(name.data());
        replace_file((folder_ / "trainer").string(), trainer);
        std::filesystem::permissions(folder_ / "trainer", std::filesystem::perms::owner_all);
        launch_.folder = folder_ / "jobs";
        launch_.launcher = "env RANKS={ranks}";
        launch_.program = (folder_ / "trainer").string();
    }
    ~Running() override { std::filesystem::remove_all(folder_); }

    std::vector<Job> jobs(const std::string& model) const {
        return {{.name = "a/b", .model = model, .samples = 100, .batches = {4, 8}, .most_devices = 2}};
    }

    std::filesystem::path folder_;
    Launch launch_;
};

TEST_F(Running, TrainsAsManyStepsAsSamplesNeed) {
    prepare(launch_);
    const std::vector<Job> all = jobs("net");
    Processes world(all, launch_, "elastic");
    world.start({0, {2, 8, 100}, {0, 1}, 20, false});
    const std::vector<Stopped> ended = world.wait(never);
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_TRUE(ended[0].complete);
    EXPECT_EQ(ended[0].trained, 20) << "of the 24 of three steps";
    ASSERT_EQ(world.measured().size(), 1U);
    EXPECT_EQ(world.measured()[0].steps, 3);
    EXPECT_EQ(world.measured()[0].step, 0.0001_s);
    EXPECT_EQ(read_file((launch_.folder / "elastic/000-a_b/said").string()), "2 ranks, batch 8, \n");
    EXPECT_THAT([&] { prepare(launch_); }, ThrowsMessage<InputError>(HasSubstr("is not empty")));
}

TEST_F(Running, StopsBetweenStepsAndGoesOnWithOtherRanks) {
    prepare(launch_);
    const std::vector<Job> all = jobs("sleeper");
    Processes world(all, launch_, "elastic");
    world.start({0, {1, 4, 100}, {0}, 4000, false});
    EXPECT_TRUE(world.wait(world.now() + 0.2_s).empty());
    world.stop(0);
    const std::vector<Stopped> first = world.wait(never);
    ASSERT_EQ(first.size(), 1U);
    EXPECT_FALSE(first[0].complete);
    const std::int64_t done = world.measured()[0].steps;
    EXPECT_EQ(first[0].trained, static_cast<double>(4 * done));
    world.start({0, {2, 8, 100}, {0, 1}, 16, true});
    EXPECT_TRUE(world.wait(never)[0].complete);
    EXPECT_EQ(world.measured()[1].steps, 2);
    EXPECT_EQ(read_file((launch_.folder / "elastic/000-a_b/checkpoints/steps").string()),
              std::to_string(done + 2) + "\n");
    EXPECT_THAT(read_file((launch_.folder / "elastic/000-a_b/said").string()), HasSubstr("2 ranks, batch 8, resumed"));
}

TEST_F(Running, SaysWhyAJobFailedAndEndsTheOthers) {
    prepare(launch_);
    std::vector<Job> all = jobs("broken");
    all.push_back(jobs("sleeper")[0]);
    pid_t left = -1;
    {
        Processes world(all, launch_, "elastic");
        world.start({1, {1, 4, 100}, {0}, 40'000, false});
        world.start({0, {1, 4, 100}, {1}, 4, false});
        EXPECT_THAT([&] { world.wait(never); },
                    ThrowsMessage<BackendError>(HasSubstr("job 'a/b' failed (exit code 3): rehearse: no weights")));
        left = start_child({"sleep", "100"}, folder_ / "log", {});
    }
    end_child(left);
    EXPECT_NE(kill(-left, 0), 0) << "its group is gone";
    EXPECT_FALSE(std::filesystem::exists(launch_.folder / "elastic/001-a_b/start-0.json")) << "it was ended, not left";
    EXPECT_THAT([&] { start_child({"/no/such/program"}, folder_ / "log", {}); },
                ThrowsMessage<BackendError>(HasSubstr("No such file")));
}

TEST_F(Running, SaysWhichResultOfAJobCannotBeRead) {
    prepare(launch_);
    const auto why = [&](const std::string& model) {
        const std::vector<Job> all = jobs(model);
        Processes world(all, launch_, "elastic");
        world.start({0, {1, 4, 100}, {0}, 4, false});
        try {
            world.wait(never);
        } catch (const BackendError& error) {
            return std::string{error.what()};
        }
        return std::string{"nothing"};
    };
    for (const char* text : {"{\"steps\": [{\"seconds\": 0.1},", "[]", "3", "{}", "{\"steps\": 3}", "{\"steps\": []}"})
        EXPECT_THAT(why(std::string{"says:"} + text), HasSubstr("start-0.json: no JSON with \"steps\"")) << text;
    for (const char* step : {"{}", "3", "null", "{\"seconds\": \"0.1\"}", "{\"seconds\": -1}"})
        EXPECT_THAT(why(fmt::format("says:{{\"steps\": [{{\"seconds\": 0.1}}, {}]}}", step)),
                    HasSubstr("start-0.json: step 1 has no \"seconds\""))
            << step;
    EXPECT_THAT(why("silent"), HasSubstr("job 'a/b' ended without an error, but its result says no steps"));
}

// Of 4, 1, 1, 1 and 3: many such steps take 1.5 each, and whoever starts takes 2.5 more.
TEST_F(Running, StepsAreMeansWithoutTheFirst) {
    prepare(launch_);
    const std::vector<Job> all = jobs("warming");
    Processes world(all, launch_, "elastic");
    world.start({0, {1, 4, 100}, {0}, 20, false});
    world.wait(never);
    ASSERT_EQ(world.measured().size(), 1U);
    EXPECT_EQ(world.measured()[0].steps, 5);
    EXPECT_NEAR(world.measured()[0].step.value, 0.00015, 1e-12);
}

// Two jobs on two devices: what one of them does alone says nothing of both.
TEST_F(Running, PilotsTrainBesideEachOther) {
    prepare(launch_);
    std::vector<Job> all = jobs("net");
    all.push_back(all.front());
    EXPECT_EQ(measured_points(all, launch_, 2, 5).at("net").size(), 4U);
    const std::string first = read_file((launch_.folder / "pilot-speeds/000-pilot/said").string());
    const std::string second = read_file((launch_.folder / "pilot-speeds/001-pilot/said").string());
    EXPECT_EQ(second, "1 ranks, batch 2, \n1 ranks, batch 8, resumed\n");
    EXPECT_EQ(first, second + "2 ranks, batch 4, resumed\n2 ranks, batch 16, resumed\n");
}

TEST_F(Running, PilotsAskForSharesOfTheJobs) {
    prepare(launch_);
    const std::vector<Job> all = jobs("net");
    const auto points = measured_points(all, launch_, 2, 5);
    std::vector<std::pair<std::int64_t, std::int64_t>> shares;
    for (const SpeedPoint& point : points.at("net")) {
        shares.emplace_back(point.devices, point.batch_per_device);
        EXPECT_EQ(point.step, 0.0001_s);
    }
    using Share = std::pair<std::int64_t, std::int64_t>;
    EXPECT_THAT(shares, ElementsAre(Share{1, 2}, Share{1, 8}, Share{2, 2}, Share{2, 8}));
    const Costs costs = measured_costs(all, launch_, 2);
    EXPECT_GT(costs.start, 0_s);
    EXPECT_GT(costs.restart, 0_s);
}

}  // namespace
}  // namespace rehearse::cluster
