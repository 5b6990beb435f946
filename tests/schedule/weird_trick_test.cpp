// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/weird_trick.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

/// "name 2x3 movement": each layer with the sizes of its output for one sample.
std::string picture(const Part& part) {
    std::string text;
    for (const Layer& layer : part.network.layers) {
        text += fmt::format("{} {}", layer.name, to_string(layer.output));
        if (const auto* moved = std::get_if<Communication>(&layer.op)) {
            text += fmt::format(" {}{}", to_string(moved->movement), moved->dim);
        }
        text += "\n";
    }
    return text;
}

/// 2x3x3 -> c -> flatten -> f1 (8) -> relu -> f2 (4) -> f3 (3) -> loss.
Network dense_end() {
    Network n{.name = "dense-end", .layers = {}};
    const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
    int at = add(n, "input", Input{{2, 3, 3}}, {});
    at = add(n, "c", Conv{.channels = 2, .height = 3, .width = 3, .filters = 2, .window = same}, {at});
    at = add(n, "flatten", Flatten{{2, 3, 3}}, {at});
    at = add(n, "f1", MatMul{.m = 1, .n = 8, .k = 18}, {at});
    at = add(n, "relu", Activation{Nonlinearity::relu, {8}}, {at});
    at = add(n, "f2", MatMul{.m = 1, .n = 4, .k = 8}, {at});
    at = add(n, "f3", MatMul{.m = 1, .n = 3, .k = 4}, {at});
    add(n, "loss", SoftmaxLoss{3}, {at});
    return n;
}

// Two ranks: a sample of each is a row. Three classes cannot be shared by two, so f3 has one's own samples again.
TEST(OneWeirdTrick, DrawnByHand) {
    const Part part = share_dense_layers(dense_end(), "data", 0, 2);
    EXPECT_EQ(picture(part),
              "input 2x3x3\nc 2x3x3\nflatten 18\n"
              "f1.spread 2x18 spread0\nf1 2x4\nrelu 2x4\n"
              "f2.spread 2x8 spread1\nf2 2x2\n"
              "f3.columns 2x4 gather1\nf3.own 1x4 slice0\nf3 3\nloss 1\n");
    EXPECT_EQ(parameters(part.network), 36 + (18 + 1) * 4 + (8 + 1) * 2 + (4 + 1) * 3);
}

TEST(OneWeirdTrick, SumsTheGradientsOfCopiedLayersOnly) {
    const Schedule schedule = schedule_of(dense_end(), "data:dense=shared:bucket=1B", 2);
    for (const Bucket& bucket : schedule.classes[0].part.buckets) {
        const std::string& name =
            schedule.classes[0].part.network.layers[static_cast<std::size_t>(bucket.layers.front())].name;
        EXPECT_EQ(bucket.axis, name == "f1" || name == "f2" ? -1 : 0) << name;
    }
}

// Of b samples on each of N ranks and k features, a spread hands on (N - 1) b k values a rank forward and as many back
// (Krizhevsky 2014, section 3): counted in the steps' elements, of which a ring sends (N - 1) / N.
TEST(OneWeirdTrick, MovesActivationsNotWeights) {
    const Schedule schedule = schedule_of(dense_end(), "data:dense=shared", 2, 10);
    std::int64_t forward = 0, backward = 0;
    for (const Step& step : schedule.classes[0].steps) {
        const auto* action = std::get_if<Communicate>(&step.action);
        if (action == nullptr || action->of_bucket()) continue;
        (action->pass == Pass::forward ? forward : backward) += action->elements;
    }
    EXPECT_EQ(forward, 10 * 2 * (18 + 8 + 4));
    EXPECT_EQ(backward, 10 * 2 * (18 + 8 + 4));
}

TEST(OneWeirdTrick, NeedsADenseLayerThatCanBeShared) {
    EXPECT_THROW(share_dense_layers(dense_end(), "data", 0, 5), InputError);
    EXPECT_THROW(schedule_of(dense_end(), "data=2:dense=shared,tensor=2", 4), InputError);
}

}  // namespace
}  // namespace rehearse::schedule
