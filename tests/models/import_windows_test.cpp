// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools in all their forms, against libonnx's own shape inference.
#include <map>

#include <gtest/gtest.h>
#include <onnx/shape_inference/implementation.h>

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

TEST(Padding, SameUpperPutsTheOddPixelAfter) {
    // 14 pixels, kernel 3, stride 2: 7 windows cover 15 pixels, so one pixel of padding.
    for (const auto& [word, before, after] : {std::tuple{"SAME_UPPER", 0, 1}, std::tuple{"SAME_LOWER", 1, 0}}) {
        OnnxFile file({1, 1, 14, 14});
        auto& node = file.node("MaxPool", {"x"}, "y");
        set(node, "kernel_shape", {3, 3});
        set(node, "strides", {2, 2});
        set_text(node, "auto_pad", word);
        const auto pool = std::get<Pool2d>(import_onnx(file.save("same.onnx")).layers.back().op);
        EXPECT_EQ(pool.window.pad_top, before) << word;
        EXPECT_EQ(pool.window.pad_bottom, after) << word;
    }
}

}  // namespace
}  // namespace rehearse::models
