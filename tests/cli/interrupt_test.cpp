// SPDX-License-Identifier: Apache-2.0
// Long commands on a terminal: the bar that they draw, and what they leave when a signal ends them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;

class Interrupt : public Program {
protected:
    struct Ended {
        int code = -1;
        std::string out, terminal;
    };

    /// Starts the program with a terminal as stderr, sends the signal when the bar of `part` says that at least `done`
    /// of its parts are done, and waits for its end.
    Ended end(const std::vector<std::string>& arguments, const std::string& part, int done, int signal) const {
        const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
        EXPECT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
        const std::string name = ptsname(terminal), out = path("out");
        const pid_t child = fork();
        if (child == 0) start(arguments, name, out);
        Ended ended;
        bool sent = false;
        std::array<char, 4096> text{};
        for (ssize_t count = 0; (count = ::read(terminal, text.data(), text.size())) != 0;) {
            if (count < 0) {
                if (errno == EINTR) continue;
                int status = 0;
                if (waitpid(child, &status, WNOHANG) == 0) continue;  // it has not opened the terminal yet
                ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
                break;
            }
            ended.terminal.append(text.data(), static_cast<std::size_t>(count));
            if (!sent && done_of(ended.terminal, part) >= done) sent = kill(child, signal) == 0;
        }
        close(terminal);
        EXPECT_TRUE(sent) << ended.terminal;
        ended.out = Program::read("out");
        return ended;
    }

private:
    static int done_of(const std::string& terminal, const std::string& part) {
        const std::size_t last = terminal.rfind(part);
        const std::regex count{R"(\((\d+) of )"};
        std::smatch found;
        const std::string bar = last == std::string::npos ? "" : terminal.substr(last);
        return std::regex_search(bar, found, count) ? std::stoi(found[1]) : -1;
    }

    [[noreturn]] void start(const std::vector<std::string>& arguments, const std::string& terminal,
                            const std::string& out) const {
        std::signal(SIGINT, SIG_DFL);
        const int err = open(terminal.c_str(), O_RDWR | O_NOCTTY),
                  file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (err < 0 || file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) _exit(99);
        if (chdir(path("").c_str()) != 0) _exit(99);
        setenv("REHEARSE_HOME", path("").c_str(), 1);
        std::vector<char*> words{const_cast<char*>(REHEARSE_BINARY)};
        for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
        words.push_back(nullptr);
        execv(REHEARSE_BINARY, words.data());
        _exit(99);
    }
};

const std::vector<std::string> search{"search",    "--model",     "gpt3-175b",      "--machine", "selene",
                                      "--devices", "1024",        "--global-batch", "1536",      "--precision",
                                      "mixed",     "--optimizer", "adam",           "--top",     "4"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST_F(Interrupt, SearchRanksWhatItHasSimulated) {
    const Ended ended = end(with(search, {"--format", "json"}), "plans simulated", 4, SIGINT);
    EXPECT_EQ(ended.code, 130);
    EXPECT_THAT(ended.terminal, HasSubstr("["));
    const Json found = Json::parse(ended.out);
    EXPECT_EQ(found["partial"], true);
    ASSERT_FALSE(found["plans"].empty());
    EXPECT_GT(found["plans"][0]["step_s"], 0);
    EXPECT_TRUE(found["plans"][0]["step_low_s"].is_null()) << "bands come last";
}

TEST_F(Interrupt, ATableSaysThatItIsPartial) {
    const Ended ended = end(search, "plans simulated", 4, SIGTERM);
    EXPECT_EQ(ended.code, 143);
    EXPECT_THAT(ended.out, HasSubstr("partial: ended by SIGTERM"));
}

TEST_F(Interrupt, ValidateJudgesTheRowsThatItHas) {
    const Ended ended =
        end({"validate", "--set", "published", "--filter", "Azure", "--format", "json"}, "rows", 1, SIGINT);
    EXPECT_EQ(ended.code, 130);
    const Json found = Json::parse(ended.out);
    EXPECT_EQ(found["partial"], true);
    EXPECT_FALSE(found["rows"].empty());
}

// The figures of other machines' rows are chosen anew for one machine after the other.
TEST_F(Interrupt, ValidateLeavesOutTheMachinesThatItHas) {
    const Ended ended = end({"validate", "--set", "nccl", "--format", "json"}, "machines", 1, SIGTERM);
    EXPECT_EQ(ended.code, 143);
    const Json found = Json::parse(ended.out);
    EXPECT_EQ(found["partial"], true);
    EXPECT_GT(found["tables"][0]["left_out_median"], 0);
    const auto unseen = [](const Json& table) { return table["left_out_median"].is_null(); };
    EXPECT_TRUE(std::ranges::any_of(found["tables"], unseen)) << "it went on to its end";
}

#ifdef REHEARSE_HAS_BENCH
constexpr const char* product = "matmul:n32m1n64k64:f32:forward";

TEST_F(Interrupt, BenchKeepsTheRoundsThatItHas) {
    // Two problems on a few implementations each: after 40 cases a round of both is done.
    const Ended ended = end({"bench", "gemm", product, "matmul:n32m1n128k128:f32:forward", "--rounds", "100000",
                             "--budget", "5", "--format", "json", "--out", "samples.json"},
                            "timing", 40, SIGINT);
    EXPECT_EQ(ended.code, 130);
    const Json found = Json::parse(ended.out);
    EXPECT_EQ(found["partial"], true);
    ASSERT_FALSE(found["rows"].empty());
    for (const Json& row : found["rows"]) EXPECT_GT(row["median_s"], 0);
    const Json samples = Json::parse(Program::read("samples.json"));
    EXPECT_EQ(samples["partial"], true);
    EXPECT_FALSE(samples["benchmarks"].empty());
}

#ifdef REHEARSE_HAS_SQLITE
TEST_F(Interrupt, TuningKeepsItsWinners) {
    const Ended ended =
        end({"bench", "layer", "--suite", "lenet5", "--batch", "1", "--tune", "--budget", "60", "--format", "json"},
            "tuning", 1, SIGINT);
    EXPECT_EQ(ended.code, 130);
    const Json found = Json::parse(ended.out);
    EXPECT_EQ(found["partial"], true);
    ASSERT_FALSE(found["rows"].empty());
    EXPECT_EQ(Json::parse(run("bench tuned --format json").out)["rows"].size(), found["rows"].size());
}
#endif

#ifdef REHEARSE_HAS_MPI
// Half of a calibration takes no other one's place.
TEST_F(Interrupt, CalibrateKeepsWhatItHasBeside) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    const Ended ended = end({"calibrate", "--quick", "--tune", "off", "--model", "lenet5", "--batch", "1", "--budget",
                             "30", "--machine-out", "host.toml", "--format", "json"},
                            "kernels", 300, SIGINT);  // behind a round of all, probes too
    EXPECT_EQ(ended.code, 130);
    EXPECT_EQ(Json::parse(ended.out)["partial"], true);
    EXPECT_THAT(Program::read("host.partial.toml"), HasSubstr("rehearse.machine/1"));
    EXPECT_FALSE(std::filesystem::exists(path("host.toml")));
}
#endif
#endif

}  // namespace
}  // namespace rehearse
