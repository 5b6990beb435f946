// SPDX-License-Identifier: Apache-2.0
// What --help promises for every option of every command, and what tables look like.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <vector>

#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream{text};
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::size_t width(const std::string& line) {
    return static_cast<std::size_t>(
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

struct Described {
    std::string name, placeholder, text;  // "--batch", "N", all words behind it
};

class Help : public Program {
protected:
    std::vector<std::string> commands() const {
        std::vector<std::string> found;
        bool in_list = false;
        for (const std::string& line : lines_of(run("--help").out)) {
            if (in_list && line.size() > 3 && line.starts_with("  ") && line[2] != ' ')
                found.push_back(line.substr(2, line.find(' ', 2) - 2));
            in_list = in_list || line.starts_with("Subcommands:");
        }
        return found;
    }
    // The options of a command's help, each with the lines that belong to it.
    std::vector<Described> options(const std::string& command) const {
        std::vector<Described> found;
        bool in_options = false;
        for (const std::string& line : lines_of(run(command + " --help").out)) {
            if (line.starts_with("Options:"))
                in_options = true;
            else if (!line.empty() && line[0] != ' ')
                in_options = false;
            if (!in_options || line.size() < 4) continue;
            std::smatch match;
            static const std::regex first("^  (?:-[a-z],)?(--[a-z-]+)(?: ([^ ]+))?(.*)$");
            if (line[2] == '-' && std::regex_match(line, match, first)) {
                found.push_back({match[1], match[2], match[3]});
            } else if (!found.empty()) {
                found.back().text += " " + line.substr(line.find_first_not_of(' '));
            }
        }
        return found;
    }
};

// A default, or what happens without the option; of a number its range with the unit. Files are written or read only
// where they are named.
TEST_F(Help, GivesADefaultAndARangeForEveryOption) {
    const std::vector<std::string> all = commands();
    ASSERT_GE(all.size(), 10U);
    std::size_t checked = 0;
    for (const std::string& command : all) {
        for (const Described& option : options(command)) {
            SCOPED_TRACE(command + " " + option.name + " " + option.placeholder + option.text);
            static const std::regex file("^(\\[?FILE|DIR|FOLDER).*"),
                number("(^|[\\[,=|])(N|E|X|W|F|SIGMA|SHARE|SIZE|TIME|TIMES|SECONDS|STEPS|[0-9]+%)($|[\\],|\\[])");
            if (option.placeholder.empty() || std::regex_match(option.placeholder, file)) continue;
            ++checked;
            EXPECT_THAT(option.text, testing::AnyOf(HasSubstr("default"), HasSubstr("required"), HasSubstr("needed")));
            if (!std::regex_search(option.placeholder, number)) continue;
            EXPECT_TRUE(std::regex_search(option.text, std::regex("at least [0-9]|above [0-9]|from [0-9-]|[0-9] to ")))
                << "no range";
        }
    }
    EXPECT_GT(checked, 100U);
}

TEST_F(Help, FitsIntoAHundredColumns) {
    for (const std::string& command : commands()) {
        bool in_examples = false;  // lines to be copied stay whole
        for (const std::string& line : lines_of(run(command + " --help").out)) {
            in_examples = in_examples || line.starts_with("Examples:");
            if (in_examples) break;
            EXPECT_LE(width(line), 100U) << command << ": " << line;
        }
    }
}

// On a terminal of 80 columns, or with COLUMNS=80, help and tables take no more; words that nobody can break stay
// whole.
TEST_F(Help, FitsIntoEightyColumnsWhereThoseAreAsked) {
    ASSERT_EQ(setenv("COLUMNS", "80", 1), 0);
    for (const char* command :
         {"predict --model resnet50 --machine summit --devices 6,384 --batch 32 --explain --memory --links",
          "search --model resnet32 --machine titanx-server --devices 8 --global-batch 256", "machines summit",
          "models resnet32", "frameworks", "machines", "predict --help", "search --help", "run --help"}) {
        for (const std::string& line : lines_of(run(command).out)) {
            if (line.starts_with("Examples:")) break;
            EXPECT_LE(width(line), 80U) << command << ": " << line;
        }
    }
    unsetenv("COLUMNS");
}

// Figures end where the figures above and below them end.
TEST_F(Help, AlignsFiguresAtTheRight) {
    const std::vector<std::string> lines = lines_of(
        run("predict --model resnet50 --machine summit --devices 6,384,27648 --batch 32 --precision mixed -q").out);
    std::size_t end = 0, checked = 0;
    for (const std::string& line : lines) {
        if (const std::size_t at = line.find("devices "); at != std::string::npos && end == 0) end = at + 7;
        if (end == 0 || line.size() <= end) continue;
        for (const char* devices : {"6", "384", "27,648"}) {
            const std::string cell = std::string(end - std::string_view{devices}.size(), ' ') + devices + " ";
            if (line.starts_with(cell)) ++checked;
        }
    }
    EXPECT_GE(checked, 3U) << run("predict --model resnet50 --machine summit --devices 6,384,27648 --batch 32").out;
}

// Nothing that is not on a terminal has control characters, and with NO_COLOR nothing on one has colours (there are
// none).
TEST_F(Help, PrintsNoColours) {
    const std::string command = "predict --model resnet50 --machine summit --devices 6 --batch 32";
    const Output output = run(command);
    EXPECT_EQ((output.out + output.err).find('\033'), std::string::npos);
    const std::string on_terminal = "NO_COLOR=1 REHEARSE_HOME='" + path("") +
                                    "' script -q -e -c '" REHEARSE_BINARY " " + command + "' '" + path("typescript") +
                                    "' > /dev/null";
    if (std::system("command -v script > /dev/null") != 0) GTEST_SKIP() << "script (util-linux) is not installed";
    ASSERT_EQ(std::system(on_terminal.c_str()), 0);
    EXPECT_THAT(read("typescript"), HasSubstr("ms"));
    EXPECT_FALSE(std::regex_search(read("typescript"), std::regex("\033\\[[0-9;]*m")));
}

TEST_F(Help, RangesAreChecked) {
    for (const char* wrong : {"predict --batch 0", "predict --global-batch 0", "predict --devices 6 --dataset 0",
                              "predict --devices 6 --baseline 0", "run --learning-rate 0", "run --weight-decay -1",
                              "search --top 0", "search --max-tensor 0", "search --node-power -5"}) {
        SCOPED_TRACE(wrong);
        const Output output = run(wrong);
        if (output.err.find("this build has no") != std::string::npos) continue;
        EXPECT_EQ(output.code, 2);
        EXPECT_THAT(output.err, testing::ContainsRegex("--[a-z-]+ -?[0-9]+: (at least|above) [0-9]"));
    }
}

TEST_F(Help, HasTheGrammarOfProblems) {
    for (const char* command : {"bench gemm --help", "explain --help"}) {
        EXPECT_THAT(run(command).out, HasSubstr("matmul:n1m1024n1024k1024:f32:forward"));
    }
    const Output output = run("explain matmul:m1024n1024k1024:f32:forward --machine summit");
    EXPECT_EQ(output.code, 2);
    EXPECT_THAT(output.err, HasSubstr("like matmul:n1m1024n1024k1024:f32:forward"));
}

class Tables : public Help {
protected:
    // Lines with the titles of a table: their words stand two spaces apart, and each is a column of the help.
    void expect_defined(const std::string& command, const std::string& first_title) const {
        std::set<std::string> defined;
        bool in_columns = false;
        for (const std::string& line : lines_of(run(command.substr(0, command.find(' ')) + " --help").out)) {
            if (in_columns && line.starts_with("  ") && line[2] != ' ')
                defined.insert(line.substr(2, line.find_last_not_of(' ', 20) - 1));
            in_columns = line.starts_with("Columns of its tables:") || (in_columns && !line.empty());
        }
        const Output output = run(command);
        ASSERT_EQ(output.code, 0) << output.err;
        bool any = false;
        for (const std::string& line : lines_of(output.out)) {
            EXPECT_LE(width(line), 100U) << line;
            const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
            if (line.compare(begin, first_title.size() + 2, first_title + "  ") != 0) continue;
            any = true;
            static const std::regex gap(" {2,}");
            const std::string titles = line.substr(begin);
            for (std::sregex_token_iterator at(titles.begin(), titles.end(), gap, -1), end; at != end; ++at)
                EXPECT_TRUE(defined.contains(at->str())) << "--help does not say what '" << at->str() << "' is";
        }
        EXPECT_TRUE(any) << output.out;
    }
};

TEST_F(Tables, FitIntoAHundredColumnsAndEachColumnIsDefined) {
    const std::vector<std::pair<const char*, const char*>> tables {
        {"models", "name"}, {"models resnet50", "layer"}, {"models resnet50 resnet101", "of the networks"},
            {"machines", "name"}, {"machines summit", "of"},
            {"schedule --model vgg16 --plan pipe=4:microbatches=8", "class"},
            {"schedule --model lenet5 --plan pipe=2:schedule=interleaved:microbatches=4,data=2 --steps", "class"},
#if REHEARSE_HAS_SIM
            {"predict --model resnet50 --machine summit --devices 6,27648 --precision mixed", "devices"},
            {"predict --model resnet50 --machine summit --devices 6,12 --explain", "what"},
            {"predict --model resnet50 --machine summit --devices 6,12 --pilot 6=700/s", "devices"},
            {"predict --model resnet50 --machine summit --devices 6,12 --memory", "class"},
            {"predict --model resnet50 --machine summit --devices 6,12 --links", "links"},
            {"predict --model resnet50 --machine summit --devices 6,12 --dataset 1281167 --epochs 90 --critical-batch "
             "9000 "
             "--noise 5% --samples 2 --input nvme --checkpoint nvme --checkpoint-every 100",
             "devices"},
            {"explain conv2d:n32c64h56w56k64r3s3:pad1:stride1:f16:forward --machine summit", "part"},
            {"explain conv2d:n32c64h56w56k64r3s3:pad1:stride1:f16:forward --machine summit", "problem"},
            {"explain --model resnet50 --machine summit --devices 12 --step bucket0:allreduce", "part"},
            {"search --model resnet50 --machine summit --devices 24 --global-batch 768", "rank"},
            {"learners --model resnet32 --machine titanx-server --devices 8 --dataset 50000", "batch"},
            {"cluster --machine summit --devices 6 --workload poisson:model=lenet5:jobs=4", "policy"},
#endif
#if REHEARSE_HAS_BENCH
            {"bench gemm matmul:n1m8n8k8:f32:forward --budget 0.1 --rounds 1", "problem"},
            {"bench stream --filter L1 --threads 1 --budget 0.1 --rounds 1", "level"},
            {"bench peak --threads 1 --budget 0.1 --rounds 1", "type"},
#endif
    };
    for (const auto& [command, title] : tables) {
        SCOPED_TRACE(command);
        expect_defined(command, title);
    }
}

#if REHEARSE_HAS_SIM
// 27,648 devices at 32 samples each are 884,736; their samples a second have thousands, and no exponent.
TEST_F(Tables, WriteNumbersAsPeopleDo) {
    const std::string out = run("predict --model resnet50 --machine summit --devices 27648 --precision mixed").out;
    EXPECT_THAT(out, HasSubstr("27,648"));
    EXPECT_THAT(out, HasSubstr("884,736"));
    EXPECT_THAT(out, testing::ContainsRegex("[0-9][0-9],[0-9][0-9]0,000"));
    EXPECT_THAT(out, testing::Not(testing::ContainsRegex("[0-9]e[+]")));
    EXPECT_THAT(run("predict --model resnet50 --machine summit --devices 6 --dataset 1281167 --epochs 90").out,
                testing::ContainsRegex("[0-9] h"));
}

// The data sheet's line stands in many rows, and once as a source.
TEST_F(Tables, ListSourcesThatRepeatOnceBelow) {
    const std::string out = run("machines summit").out;
    const std::string source = "public spec sheet of the Tesla V100 SXM2";
    ASSERT_THAT(out, HasSubstr(source));
    EXPECT_EQ(out.find(source), out.rfind(source));
    EXPECT_THAT(out, HasSubstr("\nsources\n[1] "));
}
#endif

}  // namespace
}  // namespace rehearse
