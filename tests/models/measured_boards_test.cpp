// SPDX-License-Identifier: Apache-2.0
#include "models/measured_boards.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/price_models.hpp"
#include "prices/convolution/families.hpp"
#include "prices/prices.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;

std::string message(const std::function<void()>& call) {
    try {
        call();
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

const std::string header = "N,C,H,K,v100-pcie,t4\n";

TEST(MeasuredBoards, AreReadWithTheAlgorithmThatRan) {
    const std::vector<MeasuredBoard> boards = measured_boards(header + "8,64,28,32,250.5n,\n1,3,7,5,9w,20d\n", "t.csv");
    ASSERT_EQ(boards.size(), 2U);
    EXPECT_EQ(boards[0].name, "v100-pcie");
    ASSERT_EQ(boards[0].kernels.size(), 2U);
    EXPECT_DOUBLE_EQ(boards[0].kernels[0].sample.time.value, 250.5e-6);
    EXPECT_EQ(prices::families()[boards[0].kernels[0].family].name, "winograd not fused");
    EXPECT_EQ(std::get<Conv2d>(boards[0].kernels[0].sample.problem.op).filters, 32);
    ASSERT_EQ(boards[1].kernels.size(), 1U);
    EXPECT_EQ(prices::families()[boards[1].kernels[0].family].name, "direct");
}

TEST(MeasuredBoards, TellFileAndLineOfEveryMistake) {
    const auto read = [](const std::string& text) { return message([&] { measured_boards(text, "t.csv"); }); };
    EXPECT_THAT(read(header + "8,64,28,32,250.5,\n"), HasSubstr("t.csv:2: v100-pcie is '250.5': it is microseconds"));
    EXPECT_THAT(read(header + "8,64,28,32,-1n,\n"), HasSubstr("above zero"));
    EXPECT_THAT(read(header + "8,64,28,32,manyn,\n"), HasSubstr("many"));
    EXPECT_THAT(read(header + "8,0,28,32,1n,\n"), HasSubstr("t.csv:2: C is '0'"));
    EXPECT_THAT(read("N,C,H,K,abacus\n1,1,1,1,5n\n"), HasSubstr("no times of any board"));
    EXPECT_THAT(read(header), HasSubstr("no times of any board"));
}

TEST(MeasuredBoards, RunTheAlgorithmsOfTheirChip) {
    for (const MeasuredBoard& board : measured_boards()) {
        EXPECT_GT(board.kernels.size(), 1900U) << board.name;
        EXPECT_LE(shipped_kernels(board).samples.size(), shipped_count);
        EXPECT_LE(board.sheet.peak, board.boost_peak);
    }
}

// The board's own kernels answer for what they are of, DeepBench's for the rest.
TEST(MeasuredBoards, ComeBeforeTheModelOfTheChip) {
    const auto model = with_board(load_price_model("v100"), "v100-pcie");
    const Problem square{Conv2d{200, 33, 33, 100, Window{3, 3, 1, 1, 1, 1, 1, 1}}, Pass::forward, 16, DataType::f32};
    EXPECT_THAT(model->answer(square)->source, HasSubstr("NeuSight"));
    EXPECT_THAT(model->answer(square)->source, HasSubstr(", by "));
    Problem backward = square, half = square;
    backward.pass = Pass::backward_data;
    half.type = DataType::f16;
    EXPECT_THAT(model->answer(backward)->source, HasSubstr("DeepBench"));
    EXPECT_THAT(model->answer(half)->source, HasSubstr("DeepBench"));
    EXPECT_EQ(model->name(), "v100");
    EXPECT_EQ(model->board(), "v100-pcie");
}

TEST(MeasuredBoards, AreNamedInMachineFilesAndWrittenBack) {
    const std::string text =
        "name = \"m\"\n[[device]]\nname = \"gpu\"\nlike = \"v100-sxm2\"\nprice_model = \"v100\"\n"
        "kernels = \"v100-pcie\"\n[[node]]\nname = \"n\"\ndevices = [{ class = \"gpu\", name = \"gpu\" }]\n";
    const Machine machine = parse_machine(text, "m.toml");
    ASSERT_NE(machine.classes.at(0).model, nullptr);
    EXPECT_EQ(machine.classes[0].model->board(), "v100-pcie");
    EXPECT_EQ(parse_machine(to_toml(machine), "again").classes[0].model->board(), "v100-pcie");
    std::string wrong = text;
    wrong.replace(wrong.find("\"v100-pcie\""), 11, "\"v100-pcje\"");
    EXPECT_THAT(message([&] { parse_machine(wrong, "m.toml"); }), HasSubstr("did you mean 'v100-pcie'?"));
}

}  // namespace
}  // namespace rehearse::models
