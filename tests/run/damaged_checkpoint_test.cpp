// SPDX-License-Identifier: Apache-2.0
// Checkpoints that a disk has changed are refused, or what has changed is not read.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include "run/trainer.hpp"
#include "tests/run/checkpoints.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using test::expect_equal;
using test::Folder;

std::vector<char> bytes_of(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// REHEARSE_BYTES: how many bytes are changed, one at a time, of each kind of checkpoint.
int changed_bytes() {
    const char* const text = std::getenv("REHEARSE_BYTES");
    return text == nullptr ? 600 : std::atoi(text);
}

// A byte that has changed is either one that nothing was written to, or the file is refused. No load may give other
// numbers than were saved.
template <typename Load, typename Equal>
void expect_no_change_unsaid(const std::filesystem::path& path, const Load& load_again, const Equal& equal) {
    const auto saved = load_again();
    const std::vector<char> whole = bytes_of(path);
    std::mt19937 random{5};
    int refused = 0;
    const int tries = changed_bytes();
    for (int i = 0; i < tries; ++i) {
        std::vector<char> damaged = whole;
        const std::size_t place = random() % damaged.size();
        SCOPED_TRACE("byte " + std::to_string(place));
        damaged[place] = static_cast<char>(damaged[place] ^ static_cast<char>(1 + random() % 255));
        std::ofstream{path, std::ios::binary}.write(damaged.data(), static_cast<std::streamsize>(damaged.size()));
        try {
            const auto again = load_again();
            equal(saved, again);
            EXPECT_EQ(again.steps, saved.steps);
            EXPECT_EQ(again.seed, saved.seed);
        } catch (const InputError& error) {
            ++refused;
            EXPECT_THAT(error.what(), testing::HasSubstr(path.string()));
        }
    }
    EXPECT_GT(refused, tries / 2) << "most bytes of the file are read";
    std::cout << refused << " of " << tries << " refused\n";
}

// The checkpoint of two steps by this rank alone.
std::filesystem::path trained_to(const Folder& folder, const Schedule& schedule) {
    train_on(Communicator::self(), schedule, {.steps = 2, .checkpoint = folder.path()}, {}, {});
    return newest(folder.path()).value();
}

TEST(DamagedCheckpoints, ThatADiskHasChangedAreRefused) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Folder folder;
    if (Communicator::world().rank() != 0) return;
    const Schedule schedule = test::schedule_of(test::branches(), "data", 1, 4, Optimizer::adam);
    const std::filesystem::path path = trained_to(folder, schedule);
    expect_no_change_unsaid(
        path, [&] { return load(path, schedule); }, expect_equal);
}

TEST(DamagedCheckpoints, OfRanksThatADiskHasChangedAreRefused) {
    if (why_no_checkpoints()) GTEST_SKIP() << *why_no_checkpoints();
    const Folder folder;
    if (Communicator::world().rank() != 0) return;
    const Schedule schedule = test::schedule_of(test::branches(), "data:learners=2", 1, 4, Optimizer::adam);
    const std::filesystem::path path = trained_to(folder, schedule);
    const RankStates like{.network = schedule.network.name,
                          .optimizer = "adam",
                          .plan = schedule.plan,
                          .ranks = std::vector<std::vector<float>>(1)};
    expect_no_change_unsaid(
        path, [&] { return load(path, like); },
        [](const RankStates& a, const RankStates& b) { EXPECT_EQ(a.ranks, b.ranks); });
}

}  // namespace
}  // namespace rehearse::run
