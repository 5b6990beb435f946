// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "core/op.hpp"
#include "core/problem_forms.hpp"

namespace rehearse {
namespace {

Window cube(std::int64_t pad) {
    Window w{3, 3, 2, 2, pad, pad, pad, pad};
    w.kernel_d = 3;
    w.stride_d = 2;
    w.pad_front = w.pad_back = pad;
    return w;
}

Window uneven_cube() { return {3, 2, 2, 1, 0, 1, 1, 2, 1, 2, 4, 3, 3, 1, 2}; }

const std::vector<Op> ops{
    Input{{3, 224, 224}},
    Conv{64, 56, 56, 64, Window{3, 3, 1, 1, 1, 1, 1, 1}},
    Conv{32, 9, 7, 32, Window{5, 3, 2, 1, 0, 1, 2, 3, 2, 1}, 32, true},
    Conv{16, 32, 32, 16, Window{3, 3, 1, 1, 1, 1, 1, 1}, 1, true, true},
    MatMul{1, 10, 84},
    MatMul{1, 10, 84, true, Nonlinearity::relu},
    MatMul{128, 64, 32, false, Nonlinearity::gelu},
    MatMul{128, 64, 32, false},
    Pool{PoolKind::max, 64, 112, 112, Window{3, 3, 2, 2, 1, 1, 1, 1}},
    Pool{PoolKind::average, 6, 28, 28, Window{2, 2, 2, 2}, true},
    BatchNorm{64, 56, 56},
    BatchNorm{.channels = 64, .height = 56, .width = 56, .relu = true},
    BatchNorm{.channels = 64, .height = 56, .width = 56, .add = true},
    BatchNorm{.channels = 64, .height = 56, .width = 56, .relu = true, .add = true},
    Lrn{96, 27, 27, 5, 1e-4, 0.75, 2},
    Activation{Nonlinearity::gelu, {128, 1024}},
    Add{{64, 56, 56}, 3},
    Concat{{64, 128, 32}, 28, 28},
    ChannelPad{16, 16, 16, 8, 8},
    Dropout{{4096}, 0.25},
    Flatten{{256, 6, 6}},
    Softmax{1000},
    SoftmaxLoss{10},
    SgdUpdate{25557032},
    conv3d(4, 128, 120, 112, 32, cube(1), 1, true),
    conv3d(32, 9, 8, 7, 32, uneven_cube(), 32),
    ConvTranspose{64, 28, 30, 32, Window{3, 3, 2, 2, 1, 1, 1, 1}, 1, true, 0, 0, 1, 1},
    ConvTranspose{64, 28, 30, 32, Window{2, 2, 2, 2}, 2},
    ConvTranspose{64, 9, 9, 32, cube(1), 1, false, 8},
    ConvTranspose{6, 9, 9, 3, uneven_cube(), 3, true, 8, 2, 1, 0},
    Pool{PoolKind::max, 32, 64, 64, cube(0), false, 128},
    Pool{PoolKind::average, 32, 16, 16, uneven_cube(), true, 32},
    BatchNorm{.channels = 32, .height = 64, .width = 60, .depth = 58},
    Concat{{64, 32}, 28, 27, 26},
    SoftmaxLoss{3, {768, 1152}, {0.5, 16, 2.25}},
    SoftmaxLoss{2, {4, 5, 6}},
    Resize{Interpolation::linear, 256, 96, 144, 192, 288},
    Resize{Interpolation::nearest, 2, 3, 4, 6, 8, 5, 10, true},
    Input{{512}, 30522},
    MatMul{512, 30522, 1024, false, {}, true},
    SoftmaxLoss{.classes = 50257, .rows = 1024},
    Attention{16, 512, 512, 64, false, true},
    Attention{3, 5, 7, 11, true},
    Attention{16, 512, 512, 64, true, true, true},
    Attention{8, 16, 16, 32, true, false, false, 2, 24},
    LayerNorm{512, 1024},
    Embedding{512, 30522, 1024, 512, 2},
    Embedding{1, 2, 3},
    EmbeddingBag{26, 100, 1000000, 64},
    EmbeddingBag{2, 100, 1000000, 64, 8, true},
    Interaction{27, 64},
    Embedding{1024, 6288, 2048, 1024, 0, 8},
    SoftmaxTerms{6288, 1024, 8},
    SoftmaxTerms{256, 1024, 2, 301},
    TermsLoss{1024, 8},
    ChannelSums{64, 56, 28},
    ChannelSums{4, 6, 6, 3},
    BatchNorm{.channels = 4, .height = 6, .width = 6, .add = true, .parts = 4},
    DispatchTokens{{512, 1024, 960, 1, 6, 8}},
    CombineTokens{{16, 32, 4, 2, 9}},
    GroupedMatMul{2, 6, 21248, 1024, 480, 8, false},
    GroupedMatMul{4, 9, 3, 5},
    AdamUpdate{335141888},
    LambUpdate{335141888, 398},
    Unknown{"Erf", 12, 3, {4, 5}},
    BatchNorm{.channels = 4, .height = 6, .width = 6, .epsilon = 1e-3, .momentum = 0.01},
    BatchNorm{.channels = 4, .height = 6, .width = 6, .relu = true, .affine = false},
    Flatten{{4, 6}, {2, 12}},
    Elementwise{"mul", {4, 6, 5}, {{4, 6, 5}, {4, 1, 1}}, {{4, 1, 1}}, {{5}}, {-0.5, 1e-7}},
    Elementwise{"hardswish", {7}, {{7}}},
    Reduction{"max", {4, 6, 5}, {1, 2}, true},
    Rearrangement{"transpose", {{4, 6, 5}}, {5, 6, 4}, {2, 1, 0}},
    Rearrangement{"join", {{4, 6}, {3, 6}}, {7, 6}, {0}},
    Rearrangement{"addrows", {{12, 6}, {12}}, {7, 6}},
    Gather{{50, 8}, {6, 8}, 6, true},
    Gather{{4, 6, 5}, {2, 6, 5}, 2, false, true},
    BatchedMatMul{{4, 6, 5}, {4, 5, 3}},
    BatchedMatMul{{6, 5}, {4, 5, 3}, 2},
    Recurrent{"gru", 7, 10, 24, 2, true},
    Normalization{{5, 8}, 5, 8, 8, 1, false, 1e-6},
    Normalization{{4, 6, 5}, 2, 4, 4, 30},
    SoftmaxAlong{{4, 6, 5}, 1, true},
    Parameter{{1, 8}},
};

TEST(ProblemString, IsReadBackForEveryOperatorAndPass) {
    for (const Op& op : ops) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update}) {
            for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
                const Problem problem{op, pass, 32, type};
                SCOPED_TRACE(to_string(problem));
                EXPECT_EQ(parse_problem(to_string(problem)), problem);
            }
        }
    }
}

