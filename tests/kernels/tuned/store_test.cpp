// SPDX-License-Identifier: Apache-2.0
// What is kept comes back, whoever else writes, and no wrong file is harmed.
#include "kernels/tuned/store.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.hpp"
#include "core/file.hpp"
#include "store/database.hpp"

namespace rehearse::kernels::tuned {
namespace {

using namespace rehearse::literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

Winner winner(const std::string& problem, const std::string& backend = "reference") {
    return {.problem = problem,
            .backend = backend,
            .algorithm = "",
            .threads = 2,
            .median = Seconds{0.1},  // no binary fraction: every digit must survive
            .runner_up = Seconds{0.3},
            .scratch = Bytes{1000},
            .scratch_limit = Bytes{5000},
            .tried = 7,
            .date = "2026-01-31"};
}

class Store : public testing::Test {
protected:
    Store() {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_tuned_XXXXXX").string();
        folder_ = mkdtemp(name.data());
    }
    ~Store() override { std::filesystem::remove_all(folder_); }
    std::string path(const std::string& name = "tuned.db") const { return (folder_ / name).string(); }

    // As somebody else would.
    void run_sql(const char* sql) const {
        store::Database(path(), {1, 1, "a test's rows", "do without", ""}, true).run(sql);
    }

    void expect_refused_and_left_alone(const std::string& file, const std::string& why) const {
        const std::string before = read_file(file);
        EXPECT_THAT([&] { (void)load(file, "host"); },
                    ThrowsMessage<InputError>(AllOf(HasSubstr(file), HasSubstr(why))));
        EXPECT_THAT([&] { save(file, "host", {winner("a")}); }, ThrowsMessage<InputError>(HasSubstr(why)));
        EXPECT_EQ(read_file(file), before);
    }

private:
    std::filesystem::path folder_;
};

TEST_F(Store, KeepsEveryWord) {
    EXPECT_THAT(load(path(), "host"), IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(path()));  // asking makes no file
    save(path("new/folder/tuned.db"), "host", {winner("b"), winner("a")});
    EXPECT_THAT(load(path("new/folder/tuned.db"), "host"), ElementsAre(winner("a"), winner("b")));
    save(path(), "host", {});
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(Store, ReplacesWhatIsTunedAgainAndKeepsTheRest) {
    save(path(), "host", {winner("a"), winner("b")});
    save(path(), "host", {winner("a", "onednn")});
    EXPECT_THAT(load(path(), "host"), ElementsAre(winner("a", "onednn"), winner("b")));
}

TEST_F(Store, IgnoresOtherHostsButNeverDeletesThem) {
    save(path(), "host", {winner("a")});
    save(path(), "another host", {winner("a", "onednn"), winner("c")});
    EXPECT_THAT(load(path(), "host"), ElementsAre(winner("a")));
    EXPECT_THAT(load(path(), "another host"), ElementsAre(winner("a", "onednn"), winner("c")));
    EXPECT_THAT(load(path(), "hos"), IsEmpty());
    const std::vector<Stored> all = stored(path());
    ASSERT_THAT(all, SizeIs(3));
    EXPECT_EQ(all[0].fingerprint, "another host");
    EXPECT_EQ(all[2].winner, winner("a"));
}

TEST_F(Store, LeavesADamagedFileAsItIs) {
    for (const std::size_t size : {std::size_t{100}, std::size_t{50'000}}) {
        std::ofstream{path()} << std::string(size, 'x');
        expect_refused_and_left_alone(path(), "damaged");
    }
}

TEST_F(Store, SeesThatPagesInTheMiddleAreDamaged) {
    std::vector<Winner> many;
    for (int i = 0; i < 500; ++i) many.push_back(winner("problem" + std::to_string(i)));
    save(path(), "host", many);
    std::fstream file{path(), std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(8192);
    file << std::string(8192, 'x');
    file.close();
    const std::string before = read_file(path());
    EXPECT_THROW((void)load(path(), "host"), InputError);
    EXPECT_EQ(read_file(path()), before);
}

TEST_F(Store, LeavesTheDatabaseOfAnotherProgramAsItIs) {
    run_sql("CREATE TABLE winner(x); INSERT INTO winner VALUES('precious')");
    expect_refused_and_left_alone(path(), "another program");
}

TEST_F(Store, LeavesAFileOfALaterVersionAsItIs) {
    save(path(), "host", {winner("a")});
    run_sql("PRAGMA user_version = 99");
    expect_refused_and_left_alone(path(), "later version");
}

TEST_F(Store, SaysWhereNothingCanBeWritten) {
    std::filesystem::create_directory(path("folder.db"));
    EXPECT_THAT([&] { save(path("folder.db"), "host", {winner("a")}); },
                ThrowsMessage<BackendError>(HasSubstr("folder.db")));
    std::ofstream{path("file")} << "x";
    EXPECT_THAT([&] { save(path("file/tuned.db"), "host", {winner("a")}); },
                ThrowsMessage<InputError>(HasSubstr("file/tuned.db")));
    EXPECT_THAT([] { save("/proc/tuned.db", "host", {winner("a")}); },
                ThrowsMessage<BackendError>(HasSubstr("/proc/tuned.db")));
}

// A child that runs `act` and ends; its exit code is 0 when nothing was thrown.
template <typename Act>
pid_t child(Act act) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    try {
        act();
        _exit(0);
    } catch (...) {
        _exit(1);
    }
}

int exit_code(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_F(Store, LosesNothingWhenProcessesWriteAtOnce) {
    constexpr int writers = 4, times = 15;
    std::vector<pid_t> children;
    for (int w = 0; w < writers; ++w) {
        children.push_back(child([&, w] {
            for (int i = 0; i < times; ++i) {
                const std::string own = std::to_string(w) + ":" + std::to_string(i);
                save(path(), "host" + std::to_string(w % 2), {winner(own), winner("shared")});
                const std::vector<Winner> now = load(path(), "host" + std::to_string(w % 2));
                if (std::ranges::find(now, own, &Winner::problem) == now.end()) _exit(2);
            }
        }));
    }
    for (const pid_t pid : children) EXPECT_EQ(exit_code(pid), 0);
    std::set<std::string> found;
    for (const Stored& each : stored(path())) found.insert(each.fingerprint + each.winner.problem);
    EXPECT_THAT(found, SizeIs(writers * times + 2));
}

TEST_F(Store, KeepsWhatWasSavedBeforeAWriterWasKilled) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t pid = child([&] {
        for (int i = 0;; ++i) {
            std::vector<Winner> two{winner(std::to_string(i) + "a"), winner(std::to_string(i) + "b")};
            save(path(), "host", two);
            if (write(ends[1], "x", 1) != 1) _exit(3);
        }
    });
    char said = 0;
    constexpr int heard = 10;
    for (int i = 0; i < heard; ++i) ASSERT_EQ(read(ends[0], &said, 1), 1);
    kill(pid, SIGKILL);
    EXPECT_EQ(exit_code(pid), 128 + SIGKILL);
    const std::vector<Winner> left = load(path(), "host");
    EXPECT_GE(left.size(), 2U * heard);
    EXPECT_EQ(left.size() % 2, 0U);  // all of a save, or nothing
    save(path(), "host", {winner("after")});
    EXPECT_THAT(load(path(), "host"), SizeIs(left.size() + 1));
}

TEST(TunedChoices, HoldForSmallerLimitsThatTheWinnerFitsInto) {
    const std::vector<Winner> found{winner("a")};  // takes 1000 B, found under 5000 B
    EXPECT_THAT(choices(found, Bytes{5000}), SizeIs(1));
    EXPECT_THAT(choices(found, Bytes{1000}), SizeIs(1));
    EXPECT_THAT(choices(found, Bytes{999}), IsEmpty());
    EXPECT_THAT(choices(found, Bytes{5001}), IsEmpty());  // somebody larger may win there
    EXPECT_EQ(choices(found, Bytes{5000}).at("a"), (Choice{backends().back(), 2}));
}

TEST(TunedChoices, LeaveOutWhoIsNotInThisBuild) {
    EXPECT_THAT(choices({winner("a", "cudnn"), winner("b")}, Bytes{5000}), SizeIs(1));
}

TEST(Fingerprint, DependsOnTheThreads) {
    EXPECT_NE(fingerprint(1), fingerprint(2));
    EXPECT_EQ(fingerprint(1), fingerprint(1));
    for (const Backend* backend : backends()) EXPECT_THAT(fingerprint(1), HasSubstr(backend->version()));
}

}  // namespace
}  // namespace rehearse::kernels::tuned
