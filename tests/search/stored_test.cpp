// SPDX-License-Identifier: Apache-2.0
// Searches that share a store, one after the other and at the same time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "search/search.hpp"
#include "search/store.hpp"
#include "tests/search/requests.hpp"
#include "tests/sim/fixture.hpp"

namespace rehearse::search {
namespace {

using test::request_for;
using test::tower;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SharedStore, LetsASearchGoOnAndOthersShareIt) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("search_{}.db", ::getpid());
    std::filesystem::remove(path);
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 6);
    Store first{path, "job"};
    const Result fresh = search(network, machine, request, first.others());
    Store second{path, "job"};
    const Result again = search(network, machine, request, second.others());
    EXPECT_GT(fresh.counts.simulated, 0);
    EXPECT_EQ(again.counts.simulated, 0);
    EXPECT_EQ(again.counts.known, fresh.counts.simulated);
    ASSERT_EQ(again.ranked.size(), fresh.ranked.size());
    for (std::size_t i = 0; i < fresh.ranked.size(); ++i) {
        EXPECT_EQ(again.ranked[i].plan, fresh.ranked[i].plan);
        EXPECT_EQ(again.ranked[i].result.high, fresh.ranked[i].result.high);
    }
    Store another{path, "another job"};
    EXPECT_EQ(another.others().find(fresh.ranked[0].plan, 8), std::nullopt);
    EXPECT_TRUE(another.others().claim("data=8", 8));
    EXPECT_FALSE(Store(path, "another job").others().claim("data=8", 8));
    std::filesystem::remove(path);
}

/// What `work` does in a process that ends without a word, as if it was killed.
template <typename Work>
void in_a_killed_process(const Work& work) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        work();
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
}

// A search that was killed has plans taken that it will never simulate. Who goes on does not wait for it, and ranks
// what a search alone ranks.
TEST(SharedStore, LetsTheNextTakeWhatAKilledSearchHasLeft) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("killed_{}.db", ::getpid());
    std::filesystem::remove(path);
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 6);
    in_a_killed_process([&] {
        Store store{path, "job"};
        Others others = store.others();
        others.put = [](const std::string&, std::int64_t, const Simulated&) { ::_exit(0); };
        search(network, machine, request, others);
    });
    Store next{path, "job"};
    std::vector<std::string> said;
    const Listener listener{.say = [&](std::string_view text) { said.emplace_back(text); }};
    const Result found = search(network, machine, request, next.others(), listener);
    const Result alone = search(network, machine, request);
    EXPECT_THAT(said, testing::Not(testing::Contains(HasSubstr("waiting for"))));
    ASSERT_EQ(found.ranked.size(), alone.ranked.size());
    for (std::size_t i = 0; i < alone.ranked.size(); ++i) EXPECT_EQ(found.ranked[i].plan, alone.ranked[i].plan);
    std::filesystem::remove(path);
}

TEST(SharedStore, WaitsForASearchThatRunsAndMayBeEndedMeanwhile) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("beside_{}.db", ::getpid());
    std::filesystem::remove(path);
    const Network network = tower(4, 512);
    const Machine machine = sim::test::four_device_nodes(2);
    const Request request = request_for(64, 2);
    Store store{path, "job"};
    Others others = store.others();
    others.find = {};
    others.claim = [](const std::string&, std::int64_t) { return false; };  // all are at others
    int asked = 0;
    std::vector<std::string> said;
    const Listener listener{.say = [&](std::string_view text) { said.emplace_back(text); },
                            .simulating = [&](auto, auto) { return ++asked < 3; }};
    EXPECT_TRUE(search(network, machine, request, others, listener).ranked.empty());
    EXPECT_THAT(said, testing::Contains(fmt::format("waiting for {} plans of another search", fewest)));
    std::filesystem::remove(path);
}

TEST(SharedStore, LeavesFilesOfOthersAlone) {
    if (!absent_store().empty()) GTEST_SKIP() << absent_store();
    const std::string path = testing::TempDir() + fmt::format("text_{}.db", ::getpid());
    std::ofstream(path) << std::string(2000, 'x');
    EXPECT_THAT([&] { Store(path, "job"); }, ThrowsMessage<InputError>(HasSubstr("not a file of searched plans")));
    EXPECT_EQ(std::filesystem::file_size(path), 2000U);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace rehearse::search
