// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools in all their forms, against libonnx's own shape inference.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/shape_inference/implementation.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "onnx_file.hpp"

namespace rehearse::models {
namespace {

onnx::ModelProto inferred(const std::string& path) {
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(bytes_of(path)));
    onnx::shape_inference::InferShapes(model);
    return model;
}

struct Sliding {
    const char* name;
    const char* type;
    std::map<std::string, Dims> attributes;
    std::map<std::string, std::string> words;
    std::map<std::string, std::int64_t> numbers;
};

void PrintTo(const Sliding& it, std::ostream* out) { *out << it.name; }

class Windows : public testing::TestWithParam<Sliding> {};

TEST_P(Windows, AreAsManyAsLibonnxInfers) {
    const Sliding& form = GetParam();
    const bool is_conv = std::string(form.type) == "Conv";
    for (const Dims& input : {Dims{1, 4, 13, 17}, Dims{1, 4, 14, 14}, Dims{1, 4, 32, 7}}) {
        OnnxFile file(input);
        file.weights("w", {8, form.numbers.contains("group") ? 2 : 4, 3, 5});
        auto& node =
            file.node(form.type, is_conv ? std::vector<std::string>{"x", "w"} : std::vector<std::string>{"x"}, "y");
        for (const auto& [key, values] : form.attributes) set(node, key, values);
        for (const auto& [key, value] : form.words) set_text(node, key, value);
        for (const auto& [key, value] : form.numbers) set(node, key, value);
        const std::string path = file.save("windows.onnx");
        const onnx::ModelProto model = inferred(path);
        const auto& dims = model.graph().output(0).type().tensor_type().shape();
        ASSERT_EQ(dims.dim_size(), 4);
        EXPECT_EQ(import_onnx(path).layers.back().output,
                  (Shape{dims.dim(1).dim_value(), dims.dim(2).dim_value(), dims.dim(3).dim_value()}));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Windows,
    testing::Values(
        Sliding{"plain", "Conv", {}, {}, {}}, Sliding{"strided", "Conv", {{"strides", {2, 3}}}, {}, {}},
        Sliding{"asymmetric", "Conv", {{"pads", {0, 1, 2, 3}}, {"strides", {2, 2}}}, {}, {}},
        Sliding{"dilated", "Conv", {{"dilations", {2, 1}}, {"pads", {2, 2, 2, 2}}}, {}, {}},
        Sliding{"grouped", "Conv", {{"pads", {1, 2, 1, 2}}}, {}, {{"group", 2}}},
        Sliding{"same_upper", "Conv", {{"strides", {2, 2}}}, {{"auto_pad", "SAME_UPPER"}}, {}},
        Sliding{"same_lower", "Conv", {{"strides", {3, 2}}}, {{"auto_pad", "SAME_LOWER"}}, {}},
        Sliding{"valid", "Conv", {{"strides", {2, 2}}}, {{"auto_pad", "VALID"}}, {}},
        Sliding{"max", "MaxPool", {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}}, {}, {}},
        Sliding{"max_ceil", "MaxPool", {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}}, {}, {{"ceil_mode", 1}}},
        Sliding{"max_dilated_ceil",
                "MaxPool",
                {{"kernel_shape", {2, 3}}, {"strides", {3, 2}}, {"dilations", {2, 2}}, {"pads", {1, 0, 0, 1}}},
                {},
                {{"ceil_mode", 1}}},
        Sliding{"average",
                "AveragePool",
                {{"kernel_shape", {3, 2}}, {"pads", {0, 0, 1, 1}}},
                {},
                {{"count_include_pad", 1}}},
        Sliding{"average_ceil", "AveragePool", {{"kernel_shape", {5, 4}}, {"strides", {4, 3}}}, {}, {{"ceil_mode", 1}}},
        Sliding{"average_same",
                "AveragePool",
                {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}},
                {{"auto_pad", "SAME_UPPER"}},
                {}},
        Sliding{"global", "GlobalAveragePool", {}, {}, {}}, Sliding{"global_max", "GlobalMaxPool", {}, {}, {}}),
    [](const auto& test) { return std::string(test.param.name); });

