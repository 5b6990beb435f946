// SPDX-License-Identifier: Apache-2.0
// That the loops compute what they claim to count, and that every roof is there; not how high it is.
#include "bench/ceilings.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/caches.hpp"
#include "bench/thread_team.hpp"
#include "core/error.hpp"

namespace rehearse::bench {
namespace {

using testing::ElementsAre;

// 2 x 64 x 64 x 64 operations on three matrices of 64 x 64: 524,288 FLOP and 49,152 bytes.
TEST(RooflinePoint, IsAsWorkedOutByHand) {
    Ceilings ceilings;
    ceilings.peaks = {{"f32", "by hand", 1, FlopRate{1e9}, 0, ""}, {"bf16", "", 1, {}, 0, "this CPU has none"}};
    ceilings.bandwidths = {{"L1", Bandwidth{1e12}}, {"memory", Bandwidth{1e8}}};
    calibrate::Sample sample;
    sample.problem = {MatMul{1, 64, 64, false}, Pass::forward, 64, DataType::f32};
    sample.median = Seconds{1e-3};
    const RooflinePoint point = roofline_point(ceilings, sample);
    EXPECT_EQ(point.flops.value, 524288);
    EXPECT_EQ(point.bytes.value, 49152);
    EXPECT_NEAR(point.of_peak, 0.524288, 1e-12);
    EXPECT_NEAR(point.of_memory, 0.49152, 1e-12);
    EXPECT_NEAR(point.intensity(), 32.0 / 3, 1e-12);
    EXPECT_FALSE(point.memory_bound);  // 0.49 ms of memory, 0.52 of arithmetic
    ceilings.bandwidths.back().rate = Bandwidth{9e7};
    EXPECT_TRUE(roofline_point(ceilings, sample).memory_bound);
    sample.problem.type = DataType::bf16;
    EXPECT_EQ(roof_of(ceilings, sample).type, "f32");
}

TEST(FmaLoops, DoAsManyMultiplyAddsAsTheyCount) {
    const std::vector<FmaLoop> loops = fma_loops();
    ASSERT_EQ(loops.size(), 4U);
    for (const FmaLoop& loop : loops) {
        SCOPED_TRACE(loop.type);
        EXPECT_EQ(loop.run == nullptr, !loop.absent.empty());
        if (loop.run == nullptr) continue;
        const double sums = loop.flops.value / 2;  // as many as multiply-adds in a round
        if (loop.type == "bf16") {
            // Each sum of pairs takes two of them: 1/2, then n times 2 / 4 more.
            EXPECT_EQ(loop.run(1), sums / 2 * 1.0);
            EXPECT_EQ(loop.run(3), sums / 2 * 2.0);
        } else {
            EXPECT_EQ(loop.run(1), sums * 0.75);
            EXPECT_EQ(loop.run(3), sums * 0.9375);
        }
    }
    EXPECT_EQ(loops[0].type, "f32");
    EXPECT_EQ(loops[0].flops, 2 * loops[1].flops);  // twice as many lanes as f64
}

TEST(StreamKernels, ComputeWhatMcCalpinDefines) {
    for (const std::size_t count : {0U, 1U, 7U, 32U, 67U, 1000U}) {
        std::vector<double> x(count), y(count);
        for (std::size_t i = 0; i < count; ++i) {
            x[i] = static_cast<double>(i + 1);
            y[i] = static_cast<double>(2 * i) - 5;
        }
        for (const StreamKernel kernel : stream_kernels()) {
            SCOPED_TRACE(testing::Message() << to_string(kernel) << ' ' << count);
            std::vector<double> dst(count + 1, -1);  // the one beyond must not be touched
            run(kernel, dst.data(), x.data(), y.data(), count);
            for (std::size_t i = 0; i < count; ++i) {
                const double expected[] = {x[i], 3 * x[i], x[i] + y[i], x[i] + 3 * y[i]};
                ASSERT_EQ(dst[i], expected[static_cast<std::size_t>(kernel)]);
            }
            EXPECT_EQ(dst[count], -1);
        }
    }
    EXPECT_EQ(arrays_of(StreamKernel::copy) + arrays_of(StreamKernel::scale), 4);
    EXPECT_EQ(arrays_of(StreamKernel::add) + arrays_of(StreamKernel::triad), 6);
}

TEST(ThreadTeam, CallsEveryMemberOnceARun) {
    for (const int threads : {1, 3}) {
        ThreadTeam team(threads);
        std::vector<std::atomic<int>> calls(static_cast<std::size_t>(threads));
        for (int i = 0; i < 50; ++i) team.run([&](int member) { ++calls[static_cast<std::size_t>(member)]; });
        for (const auto& count : calls) EXPECT_EQ(count, 50);
        EXPECT_EQ(team.threads(), threads);
    }
}

class Sysfs : public testing::Test {
protected:
    void add(const std::string& cpu, const std::string& index, const std::string& level, const std::string& type,
             const std::string& size, const std::string& shared) const {
        const std::filesystem::path folder = root_ / cpu / "cache" / index;
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "level") << level << '\n';
        std::ofstream(folder / "type") << type << '\n';
        std::ofstream(folder / "size") << size << '\n';
        std::ofstream(folder / "shared_cpu_list") << shared << '\n';
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    std::filesystem::path root_ =
        std::filesystem::path{testing::TempDir()} / ("rehearse_caches" + std::to_string(::getpid()));
};

TEST_F(Sysfs, TellsSizesSharersAndHowManyThereAre) {
    for (const std::string cpu : {"0", "1", "2", "3"}) {
        add("cpu" + cpu, "index0", "1", "Data", "48K", cpu);
        add("cpu" + cpu, "index1", "1", "Instruction", "32K", cpu);
        add("cpu" + cpu, "index2", "2", "Unified", "2M", cpu < "2" ? "0-1" : "2-3");
        add("cpu" + cpu, "index3", "3", "Unified", "32768K", "0-2,3");
    }
    const std::vector<Cache> caches = data_caches(root_.string());
    ASSERT_EQ(caches.size(), 3U);
    EXPECT_EQ(caches[0].size, Bytes{48 * 1024});
    EXPECT_EQ(caches[0].sharers, 1);
    EXPECT_EQ(caches[0].instances, 4);
    EXPECT_EQ(caches[1].size, Bytes{2 * 1048576});
    EXPECT_EQ(caches[1].sharers, 2);
    EXPECT_EQ(caches[1].instances, 2);
    EXPECT_EQ(caches[2].size, Bytes{32 * 1048576});
    EXPECT_EQ(caches[2].sharers, 4);
    EXPECT_EQ(caches[2].instances, 1);
}

TEST_F(Sysfs, WithoutItThereAreThreeLevels) { EXPECT_EQ(data_caches((root_ / "none").string()).size(), 3U); }

TEST(AvailableMemory, IsSome) { EXPECT_GT(available_memory(), Bytes{1e6}); }

TEST(MeasureStreams, TimesEveryKernelInEveryLevelOnEachNumberOfThreads) {
    StreamOptions options;
    options.rounds = {.count = 2, .budget = Seconds{0.05}};
    options.threads = {1, 2};
    options.memory_factor = 0.1;  // that there is much memory is not what is tested here
    const Streams streams = measure_streams(options);
    const std::size_t levels = data_caches().size() + 1;
    ASSERT_EQ(streams.samples.size(), levels * 4 * 2);
    for (std::size_t i = 0; i < streams.samples.size(); ++i) {
        const StreamSample& sample = streams.samples[i];
        EXPECT_EQ(sample.kernel, stream_kernels()[i % 4]);
        EXPECT_EQ(sample.threads, i < levels * 4 ? 1 : 2);
        EXPECT_GT(sample.rate.value, 0);
        EXPECT_TRUE(std::isfinite(sample.spread));
        if (i % (levels * 4) >= 4) {
            EXPECT_NE(sample.level, streams.samples[i - 4].level);
        }
    }
    const auto rows = nlohmann::json::parse(streams.json).at("benchmarks");
    EXPECT_EQ(rows.size(), levels * 4 * 2 * 2);  // two rounds
}

TEST(MeasureStreams, OfEverySizeGrow) {
    StreamOptions options;
    options.rounds = {.count = 1, .budget = Seconds{0.02}};
    options.kernels = {StreamKernel::triad};
    options.every_size = true;
    options.memory_factor = 0.1;
    const std::vector<StreamSample> samples = measure_streams(options).samples;
    EXPECT_GT(samples.size(), data_caches().size() + 4);
    for (std::size_t i = 1; i < samples.size(); ++i) {
        EXPECT_GE(samples[i].working_set, samples[i - 1].working_set);
    }
    EXPECT_EQ(samples.front().level, "L1");
}

TEST(MeasureStreams, RefusesWhatDoesNotFitIntoMemory) {
    StreamOptions options;
    options.memory_factor = 1e9;
    EXPECT_THROW(measure_streams(options), InfeasibleError);
}

TEST(MeasureCeilings, HasARoofForEveryTypeAndLevel) {
    const Ceilings ceilings = measure_ceilings(1, {.count = 2, .budget = Seconds{0.1}});
    EXPECT_EQ(ceilings.peaks.size(), 4U);
    ASSERT_NE(ceilings.peak("f32"), nullptr);
    EXPECT_GT(ceilings.peak("f32")->rate.value, 0);
    EXPECT_EQ(ceilings.peak("f32")->threads, 1);
    EXPECT_EQ(ceilings.peak("f128"), nullptr);
    for (const Peak& peak : ceilings.peaks) {
        EXPECT_EQ(peak.rate.value > 0, peak.absent.empty());
        EXPECT_EQ(ceilings.peak(peak.type) != nullptr, peak.absent.empty());
    }
    EXPECT_EQ(ceilings.bandwidths.size(), data_caches().size() + 1);
    EXPECT_EQ(ceilings.bandwidths.back().level, "memory");
    EXPECT_EQ(ceilings.memory(), ceilings.bandwidths.back().rate);
}

}  // namespace
}  // namespace rehearse::bench
