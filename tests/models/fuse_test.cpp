// SPDX-License-Identifier: Apache-2.0
// The pass against networks drawn by hand.
#include "models/fuse.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "core/error.hpp"
#include "models/builder.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

const Fusions all = parse_fusions("on");

// A line a layer: name, operator, the names of what it reads.
std::string drawn(const Network& network) {
    std::string text;
    for (const Layer& layer : network.layers) {
        text += fmt::format("{} {}", layer.name, to_string(layer.op));
        for (const int input : layer.inputs) {
            text += fmt::format(" <{}", network.layers[static_cast<std::size_t>(input)].name);
        }
        text += '\n';
    }
    return text;
}

// A residual block whose shortcut has a batch normalization of its own, made after the one on the main way.
Network residual() {
    NetworkBuilder b("residual", {2, 4, 4});
    const int stem = b.relu("relu0", b.conv("conv0", NetworkBuilder::input, 2, square(1), true));
    int x = b.relu("a.relu1", b.batch_norm("a.bn1", b.conv("a.conv1", stem, 2, square(1))));
    x = b.batch_norm("a.bn2", b.conv("a.conv2", x, 2, square(1)));
    const int shortcut = b.batch_norm("a.down.bn", b.conv("a.down.conv", stem, 2, square(1)));
    x = b.relu("a.relu2", b.add("a.add", x, shortcut));
    b.loss(b.dense("fc", b.flatten("flatten", x), 3));
    return b.build();
}

TEST(Fuse, JoinsWhatFollowsWithWhatItFollows) {
    EXPECT_EQ(drawn(fuse(residual(), all)),
              "input input:2x4x4\n"
              "conv0+relu0 conv2d:c2h4w4k2r1s1:pad0:stride1:bias:relu <input\n"
              "a.conv1 conv2d:c2h4w4k2r1s1:pad0:stride1 <conv0+relu0\n"
              "a.bn1+relu1 batchnorm:c2h4w4:relu <a.conv1\n"
              "a.conv2 conv2d:c2h4w4k2r1s1:pad0:stride1 <a.bn1+relu1\n"
              "a.down.conv conv2d:c2h4w4k2r1s1:pad0:stride1 <conv0+relu0\n"
              "a.down.bn batchnorm:c2h4w4 <a.down.conv\n"
              "a.bn2+add+relu2 batchnorm:c2h4w4:add:relu <a.conv2 <a.down.bn\n"
              "flatten flatten:2x4x4 <a.bn2+add+relu2\n"
              "fc matmul:m1n3k32:bias <flatten\n"
              "loss softmaxloss:3 <fc\n");
}

TEST(Fuse, JoinsOnlyWhatIsAskedFor) {
    EXPECT_EQ(drawn(fuse(residual(), {})), drawn(residual()));
    const auto names = [](const char* which) {
        std::vector<std::string> joined;
        for (const Layer& layer : fuse(residual(), parse_fusions(which)).layers) {
            if (layer.name.find('+') != std::string::npos) joined.push_back(layer.name);
        }
        return joined;
    };
    using testing::ElementsAre;
    EXPECT_THAT(names("conv-relu"), ElementsAre("conv0+relu0"));
    EXPECT_THAT(names("bn-relu"), ElementsAre("a.bn1+relu1"));
    EXPECT_THAT(names("bn-add-relu,conv-relu"), ElementsAre("conv0+relu0", "a.bn2+add+relu2"));
    EXPECT_THAT(names("matmul-relu,matmul-gelu"), ElementsAre());
}

TEST(Fuse, LeavesWhatHasASecondReader) {
    NetworkBuilder b("shared", {2, 4, 4});
    const int conv = b.conv("conv", NetworkBuilder::input, 2, square(1));
    const int bn = b.batch_norm("bn", b.relu("relu", conv));
    int x = b.add("add", bn, b.relu("late", bn));  // bn is read twice
    x = b.add("again", x, conv);                   // conv, too
    const int twice = b.batch_norm("bn2", x);
    b.loss(b.dense("fc", b.flatten("flatten", b.add("double", twice, twice)), 3));
    const Network network = b.build();
    EXPECT_EQ(drawn(fuse(network, all)), drawn(network));
}

TEST(Fuse, JoinsASumOfTwoOnlyAndOneOfTheTwo) {
    NetworkBuilder b("sums", {2, 4, 4});
    const int in = b.conv("conv", NetworkBuilder::input, 2, square(1));
    const int left = b.batch_norm("left", in), right = b.batch_norm("right", in);
    const int sum = b.add("sum", left, right);  // no ReLU behind it
    const int third = b.batch_norm("third", in);
    const int three = b.layer("three", Add{{2, 4, 4}, 3}, {sum, third, in});
    b.loss(b.dense("fc", b.flatten("flatten", three), 3));
    const std::string text = drawn(fuse(b.build(), all));
    EXPECT_THAT(text, testing::HasSubstr("left+sum batchnorm:c2h4w4:add <conv <right\n"));
    EXPECT_THAT(text, testing::HasSubstr("three add:2x4x4:inputs3 <left+sum <third <conv\n"));
}