TEST(ProblemString, IsTheOneOfTheDocumentation) {
    EXPECT_EQ(to_string(Problem{ops[1], Pass::forward, 32, DataType::f32}),
              "conv2d:n32c64h56w56k64r3s3:pad1:stride1:f32:forward");
    EXPECT_EQ(to_string(Problem{MatMul{1, 10, 84}, Pass::backward_data, 8, DataType::bf16}),
              "matmul:n8m1n10k84:bias:bf16:backward_data");
    // Of volumes: d before h, t before r; padding front, top, left, back, bottom, right.
    EXPECT_EQ(to_string(Problem{ops[24], Pass::forward, 1, DataType::f32}),
              "conv3d:n1c4d128h120w112k32t3r3s3:pad1:stride2:bias:f32:forward");
    EXPECT_EQ(to_string(Problem{ops[29], Pass::forward, 1, DataType::f32}),
              "convtranspose:n1c6d8h9w9k3t4r3s2:pad3x0x1x1x1x2:stride3x2x1:dilation2x1x2:groups3:outpad2x1x0:bias:"
              "f32:forward");
    EXPECT_EQ(to_string(Problem{ops[3], Pass::forward, 32, DataType::f32}),
              "conv2d:n32c16h32w32k16r3s3:pad1:stride1:bias:relu:f32:forward");
    EXPECT_EQ(to_string(Problem{BatchNorm{.channels = 16, .height = 32, .width = 32, .relu = true, .add = true},
                                Pass::forward, 32, DataType::f32}),
              "batchnorm:n32c16h32w32:add:relu:f32:forward");
}

// What --help and messages show can be typed.
TEST(ProblemString, FormsOfHelpAreReadAndWrittenAlike) {
    for (const ProblemForm& form : problem_forms()) {
        SCOPED_TRACE(form.example);
        const Problem problem = parse_problem(form.example);
        EXPECT_EQ(to_string(problem), form.example);
        EXPECT_EQ(kind_of(problem.op), form.kind);
        EXPECT_EQ(example_of(form.kind), form.example);
    }
}

