// SPDX-License-Identifier: Apache-2.0
// What hwloc says is compared with what the kernel says in /proc and sysconf.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "machine_equality.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ThisHost : public testing::Test {
protected:
    void SetUp() override {
        home_ = testing::TempDir() + "rehearse-home-" + std::to_string(getpid());
        std::filesystem::create_directories(home_);
        setenv("REHEARSE_HOME", home_.c_str(), 1);
    }
    void TearDown() override {
        std::filesystem::remove_all(home_);
        unsetenv("REHEARSE_HOME");
    }
    std::string home_;
};

// "Node 0 MemTotal: 10053836 kB" of each NUMA node; of the whole host where there are none.
double memory_of_the_kernel() {
    double total = 0;
    for (int node = 0; node < 64; ++node) {
        std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
        std::string word;
        while (file >> word && word != "MemTotal:") {
        }
        double kilobytes = 0;
        if (file >> kilobytes) total += 1024 * kilobytes;
    }
    if (total > 0) return total;
    return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

TEST_F(ThisHost, HasAsManyCoresAndAsMuchMemoryAsTheKernelSays) {
    const Machine host = detect_this_host();
    const auto logical = sysconf(_SC_NPROCESSORS_ONLN);
    EXPECT_GE(device_count(host), 1);
    EXPECT_LE(device_count(host), logical);  // fewer where cores run several threads
    // The memory of a virtual machine may grow while it runs: 2 %.
    const double total = memory_of_the_kernel();
    EXPECT_NEAR(static_cast<double>(device_count(host)) * host.classes[0].memory.value.value, total, 0.02 * total);
}

TEST_F(ThisHost, GuessesNothingThatMustBeMeasured) {
    const Machine host = detect_this_host();
    EXPECT_TRUE(host.classes[0].peak.empty());
    EXPECT_TRUE(host.classes[0].memory_bandwidth.source.empty());
    EXPECT_TRUE(host.inside.fraction.source.empty());
    for (const NodeLink& link : host.nodes[0].links) EXPECT_TRUE(link.bandwidth.source.empty());
    EXPECT_THAT(host.classes[0].memory.source, HasSubstr("hwloc"));
}

TEST_F(ThisHost, LiesWhereTheEnvironmentSays) {
    EXPECT_EQ(this_host_path(), home_ + "/this-host.toml");
    unsetenv("REHEARSE_HOME");
    setenv("XDG_DATA_HOME", "/data", 1);
    EXPECT_EQ(this_host_path(), "/data/rehearse/this-host.toml");
    unsetenv("XDG_DATA_HOME");
    EXPECT_THAT(this_host_path(), testing::EndsWith("/.local/share/rehearse/this-host.toml"));
}

TEST_F(ThisHost, ThatWasNeverMeasuredIsRefused) {
    EXPECT_THAT([] { load_machine("this-host"); },
                ThrowsMessage<InputError>(HasSubstr("run `rehearse calibrate --quick`")));
}

TEST_F(ThisHost, ComesBackAsItWasSaved) {
    Machine host = detect_this_host();
    replace_file(this_host_path(), to_toml(host));
    expect_equal(load_machine("this-host"), host);
    host.classes[0].peak[DataType::f32] = {FlopRate{5e10}, "measured"};
    for (NodeLink& link : host.nodes[0].links) link.bandwidth = {Bandwidth{1e10}, "measured"};
    host.inside = {{Seconds{1e-6}, "measured"}, {0.5, "measured"}, {Bandwidth{2e9}, "measured"}, 0.2};
    replace_file(this_host_path(), to_toml(host));
    expect_equal(load_machine("this-host"), host);
}

TEST_F(ThisHost, OfAnotherNameIsRefusedWithBoth) {
    std::string text = to_toml(detect_this_host());
    const std::size_t at = text.find("hostname = \"");
    ASSERT_NE(at, std::string::npos);
    text.insert(at + 12, "other-");
    replace_file(this_host_path(), text);
    EXPECT_THAT(
        [] { load_machine("this-host"); },
        ThrowsMessage<InputError>(AllOf(HasSubstr("this-host.toml:6: measured on other-"), HasSubstr("this is "))));
    EXPECT_NO_THROW(load_machine(this_host_path()));  // as a file it is a machine like any other
}

TEST_F(ThisHost, WithoutAHostTableIsRefused) {
    replace_file(this_host_path(), to_toml(load_machine("titanx-server")));
    EXPECT_THAT([] { load_machine("this-host"); }, ThrowsMessage<InputError>(HasSubstr("does not say ([host])")));
}

}  // namespace
}  // namespace rehearse::models
