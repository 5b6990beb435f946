// SPDX-License-Identifier: Apache-2.0
// Files of searched plans as earlier versions wrote them, and who has taken what.
#include "search/store.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "store/database.hpp"
#include "store/process.hpp"

namespace rehearse::search {
namespace {

using namespace rehearse::literals;

// A file that an earlier version wrote: its plans are known, and its claims, whose makers nobody knows, grow old.
TEST(Store, TakesOverFilesOfTheVersionBefore) {
    const std::string path = testing::TempDir() + fmt::format("earlier_{}.db", ::getpid());
    std::filesystem::remove(path);
    {
        constexpr store::Kind before{.application = 0x52687332,
                                     .version = 1,
                                     .what = "searched plans",
                                     .otherwise = "",
                                     .schema =
                                         "CREATE TABLE plan(job TEXT NOT NULL, plan TEXT NOT NULL, devices INTEGER "
                                         "NOT NULL, claimed INTEGER NOT NULL, done INTEGER NOT NULL, step_s REAL, "
                                         "low_s REAL, high_s REAL, memory_bytes REAL, refusal TEXT, PRIMARY "
                                         "KEY(job, plan, devices)) WITHOUT ROWID;"};
        const store::Database database{path, before, true};
        database.make();
        database.run("INSERT INTO plan VALUES('job', 'data=8', 8, 0, 1, 2.5, 2, 3, 7, '')");
        database.run("INSERT INTO plan VALUES('job', 'data=4', 4, 0, 0, 0, 0, 0, 0, '')");
    }
    for (int times = 0; times < 2; ++times) {
        Store store{path, "job"};
        EXPECT_EQ(store.others().find("data=8", 8).value().step, 2.5_s);
    }
    EXPECT_TRUE(Store(path, "job").others().claim("data=4", 4));
    EXPECT_FALSE(Store(path, "job").others().claim("data=4", 4));
    std::filesystem::remove(path);
}

// This process runs; a child of it does until it has ended, also while nobody has asked how.
TEST(Process, HasEndedWhenItIsGone) {
    EXPECT_EQ(store::this_process(), store::this_process());
    EXPECT_FALSE(store::has_ended(store::this_process()));
    int words[2];
    ASSERT_EQ(::pipe(words), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const std::string own = store::this_process();
        ::_exit(::write(words[1], own.data(), own.size()) == static_cast<ssize_t>(own.size()) ? 0 : 1);
    }
    ::close(words[1]);
    char buffer[500];
    const ssize_t size = ::read(words[0], buffer, sizeof buffer);
    ::close(words[0]);
    ASSERT_GT(size, 0);
    const std::string_view name{buffer, static_cast<std::size_t>(size)};
    EXPECT_NE(name, store::this_process());
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(store::has_ended(name)) << "a zombie simulates nothing";
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(store::has_ended(name));
    EXPECT_FALSE(store::has_ended("another-boot pid:[1] 1 1")) << "who knows";
    EXPECT_FALSE(store::has_ended(""));
}

}  // namespace
}  // namespace rehearse::search