struct Volume {
    const char* name;
    const char* type;
    Dims weights;
    std::map<std::string, Dims> attributes;
    std::map<std::string, std::int64_t> numbers;
    std::map<std::string, std::string> words;
};

void PrintTo(const Volume& it, std::ostream* out) { *out << it.name; }

class Volumes : public testing::TestWithParam<Volume> {};

// Weights decide whether the node reads an image or a volume; a pool has none and reads a volume.
TEST_P(Volumes, AndTransposedConvolutionsAreAsLargeAsLibonnxInfers) {
    const Volume& form = GetParam();
    const bool image = form.weights.size() == 4;
    for (const Dims& input : image ? std::vector{Dims{1, 4, 9, 7}, Dims{1, 4, 5, 12}}
                                   : std::vector{Dims{1, 4, 9, 7, 8}, Dims{1, 4, 5, 12, 6}}) {
        OnnxFile file(input);
        if (!form.weights.empty()) file.weights("w", form.weights);
        auto& node = file.node(
            form.type, form.weights.empty() ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "w"}, "y");
        for (const auto& [key, values] : form.attributes) set(node, key, values);
        for (const auto& [key, value] : form.numbers) set(node, key, value);
        for (const auto& [key, value] : form.words) set_text(node, key, value);
        const std::string path = file.save("volumes.onnx");
        const onnx::ModelProto model = inferred(path);
        Shape expected;
        for (int i = 1; i < static_cast<int>(input.size()); ++i)
            expected.push_back(model.graph().output(0).type().tensor_type().shape().dim(i).dim_value());
        const Network network = import_onnx(path);
        EXPECT_EQ(network.layers.back().output, expected);
        const Dims& w = form.weights;
        if (!w.empty()) {
            EXPECT_EQ(weights(network.layers.back().op)[0].shape, Shape(w.begin(), w.end()));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Volumes,
    testing::Values(
        Volume{"conv", "Conv", {6, 4, 3, 2, 1}, {{"strides", {2, 1, 3}}, {"pads", {1, 0, 0, 2, 1, 0}}}, {}, {}},
        Volume{"conv_grouped", "Conv", {6, 2, 3, 3, 3}, {{"dilations", {2, 1, 1}}}, {{"group", 2}}, {}},
        Volume{"conv_same", "Conv", {6, 4, 3, 3, 3}, {{"strides", {2, 2, 2}}}, {}, {{"auto_pad", "SAME_LOWER"}}},
        Volume{"transposed", "ConvTranspose", {4, 6, 3, 3}, {{"strides", {2, 3}}, {"pads", {1, 0, 1, 1}}}, {}, {}},
        Volume{"transposed_grouped",
               "ConvTranspose",
               {4, 3, 2, 2},
               {{"strides", {2, 2}}, {"output_padding", {1, 0}}},
               {{"group", 2}},
               {}},
        Volume{"transposed_volume",
               "ConvTranspose",
               {4, 6, 3, 3, 3},
               {{"strides", {2, 2, 3}},
                {"pads", {1, 1, 0, 1, 1, 2}},
                {"output_padding", {1, 0, 2}},
                {"dilations", {1, 2, 1}}},
               {},
               {}},
        Volume{"max", "MaxPool", {}, {{"kernel_shape", {3, 2, 2}}, {"strides", {2, 2, 1}}}, {}, {}},
        Volume{
            "max_ceil", "MaxPool", {}, {{"kernel_shape", {3, 2, 2}}, {"strides", {2, 2, 2}}}, {{"ceil_mode", 1}}, {}},
        Volume{"average", "AveragePool", {}, {{"kernel_shape", {2, 2, 2}}, {"pads", {1, 0, 0, 0, 1, 1}}}, {}, {}},
        Volume{"global", "GlobalAveragePool", {}, {}, {}, {}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Resize, TakesItsSizesAndSaysWhichCoordinatesAreNotOurs) {
    const auto file = [](const char* mode, const char* where) {
        OnnxFile made({1, 4, 6, 5});
        made.integers("sizes", {1, 4, 12, 10});
        auto& node = made.node("Resize", {"x", "", "", "sizes"}, "y");
        set_text(node, "mode", mode);
        set_text(node, "coordinate_transformation_mode", where);
        if (std::string(where) == "asymmetric") set_text(node, "nearest_mode", "floor");
        return made.save("resize.onnx");
    };
    const auto op = [&](const char* mode, const char* where) {
        return std::get<rehearse::Resize>(import_onnx(file(mode, where)).layers.back().op);
    };
    EXPECT_EQ(op("linear", "half_pixel"), (rehearse::Resize{Interpolation::linear, 4, 6, 5, 12, 10}));
    EXPECT_EQ(op("linear", "align_corners"), (rehearse::Resize{Interpolation::linear, 4, 6, 5, 12, 10, 0, 0, true}));
    EXPECT_EQ(op("nearest", "asymmetric"), (rehearse::Resize{Interpolation::nearest, 4, 6, 5, 12, 10}));
    EXPECT_EQ(op("nearest", "half_pixel"), (rehearse::Resize{Interpolation::nearest, 4, 6, 5, 12, 10}));
    EXPECT_TRUE(import_onnx(file("linear", "half_pixel")).notes.empty());
    for (const auto& [mode, where] : {std::pair{"linear", "asymmetric"}, std::pair{"cubic", "half_pixel"}}) {
        const Network network = import_onnx(file(mode, where));
        EXPECT_EQ(network.layers.back().output, (Shape{4, 12, 10}));
        ASSERT_EQ(network.notes.size(), 1u);
        EXPECT_THAT(network.notes[0], testing::HasSubstr("is priced as ours"));
    }
}

TEST(Softmax, OverTheClassesOfEachPixelBecomesItsLoss) {
    OnnxFile file({1, 4, 6, 5}, 13);
    file.weights("w", {3, 4, 1, 1});
    file.node("Conv", {"x", "w"}, "scores");
    set(file.node("Softmax", {"scores"}, "y"), "axis", 1);
    EXPECT_EQ(import_onnx(file.save("pixels.onnx")).layers.back().op, (Op{SoftmaxLoss{3, {6, 5}}}));
}

// 7 pixels and one of padding on both sides hold 4 windows of 2; a fifth would lie in the padding alone. PyTorch leaves
// it out in files of any operator set, libonnx does since set 19 alone.
TEST(Padding, AWindowThatBeginsInThePaddingBehindIsLeftOut) {
    for (const std::int64_t opset : {11, 17, 19}) {
        for (const char* type : {"MaxPool", "AveragePool"}) {
            OnnxFile file({1, 8, 7, 7}, opset);
            auto& node = file.node(type, {"x"}, "y");
            set(node, "kernel_shape", {2, 2});
            set(node, "strides", {2, 2});
            set(node, "pads", {1, 1, 1, 1});
            set(node, "ceil_mode", std::int64_t{1});
            EXPECT_EQ(import_onnx(file.save("ceil.onnx")).layers.back().output, (Shape{8, 4, 4})) << type << opset;
        }
    }
}

TEST(Padding, SameUpperPutsTheOddPixelAfter) {
    // 14 pixels, kernel 3, stride 2: 7 windows cover 15 pixels, so one pixel of padding.
    for (const auto& [word, before, after] : {std::tuple{"SAME_UPPER", 0, 1}, std::tuple{"SAME_LOWER", 1, 0}}) {
        OnnxFile file({1, 1, 14, 14});
        auto& node = file.node("MaxPool", {"x"}, "y");
        set(node, "kernel_shape", {3, 3});
        set(node, "strides", {2, 2});
        set_text(node, "auto_pad", word);
        const auto pool = std::get<Pool>(import_onnx(file.save("same.onnx")).layers.back().op);
        EXPECT_EQ(pool.window.pad_top, before) << word;
        EXPECT_EQ(pool.window.pad_bottom, after) << word;
    }
}

}  // namespace
}  // namespace rehearse::models
