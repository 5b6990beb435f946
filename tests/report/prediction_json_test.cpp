// SPDX-License-Identifier: Apache-2.0
// What is written is read again. Oracle: the prediction itself.
#include "report/prediction_json.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"

namespace rehearse::report {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

predict::Prediction small() {
    return predict::predict({.network = models::load_network("lenet5"),
                             .machine = models::load_machine("summit"),
                             .plan = schedule::parse_plan("data"),
                             .devices = {6, 12},
                             .training = {.dataset = 60000, .epochs = 3}});
}

TEST(PredictionJson, ComesBackAsItWas) {
    predict::Prediction prediction = small();
    prediction.points[1].guessed = 0.25;
    prediction.points[1].figures.counted = 0.5;
    nlohmann::ordered_json document{{"schema", "rehearse.prediction/1"}, {"model", "lenet5"}, {"machine", "summit"}};
    for (const predict::Point& point : prediction.points) document["points"].push_back(json_of(point));
    for (const predict::Explained& part : explained(prediction)) document["explanation"].push_back(json_of(part));
    const PredictionFile read = prediction_of(nlohmann::json::parse(document.dump()), "p.json");
    EXPECT_EQ(read.machine, "summit");
    ASSERT_EQ(read.points.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        const predict::Point &was = prediction.points[i], &is = read.points[i];
        EXPECT_EQ(json_of(is.figures), json_of(was.figures));
        EXPECT_EQ(is.band.low, was.band.low);
        EXPECT_EQ(is.band.high, was.band.high);
        EXPECT_EQ(is.efficiency, was.efficiency);
        EXPECT_EQ(is.utilization, was.utilization);
        EXPECT_EQ(is.guessed, was.guessed);
        EXPECT_EQ(is.mode, was.mode);
        EXPECT_EQ(is.nodes, was.nodes);
        EXPECT_EQ(is.memory.capacity, was.memory.capacity);
        EXPECT_EQ(is.training->all, was.training->all);
        EXPECT_EQ(is.training->node_hours, was.training->node_hours);
    }
    ASSERT_EQ(read.explanation.size(), explained(prediction).size());
    EXPECT_EQ(read.explanation[0].what, explained(prediction)[0].what);
    EXPECT_EQ(read.explanation[0].basis, explained(prediction)[0].basis);
}

TEST(PredictionJson, OfOtherKindsIsRefused) {
    const auto read = [](const char* text) { return [text] { prediction_of(nlohmann::json::parse(text), "x.json"); }; };
    EXPECT_THAT(read(R"({"schema": "rehearse.timeline/1"})"), ThrowsMessage<InputError>(HasSubstr("not a prediction")));
    EXPECT_THAT(read("[]"), ThrowsMessage<InputError>(HasSubstr("x.json")));
    EXPECT_THAT(read(R"({"schema": "rehearse.prediction/1", "points": []})"),
                ThrowsMessage<InputError>(HasSubstr("without points")));
}

// What was let in unknown stands beside the step; where nothing was, nothing is said.
TEST(PredictionJson, SaysWhatShareIsGuessed) {
    Network network{.name = "guess", .layers = {{"input", Input{{16}}, {}, {16}}}};
    network.layers.push_back({"mystery", Unknown{"Mystery", 16, 0, {16}}, {0}, {16}});
    network.layers.push_back({"fc", MatMul{.m = 1, .n = 4, .k = 16}, {1}, {4}});
    network.layers.push_back({"loss", SoftmaxLoss{4}, {2}, {1}});
    const predict::Prediction prediction = predict::predict({.network = network,
                                                             .machine = models::load_machine("summit"),
                                                             .plan = schedule::parse_plan("data"),
                                                             .devices = {6}});
    EXPECT_GT(guessed_share(network), 0.1);
    EXPECT_EQ(json_of(prediction.points.front())["guessed_share"], guessed_share(network));
    EXPECT_FALSE(json_of(small().points.front()).contains("guessed_share"));
}

// A share of all devices' peaks: one half of the operations of two devices that could each do all of them in the step.
TEST(Utilization, IsTheShareOfAllPeaks) {
    const predict::Prediction prediction = small();
    const Machine machine = models::load_machine("summit");
    const FlopRate peak = class_of(machine, 0).peak.at(DataType::f32).value;
    for (const predict::Point& point : prediction.points) {
        EXPECT_NEAR(point.utilization.value(),
                    point.figures.work.value /
                        (point.figures.time.step.value * peak.value * static_cast<double>(point.figures.devices)),
                    1e-12);
    }
}

}  // namespace
}  // namespace rehearse::report
