// SPDX-License-Identifier: Apache-2.0
// Wrong input ends with exit code 2, nothing on stdout, and a message that says what would be right.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "tests/cli/bad_input.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

TEST_F(BadInput, OfCommandsAndOptions) {
    expect_refused(
        {{"", "there are predict, search, cluster, report, run, study, schedule, compare"},
         {"predit", "did you mean 'predict'"},
         {"models --frmat json", "did you mean '--format'"},
         {"models --format yaml", "table, csv, json"},
         {"compare one.json", "MEASURED"},
         {"export a.json --to perfetto", "file to write"},
         {"export a.json b.json --to perfeto", "did you mean 'perfetto'"},
         {"export a.json b.json --to perfetto", "ends in .json, which is another format"},
         {"export a.json b.csv --to csv --dark", "--dark changes nothing here"},
         {"export a.json b.csv --to csv --picture pipeline", "--picture changes nothing here"},
         {"export a.json b.svg --to svg --picture pipeline --coloring waiting", "--coloring changes nothing"},
         {"export a.json b.svg --to svg --machine eos", "it goes with --to svg, png or pdf and --picture topology"},
         {"machines --plot m.svg", "NAME"},
         {"machines summit --plot m.jpg", "m.jpg"}});
}

TEST_F(BadInput, OfNamesAndFiles) {
    write("bad.json", "{\"traceEvents\": [");
    expect_refused(
        {{"models resnet51", "did you mean 'resnet50'"},
         {"machines sumit", "did you mean 'summit'"},
         {"machines no-such.toml", "no-such.toml"},
         {"compare no-such.json no-such.json", "no-such.json"},
         {"compare bad.json bad.json", "bad.json"},
         {"calibrate --trace bad.json", "--machine-out"},
         {"calibrate --trace bad.json --model mlp,vgg8 --machine cori-haswell --machine-out m.toml", "the one --model"},
         {"calibrate --trace bad.json --model mlp --machine cori-haswell --machine-out m.toml", "cut off at byte 17"},
         {"models --output /no/such/folder/x", "/no/such/folder"},
         {"models --output /proc/x", "cannot be written"},
         {"models --output {}", "directory"}});
}

TEST_F(BadInput, NeverOverwritesUnasked) {
    write("mine.txt", "precious");
    expect_refused({{"models --output mine.txt", "--force"}});
    EXPECT_EQ(read("mine.txt"), "precious");
    EXPECT_EQ(run("models --output mine.txt --force").code, 0);
    EXPECT_THAT(read("mine.txt"), HasSubstr("resnet50"));
}

TEST_F(BadInput, OfFilesToWrite) {
    std::filesystem::create_symlink(path("b"), path("a"));
    std::filesystem::create_symlink(path("a"), path("b"));
    const std::string longest(300, 'x');
    expect_refused({{"models --output {}/a", "levels of symbolic links"},
                    {("models --output {}/" + longest).c_str(), "name too long"},
                    {"models {}/a", "levels of symbolic links"},
                    {"schedule --model lenet5 --draw {}/x.svg --output {}/./x.svg", "--output and --draw both name"}});
    EXPECT_EQ(run("models --output /dev/null").code, 0);
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// What could not be written is no success, of help either.
TEST_F(BadInput, OfAFullDisk) {
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    for (const char* arguments : {"--help", "predict --help", "models", "models --format json"}) {
        SCOPED_TRACE(arguments);
        const Output output = run(std::string{arguments} + " > /dev/full 2> {}/err # and not to");
        EXPECT_EQ(output.code, 3);
        EXPECT_THAT(output.err, HasSubstr("stdout cannot be written"));
    }
}

// A limit of the shell or the batch system, which would end the process by a signal.
TEST_F(BadInput, OfFilesBeyondTheirLimit) {
    write("table.json", "before");
    const rlimit kilobyte{1024, RLIM_INFINITY};
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &kilobyte), 0);
    const Output output = run("models --format json --output {}/table.json --force");
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
    EXPECT_EQ(output.code, 2);
    EXPECT_THAT(output.err, HasSubstr("table.json: cannot be written: File too large"));
    EXPECT_EQ(read("table.json"), "before");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{path("")}, {}), 3) << "table.json, out and err";
}