TEST(ProblemString, SaysWhatIsWrongWithIt) {
    const std::vector<std::pair<const char*, const char*>> cases{
        {"", "unknown operator"},
        {"conv", "unknown operator 'conv'"},
        {"conv2s:n1c1h1w1k1r1s1:f32:forward", "did you mean 'conv2d'"},
        {"conv2d", "expected conv2d:nBATCH"},
        {"conv2d:c1h1w1k1r1s1:f32:forward", "expected conv2d:nBATCH"},
        {"conv2d:n0c1h1w1k1r1s1:f32:forward", "batch must be at least 1"},
        {"conv2d:n1c1h1w1k1r1s1:f32:forwards", "'forwards' is no pass"},
        {"conv2d:n1c1h1w1k1r1s1:f31:forward", "'f31' is no pass or type"},
        {"conv2d:n1c1h1w1r1s1:f32:forward", "expected 'k'"},
        {"conv2d:n1c1h1w1k1r1s1:pad1x2:f32:forward", "'pad' takes 1 or 4"},
        {"conv2d:n1c1h1w1k1r1s1q1:f32:forward", "left over"},
        {"conv2d:n1c1h2w2k1r3s3:f32:forward", "does not fit"},
        {"conv2d:n1c1h-2w2k1r3s3:f32:forward", "is not a whole number"},
        {"matmul:n1m1n2k3:tanh:f32:forward", "fused with relu or gelu, not with tanh"},
        {"activation:n1:4x4:swish:f32:forward", "unknown activation 'swish'"},
        {"conv2d:n99999999999999999999c1h1w1k1r1s1:f32:forward", "batch"},
        {"conv3d:n1c4h8w8k4r3s3:f32:forward", "expected 'd'"},
        {"conv3d:n1c4d8h8w8k4t3r3s3:pad1x1x1x1:f32:forward", "'pad' takes 1 or 6"},
        {"conv3d:n1c4d0h8w8k4t1r3s3:f32:forward", "a size is 0"},
        {"conv3d:n1c4d8h8w8k4t3r3s3:relu:f32:forward", "conv3d is not fused with relu"},
        {"conv3d:n1c4d2h8w8k4t3r3s3:f32:forward", "depth: a window of 3 does not fit into 2"},
        {"convtranspose:n1c4h8w8k4r3s3:stride2:outpad2:f32:forward", "the output padding is 2, must be below"},
        {"convtranspose:n1c4h8w8k4r3s3:pad9:f32:forward", "padding 9+9 leaves nothing of 8"},
        {"convtranspose:n1c4h8w8k3r3s3:groups2:f32:forward", "cannot be split into 2 groups"},
        {"resize:n1c4h8w8:16x16:linear:f32:forward", "expected the new size"},
        {"resize:n1c4d8h8w8:to16x16:linear:f32:forward", "as many numbers as the old"},
        {"resize:n1c4h8w8:to16x16:cubic:f32:forward", "'nearest' or 'linear' is missing"},
        {"softmaxloss:n1:3:image8x8:weights1+2:f32:forward", "2 class weights for 3 classes"},
        {"attention:n1h1q2k3d4:packed:f32:forward", "3 keys must be as many as the 2 queries"},
        {"attention:n1h1q3k2d4:causal:f32:forward", "the first of 3 queries would see none of 2 keys"},
        {"attention:n1h0q3k2d4:f32:forward", "a size is 0"},
        {"lamb:n1:3:tensors4:f32:update", "3 parameters cannot be 4 tensors"},
        {"embedding:n1t9v2c3:positions8:f32:forward", "9 tokens need a position each, there are 8"},
        {"matmul:n1m0n0k0:f32:forward", "a size is 0"},
        {"softmax:n1:0:f32:forward", "a size is 0"},
        {"sgd:n1:0:f32:update", "a size is 0"},
        {"activation:n1:4x0:relu:f32:forward", "a size is 0"},
        {"matmul:n1m10000000n10000000k10000000:f32:forward", "larger than any kernel works on"},
        {"softmax:n1:9000000000000000000:f32:forward", "larger than any kernel's sizes"},
        {"activation:n1:100000000x100000000:relu:f32:forward", "more elements"},
        {"activation:n1000000000:1000x1000x1000:relu:f32:forward", "more elements"},
        {"add:n1:4:inputs9999999999:f32:forward", "inputs9999999999: 1 to 10000"},
        {"add:n1:4:inputs0:f32:forward", "1 to 10000"},
        {":::", "unknown operator"},
        {"matmul:m1024n1024k1024:f32:forward", "like matmul:n1m1024n1024k1024:f32:forward"},
        {"attention:n1h16:f32:forward", "written like attention:n8h16q512k512d64:f32:forward"},
    };
    for (const auto& [text, why] : cases) {
        SCOPED_TRACE(text);
        try {
            parse_problem(text);
            FAIL() << "accepted";
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr(why));
        }
    }
}

}  // namespace
}  // namespace rehearse
