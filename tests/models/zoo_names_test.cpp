// SPDX-License-Identifier: Apache-2.0
// Names of networks beside names of files: what is which, where both could be meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>

#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// A GPT-2 of two layers, as Hugging Face's config.json has it.
constexpr const char* small_gpt2 =
    R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 100, "n_positions": 16, "n_embd": 8,
        "n_layer": 2, "n_head": 2})";

// Each test in a folder of its own, since names without a slash are looked for here.
class NamesAndFiles : public testing::Test {
protected:
    void SetUp() override {
        before_ = std::filesystem::current_path();
        here_ = std::filesystem::path(testing::TempDir()) / ("rehearse-names-" + std::to_string(getpid()));
        std::filesystem::create_directories(here_);
        std::filesystem::current_path(here_);
    }
    void TearDown() override {
        std::filesystem::current_path(before_);
        std::filesystem::remove_all(here_);
    }
    static void put(const std::string& folder) {
        std::filesystem::create_directories(folder);
        replace_file(folder + "/config.json", small_gpt2);
    }

private:
    std::filesystem::path before_, here_;
};

// 100 x 8 words, 16 x 8 positions; two blocks of 12 x 8 x 8 weights and 13 x 8 vectors; the last norm.
constexpr std::int64_t of_small_gpt2 = 100 * 8 + 16 * 8 + 2 * (12 * 64 + 13 * 8) + 2 * 8;

TEST_F(NamesAndFiles, AFileMayBeginAsANetworkDoes) {
    for (const char* file : {"gpt-13b.onnx", "gpt-h8-a2-l3.onnx", "bert-base@home.onnx", "gnmt@30.onnx",
                             "gru-keywords@7.onnx", "llama3-8b@mine.onnx", "dlrm-x.onnx"})
        EXPECT_THAT([&] { load_network(file); },
                    ThrowsMessage<InputError>(
                        testing::AllOf(HasSubstr(file), Not(HasSubstr("is no size")), Not(HasSubstr("whole number")))))
            << file;
    for (const char* folder : {"gpt-neox-20b", "gpt-large", "bert-base@home", "llama3-8b@mine", "gnmt@home"}) {
        put(folder);
        EXPECT_EQ(parameters(load_network(folder)), of_small_gpt2) << folder;
        EXPECT_EQ(parameters(load_network(std::string{folder} + "/config.json")), of_small_gpt2) << folder;
    }
}

TEST_F(NamesAndFiles, ADecoderOfAnySizeIsStillOne) {
    EXPECT_EQ(load_network("gpt-a2-h8-l3-v10@6").name, "gpt-a2-h8-l3-v10@6");
    EXPECT_THAT([] { load_network("gpt-h8-x2-l3"); }, ThrowsMessage<InputError>(HasSubstr("'x2' is no size")));
    EXPECT_THAT([] { load_network("gpt-13b"); }, ThrowsMessage<InputError>(HasSubstr("gpt-h1024-a16-l24@2048")));
    EXPECT_THAT([] { load_network("bert-base@x"); }, ThrowsMessage<InputError>(HasSubstr("'x' is not a whole number")));
}

TEST_F(NamesAndFiles, ANameGoesBeforeAFolderAndSaysSo) {
    for (const char* name : {"bert-large", "gpt2-xl", "vit-b-16", "gpt-h8-a2-l3-v10@6", "lstm-ptb-small"}) {
        const Network usual = load_network(name);
        put(name);
        const Network named = load_network(name);
        EXPECT_EQ(parameters(named), parameters(usual)) << name;
        ASSERT_EQ(named.notes.size(), usual.notes.size() + 1) << name;
        EXPECT_THAT(named.notes.back(), HasSubstr(std::string{"./"} + name)) << name;
        EXPECT_EQ(parameters(load_network(std::string{"./"} + name)), of_small_gpt2) << name;
    }
}

// What torchvision has them take where the paper says otherwise.
TEST(ZooSummaries, SayWhereANetworkIsNotThePapers) {
    for (const ModelName& each : zoo())
        if (each.name == "efficientnet-b2") {
            EXPECT_THAT(std::string{each.summary}, testing::AllOf(HasSubstr("torchvision"), HasSubstr("260")));
        }
}

}  // namespace
}  // namespace rehearse::models