TEST(Fuse, JoinsDenseLayersWithTheirActivations) {
    NetworkBuilder b("dense", {6});
    int x = b.relu("relu", b.dense("fc1", NetworkBuilder::input, 5));
    x = b.layer("gelu", Activation{Nonlinearity::gelu, {4}}, {b.dense("fc2", x, 4)});
    x = b.layer("tanh", Activation{Nonlinearity::tanh, {4}}, {b.dense("fc3", x, 4)});
    b.loss(x);
    EXPECT_EQ(drawn(fuse(b.build(), all)),
              "input input:6\n"
              "fc1+relu matmul:m1n5k6:bias:relu <input\n"
              "fc2+gelu matmul:m1n4k5:bias:gelu <fc1+relu\n"
              "fc3 matmul:m1n4k4:bias <fc2+gelu\n"
              "tanh activation:4:tanh <fc3\n"
              "loss softmaxloss:4 <tanh\n");
}

TEST(Fuse, LeavesParametersAndTheWorkOfEveryNetworkAsTheyAre) {
    for (const ModelName& model : zoo()) {
        SCOPED_TRACE(model.name);
        const Network before = model.build();
        const Network after = fuse(before, all);
        EXPECT_EQ(parameters(after), parameters(before));
        EXPECT_EQ(after.state, before.state);
        // A fused GELU computes its slope beside its value, so that backward need not.
        const Network without_gelu = fuse(before, parse_fusions("conv-relu,matmul-relu,bn-relu,bn-add-relu"));
        EXPECT_EQ(flops(without_gelu, Pass::forward), flops(before, Pass::forward));
        const bool any = std::ranges::any_of(before.layers, [](const Layer& layer) {
            const auto* function = std::get_if<Activation>(&layer.op);
            return std::holds_alternative<BatchNorm>(layer.op) ||
                   (function != nullptr &&
                    (function->kind == Nonlinearity::relu || function->kind == Nonlinearity::gelu));
        });
        // Nothing stands alone in an LSTM; a diffusion's GELU reads half of a dense layer's rows, a graph's ReLU sums.
        if (!any || model.name.starts_with("lstm") || model.name.starts_with("stable") ||
            model.name.starts_with("gcn")) {
            EXPECT_EQ(drawn(after), drawn(before));
            continue;
        }
        EXPECT_LT(after.layers.size(), before.layers.size());
        EXPECT_LT(activation_bytes(after, DataType::f32), activation_bytes(before, DataType::f32));
        EXPECT_EQ(drawn(fuse(after, all)), drawn(after)) << "nothing is left to fuse";
    }
}

// A layer that shares weights finds them where the layers before it have moved together.
TEST(Fuse, KeepsWhoseWeightsAreShared) {
    NetworkBuilder b("shared", {3, 8, 8});
    int x = b.relu("relu1", b.conv("first", NetworkBuilder::input, 4, square(3, 1, 1)));
    const int owner = b.conv("second", x, 4, square(3, 1, 1));
    x = b.relu("relu2", owner);
    x = b.layer("again", Shared{std::make_shared<const SharedOp>(SharedOp{b.at(owner).op})}, {x});
    b.at(x).weights_of = owner;
    b.loss(b.flatten("flatten", x));
    const Network after = fuse(b.build(), all);
    const auto again = static_cast<std::size_t>(find_layer(after, "again").value());
    EXPECT_EQ(after.layers[again].weights_of, find_layer(after, "second+relu2").value_or(-2));
}

TEST(ParseFusions, SaysWhichWordIsUnknown) {
    EXPECT_EQ(parse_fusions("on").size(), fusion_names().size());
    EXPECT_TRUE(parse_fusions("off").empty());
    EXPECT_EQ(parse_fusions("bn-relu,conv-relu"), (Fusions{Fusion::conv_relu, Fusion::bn_relu}));
    using testing::AllOf;
    using testing::HasSubstr;
    EXPECT_THAT([] { parse_fusions("conv-relu,bn-rely"); },
                testing::ThrowsMessage<InputError>(AllOf(HasSubstr("'bn-rely'"), HasSubstr("did you mean 'bn-relu'"))));
    EXPECT_THROW(parse_fusions(""), InputError);
}

}  // namespace
}  // namespace rehearse::models