// CLI11 would read the first as 8 and the second as 16, take the third for 0 and the fourth for the largest there is.
TEST_F(BadInput, OfNumbers) {
    for (const char* number : {"010", "0x10", "''", "100000000000000000000000", "1e3", "+5", "' 5'", "5.0"}) {
        SCOPED_TRACE(number);
        const Output output = run(std::string{"models resnet50 --depth "} + number);
        EXPECT_EQ(output.code, 2);
        EXPECT_THAT(output.err, HasSubstr("a whole number, in decimal digits"));
    }
    expect_refused({{"schedule --batch 010", "a whole number, in decimal digits"},
                    {"schedule --devices 0x2", "a whole number, in decimal digits"},
                    {"schedule --batch -8", "at least 1"},
                    {"schedule --batch 1000000001", "at most 1000000000"},
                    {"run --learning-rate 1e39", "of a size from 1.2e-38 to 3.4e38"},
                    {"run --learning-rate 1e-50", "of a size from 1.2e-38 to 3.4e38"},
                    {"run --momentum nan", "a number in decimal digits"}});
    EXPECT_EQ(run("schedule --model lenet5 --batch 8").code, 0);
}

// Bytes that turn a terminal's screen over, of a name or a file.
TEST_F(BadInput, NeverReachesATerminalAsItIs) {
    const Output output = run("models \"$(printf 'a\\033[2J\\377')\"");
    EXPECT_EQ(output.code, 2);
    EXPECT_THAT(output.err, HasSubstr("a\\x1b[2J\\xff"));
}

// docs/limits.md: one more is refused with the limit; the limit itself is not, and what is said is of the network.
TEST_F(BadInput, BeyondTheLimitsOfOptions) {
    struct Limit {
        std::string command, option;
        std::int64_t most = 0;
    };
    std::vector<Limit> limits{{"schedule", "batch", 1'000'000'000}, {"schedule", "global-batch", 1'000'000'000}};
#if REHEARSE_HAS_SIM
    limits.insert(limits.end(), {{"predict", "steps", 10'000},
                                 {"predict", "samples", 100'000},
                                 {"predict", "data-servers", 1'000'000},
                                 {"search", "top", 10'000},
                                 {"search", "max-tensor", 65'536},
                                 {"search", "max-pipe", 65'536},
                                 {"search", "max-expert", 65'536},
                                 {"search", "max-chunks", 1'024},
                                 {"learners", "most", 1'000}});
    expect_refused({{"cluster --devices 1000001", "at most 1000000"}});
#endif
#if REHEARSE_HAS_MPI
    limits.insert(limits.end(), {{"run", "steps", 1'000'000'000}, {"run", "learners", 1'000}});
#endif
    for (const Limit& limit : limits) {
        const std::string before = fmt::format("{} --model no-such-network --{} ", limit.command, limit.option);
        const std::string beyond = before + std::to_string(limit.most + 1), at = before + std::to_string(limit.most);
        expect_refused({{beyond.c_str(), fmt::format("at most {}", limit.most).c_str()},
                        {at.c_str(), "unknown network 'no-such-network'"}});
    }
}

#if REHEARSE_HAS_ONNX
TEST_F(BadInput, OfATruncatedEmptyOrMissingNetwork) {
    std::ifstream file{std::string{REHEARSE_TEST_DATA} + "/onnx/light_squeezenet.onnx", std::ios::binary};
    std::ostringstream whole;
    whole << file.rdbuf();
    ASSERT_GT(whole.str().size(), 1000U);
    write("cut.onnx", whole.str().substr(0, whole.str().size() / 2));
    write("empty.onnx", "");
    expect_refused({{"models cut.onnx", "cut.onnx"},
                    {"models empty.onnx", "empty.onnx"},
                    {"models no-such.onnx", "no-such.onnx"},
                    {"models {}", "directory"}});
}
#endif

}  // namespace
}  // namespace rehearse
