// SPDX-License-Identifier: Apache-2.0
// The GPU's layers with every thread's part taken in turn on the host, and on a GPU where there is one, against the
// reference, in every type.
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/nvml.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/on_an_engine.hpp"
#include "tests/kernels/stored.hpp"

namespace rehearse::kernels::cuda {
namespace {

void run(Tensors& t, Pass pass, DataType type, const Backend& backend) {
    if (type == DataType::f32) t.run(backend, pass);
    if (type == DataType::f16) run_stored<Float16>(t, backend, pass);
    if (type == DataType::bf16) run_stored<BFloat16>(t, backend, pass);
}

// Sums of whole numbers are exact whatever their order; what divides, takes a root or an exponential rounds a few times
// 2^-24 of numbers below 2^6, and both sides round once to their type.
void expect_near(const std::vector<float>& got, const std::vector<float>& right, DataType type, bool exact) {
    ASSERT_EQ(got.size(), right.size());
    const double absolute = exact ? 0 : 0x1p-15;
    const double relative = exact ? 0 : type == DataType::f32 ? 0x1p-18 : 2 * unit_roundoff(type);
    for (std::size_t i = 0; i < right.size(); ++i) {
        ASSERT_TRUE(std::abs(got[i] - right[i]) <= absolute + relative * std::abs(right[i]))
            << "at " << i << ": " << got[i] << " instead of " << right[i];
    }
}

void compare(const Op& op, DataType type, std::int64_t batch, bool exact, Engine& engine) {
    const auto device = layers(engine);
    const auto backend = staged(*device, engine);
    Tensors expected{op, batch, reference::backend()}, actual{op, batch, *backend};
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        if (!has_pass(op, pass)) continue;
        const Problem problem{op, pass, batch, type};
        SCOPED_TRACE(to_string(problem));
        ASSERT_TRUE(backend->supports(problem).yes) << backend->supports(problem).reason;
        run(expected, pass, type, reference::backend());
        run(actual, pass, type, *backend);
        if (pass == Pass::forward) expect_near(actual.dst, expected.dst, type, exact);
        if (pass == Pass::forward) expect_near(actual.state, expected.state, DataType::f32, false);
        if (pass == Pass::backward_weights || (pass == Pass::backward_data && gradients_together(op))) {
            expect_near(actual.diff_weights, expected.diff_weights, type, exact);
        }
        for (std::size_t i = 0; pass == Pass::backward_data && i < expected.diff_src.size(); ++i) {
            expect_near(actual.diff_src[i], expected.diff_src[i], type, exact);
        }
        actual.dst = expected.dst;  // later passes see the same bits
    }
}

void compare_in_every_type(const Op& op, bool exact, Engine& engine) {
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) compare(op, type, 3, exact, engine);
}

TEST_P(OnAnEngine, MovesAndAddsExactly) {
    compare_in_every_type(Activation{Nonlinearity::relu, {3, 5, 7}}, true, *engine_);
    for (const std::int64_t inputs : {2, 3, 4, 5, 9}) compare_in_every_type(Add{{5, 13}, inputs}, true, *engine_);
    compare_in_every_type(Concat{{3, 1, 5}, 4, 3}, true, *engine_);
    compare_in_every_type(Concat{{2, 2}, 2, 3, 4}, true, *engine_);
    compare_in_every_type(ChannelPad{3, 5, 3, 2, 1}, true, *engine_);
    compare_in_every_type(Flatten{{3, 5, 7}}, true, *engine_);
    compare_in_every_type(Bias{{5, 4, 3}, 0}, true, *engine_);
    compare_in_every_type(Bias{{4, 7}, 1}, true, *engine_);
    compare_in_every_type(Dropout{{300}, 0.25}, true, *engine_);
}

// Eight numbers an access, with some left at the end; runs that begin at whole 16 bytes, and some that do not.
TEST_P(OnAnEngine, TakesEightNumbersAtOnce) {
    compare_in_every_type(Activation{Nonlinearity::relu, {4, 24, 29}}, true, *engine_);
    compare_in_every_type(Add{{1367}, 3}, true, *engine_);
    compare_in_every_type(Concat{{3, 2}, 4, 6}, true, *engine_);
    compare_in_every_type(Concat{{3, 2}, 4, 5}, true, *engine_);
    compare_in_every_type(Bias{{3, 8, 5}, 0}, true, *engine_);
    compare_in_every_type(Bias{{16}, 0}, true, *engine_);
}

// A channel's sums in several parts, whose last one is shorter; columns in parts of rows, more of them than a block
// has.
TEST_P(OnAnEngine, JoinsTheSumsOfParts) {
    compare_in_every_type(Bias{{3, 61, 67}, 0}, true, *engine_);
    compare_in_every_type(Bias{{211, 5}, 1}, true, *engine_);
    compare_in_every_type(Bias{{67, 264}, 1}, true, *engine_);
    for (const bool relu : {false, true})
        compare(BatchNorm{3, 64, 72, 0, relu, true}, DataType::f32, 3, false, *engine_);
    compare(BatchNorm{2, 61, 67}, DataType::f16, 3, false, *engine_);
    compare(BatchNorm{3, 56, 56}, DataType::bf16, 3, false, *engine_);
    compare_in_every_type(LayerNorm{71, 12}, false, *engine_);
    compare(LayerNorm{45, 264}, DataType::f16, 3, false, *engine_);
    compare(LayerNorm{45, 260}, DataType::f32, 3, false, *engine_);
}

TEST_P(OnAnEngine, ActivatesAsTheReference) {
    for (const Nonlinearity kind : {Nonlinearity::sigmoid, Nonlinearity::tanh, Nonlinearity::gelu}) {
        compare_in_every_type(Activation{kind, {257}}, false, *engine_);
    }
}

TEST_P(OnAnEngine, PoolsLopsidedOverlappingAndDilatedWindows) {
    const Window plain{3, 3, 2, 2, 1, 1, 1, 1, 1, 1}, lopsided{2, 3, 1, 2, 0, 1, 1, 0, 2, 1},
        far{2, 2, 3, 3, 3, 3, 0, 0, 1, 1};
    Window deep{3, 3, 2, 1, 1, 1, 1, 1, 1, 1};
    deep.kernel_d = 2, deep.stride_d = 2, deep.pad_front = 1;
    for (const PoolKind kind : {PoolKind::max, PoolKind::average}) {
        const bool exact = kind == PoolKind::max;
        compare_in_every_type(Pool{kind, 3, 9, 8, plain}, exact, *engine_);
        compare_in_every_type(Pool{kind, 2, 7, 9, lopsided, true}, exact, *engine_);
        compare_in_every_type(Pool{kind, 2, 8, 8, far}, exact, *engine_);  // windows without a pixel
        compare_in_every_type(Pool{kind, 2, 5, 6, deep, false, 4}, exact, *engine_);
    }
}

TEST_P(OnAnEngine, NormalizesAsTheReference) {
    for (const bool relu : {false, true}) {
        for (const bool add : {false, true}) compare_in_every_type(BatchNorm{5, 7, 6, 0, relu, add}, false, *engine_);
    }
    compare_in_every_type(BatchNorm{3, 4, 5, 6}, false, *engine_);
    compare_in_every_type(BatchNorm{2, 31, 33}, false, *engine_);
    compare_in_every_type(LayerNorm{5, 12}, false, *engine_);
    compare_in_every_type(LayerNorm{1, 700}, false, *engine_);
}

TEST_P(OnAnEngine, TakesTheLossOfSamplesRowsAndPixels) {
    compare_in_every_type(Softmax{300}, false, *engine_);
    compare_in_every_type(SoftmaxLoss{1000}, false, *engine_);
    compare_in_every_type(SoftmaxLoss{5, {6, 7}, {0.5, 2, 1, 0, 3}}, false, *engine_);
    SoftmaxLoss rows{270};
    rows.rows = 4;
    compare_in_every_type(rows, false, *engine_);
}

// 1 - p of the label is some 1e-7 here, of which a difference of two f32 numbers keeps no digit. Exponentials are off
// by u of their exponents, 21 at most, and by a few u; sums by u of each addition.
TEST_P(OnAnEngine, TakesTheGradientOfWhatIsNearlyCertain) {
    for (const SoftmaxLoss& op : {SoftmaxLoss{3}, SoftmaxLoss{700}, SoftmaxLoss{5, {3, 2}, {0.5, 2, 1, 0.25, 3}}}) {
        SCOPED_TRACE(to_string(op));
        const auto device = layers(*engine_);
        const auto backend = staged(*device, *engine_);
        Tensors expected{op, 3, reference::backend()}, actual{op, 3, *backend};
        const auto places = static_cast<std::size_t>(elements(op.image));
        for (std::size_t at = 0; at < expected.labels.size(); ++at) {
            const std::size_t sample = at / places * static_cast<std::size_t>(op.classes) * places;
            const std::size_t label = sample + static_cast<std::size_t>(expected.labels[at]) * places + at % places;
            expected.src[0][label] = 14.3F + static_cast<float>(at) / 8;
        }
        actual.src[0] = expected.src[0];
        expected.run(reference::backend(), Pass::backward_data);
        actual.run(*backend, Pass::backward_data);
        const double relative = (2 * 24 + 32) * 0x1p-24;
        for (std::size_t i = 0; i < expected.diff_src[0].size(); ++i) {
            const double right = expected.diff_src[0][i];
            EXPECT_NEAR(actual.diff_src[0][i], right, relative * std::abs(right)) << "at " << i;
        }
    }
}

TEST_P(OnAnEngine, NormalizesAcrossChannels) {
    compare_in_every_type(Lrn{7, 3, 5, 5, 0.25, 0.75, 2}, false, *engine_);
    compare_in_every_type(Lrn{6, 2, 2, 4, 0.5, 0.5, 1}, false, *engine_);
    compare_in_every_type(Lrn{3, 4, 4, 9}, false, *engine_);
}

TEST_P(OnAnEngine, Resizes) {
    for (const Interpolation kind : {Interpolation::nearest, Interpolation::linear}) {
        for (const bool corners : {false, true}) {
            compare_in_every_type(Resize{kind, 3, 4, 5, 9, 7, 0, 0, corners}, false, *engine_);
            compare_in_every_type(Resize{kind, 2, 6, 6, 3, 1, 0, 0, corners}, false, *engine_);
            compare_in_every_type(Resize{kind, 2, 3, 4, 5, 8, 2, 5, corners}, false, *engine_);
        }
    }
}

TEST_P(OnAnEngine, PicksRowsOfTables) {
    compare_in_every_type(Embedding{6, 11, 5}, true, *engine_);
    Embedding all{6, 11, 5};
    all.positions = 6, all.segments = 2;
    compare_in_every_type(all, true, *engine_);
}

// Bit for bit, several steps on.
TEST_P(OnAnEngine, UpdatesAsTheReferenceToTheBit) {
    const auto device = layers(*engine_);
    const auto backend = staged(*device, *engine_);
    for (const Op& op : {Op{SgdUpdate{1000}}, Op{AdamUpdate{1000}}}) {
        Tensors expected{op, 1, reference::backend()}, actual{op, 1, *backend};
        for (Tensors* t : {&expected, &actual}) {
            for (std::int64_t step = 1; step <= 3; ++step) {
                t->diff_weights = whole_numbers(1000, static_cast<std::uint64_t>(step));
                Buffers b = t->buffers();
                b.learning_rate = 0.01F, b.momentum_factor = 0.9F, b.weight_decay = 0.3F, b.update_count = step;
                const Backend& by = t == &actual ? *backend : reference::backend();
                by.prepare({op, Pass::update, 1, DataType::f32})->run(b);
            }
        }
        EXPECT_EQ(actual.weights, expected.weights) << to_string(op);
        EXPECT_EQ(actual.momentum, expected.momentum);
        EXPECT_EQ(actual.second_moment, expected.second_moment);
    }
}

// Inputs of up to a half, so that no score stands out: gradients are sums of some hundred terms below 2^4, of which
// each carries its probability's rounding; in 16 bits also that of dst, whose product with diff_dst is taken from all.
void expect_same_attention(const Attention& op, DataType type, std::int64_t batch, Engine& engine) {
    const auto device = layers(engine);
    const auto backend = staged(*device, engine);
    SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, type}));
    Tensors expected{op, batch, reference::backend()}, actual{op, batch, *backend};
    for (Tensors* t : {&expected, &actual}) {
        for (auto& tensor : t->src) {
            for (float& value : tensor) value /= 8;
        }
    }
    const double tolerance = type == DataType::f32 ? 0x1p-12 : type == DataType::f16 ? 0x1p-8 : 0x1p-5;
    for (const Pass pass : {Pass::forward, Pass::backward_data}) {
        run(expected, pass, type, reference::backend());
        run(actual, pass, type, *backend);
        for (std::size_t i = 0; pass == Pass::forward && i < expected.dst.size(); ++i) {
            ASSERT_NEAR(actual.dst[i], expected.dst[i], tolerance / 4) << "at " << i;
        }
        for (std::size_t part = 0; pass == Pass::backward_data && part < expected.diff_src.size(); ++part) {
            for (std::size_t i = 0; i < expected.diff_src[part].size(); ++i) {
                const float right = expected.diff_src[part][i];
                const double rounded = type == DataType::f32 ? 0 : 2 * unit_roundoff(type) * std::abs(right);
                ASSERT_NEAR(actual.diff_src[part][i], right, tolerance + rounded) << part << " at " << i;
            }
        }
        actual.dst = expected.dst;
    }
}

// One head and several, tiles that are full and that are not, masks, more keys than queries, packed parts.
TEST_P(OnAnEngine, Attends) {
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
        for (const bool causal : {false, true}) {
            expect_same_attention({1, 5, 5, 4, causal}, type, 3, *engine_);
            expect_same_attention({3, 33, 70, 12, causal}, type, 2, *engine_);
            expect_same_attention({2, 40, 40, 20, causal, true}, type, 2, *engine_);
        }
    }
    expect_same_attention({1, 16, 32, 128}, DataType::f32, 1, *engine_);
}

// Heads that fill a tile's numbers and that do not, of each size; several tiles of queries and keys, masks that begin
// within a tile, packed parts.
TEST_P(OnAnEngine, AttendsOnTensorCores) {
    for (const DataType type : {DataType::f16, DataType::bf16}) {
        for (const bool causal : {false, true}) {
            expect_same_attention({2, 65, 130, 64, causal}, type, 1, *engine_);
            expect_same_attention({2, 70, 70, 40, causal, true}, type, 2, *engine_);
        }
        expect_same_attention({1, 33, 66, 128}, type, 1, *engine_);
        expect_same_attention({1, 66, 66, 72, true, true}, type, 1, *engine_);
        expect_same_attention({1, 5, 70, 256}, type, 1, *engine_);
        expect_same_attention({2, 66, 66, 136, true, true}, type, 1, *engine_);
    }
}

// Tensors of one element, of a piece, of several pieces; weights that are all 0.
TEST_P(OnAnEngine, StepsAsFarAsLambSays) {
    const auto device = layers(*engine_);
    const auto backend = staged(*device, *engine_);
    const std::vector<std::int64_t> sizes{1, 700, 40000, 300};
    const Op op = LambUpdate{41001, 4};
    Tensors expected{op, 1, reference::backend()}, actual{op, 1, *backend};
    for (Tensors* t : {&expected, &actual}) {
        std::fill(t->weights.end() - 300, t->weights.end(), 0.0F);
        for (std::int64_t step = 1; step <= 3; ++step) {
            t->diff_weights = whole_numbers(41001, static_cast<std::uint64_t>(step));
            Buffers b = t->buffers();
            b.tensor_sizes = sizes;
            b.learning_rate = 0.01F, b.momentum_factor = 0.9F, b.weight_decay = 0.3F, b.update_count = step;
            const Backend& by = t == &actual ? *backend : reference::backend();
            by.prepare({op, Pass::update, 1, DataType::f32})->run(b);
        }
    }
    expect_near(actual.weights, expected.weights, DataType::f32, false);
    expect_near(actual.momentum, expected.momentum, DataType::f32, false);
    expect_near(actual.second_moment, expected.second_moment, DataType::f32, false);
}

// A piece of each sample whose elements lie apart in the whole one.
TEST_P(OnAnEngine, DropsWhereThePiecesOfAnImageLie) {
    const auto device = layers(*engine_);
    const auto backend = staged(*device, *engine_);
    const Op op = Dropout{{40}, 0.5};
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < 40; ++i) places.push_back(7 * i % 100);
    Tensors expected{op, 3, reference::backend()}, actual{op, 3, *backend};
    for (Tensors* t : {&expected, &actual}) {
        Buffers b = t->buffers();
        b.places = places, b.sample_elements = 100, b.first_sample = 5;
        const Backend& by = t == &actual ? *backend : reference::backend();
        by.prepare({op, Pass::forward, 3, DataType::f32})->run(b);
    }
    EXPECT_EQ(actual.dst, expected.dst);
}

// Bits as nvml.h lists them ("nvmlClocksEventReasons"): idle 0x1, settings 0x2, power cap 0x4, thermal slowdown 0x20.
TEST(Nvml, SaysWhatHoldsClocksDown) {
    EXPECT_EQ(held_down_by(0), "");
    EXPECT_EQ(held_down_by(0x1), "");
    EXPECT_EQ(held_down_by(0x24), "the power limit, heat");
    EXPECT_EQ(held_down_by(0x1002), "clocks that were set, reason 0x1000");
}

TEST_P(OnAnEngine, SaysWhatItDoesNotRun) {
    const auto backend = layers(*engine_);
    BatchNorm of_blocks{4, 3, 3};
    of_blocks.parts = 2;
    EXPECT_EQ(backend->supports({of_blocks, Pass::forward, 1, DataType::f32}).reason,
              "normalizes on the GPU without sums of other ranks");
    EXPECT_EQ(backend->supports({MatMul{1, 2, 3}, Pass::forward, 1, DataType::f32}).reason, "has no matmul on the GPU");
    EXPECT_EQ(backend->supports({Attention{1, 2, 2, 129}, Pass::forward, 1, DataType::f32}).reason,
              "attends on the GPU with heads of up to 128 numbers, not 129: tensor cores attend in 16 bits");
    // A launch takes no more blocks in a grid's second and third direction.
    EXPECT_TRUE(backend->supports({Attention{1, 2, 2, 8}, Pass::forward, 65535, DataType::f32}).yes);
    EXPECT_EQ(backend->supports({Attention{1, 2, 2, 8}, Pass::forward, 65536, DataType::f32}).reason,
              "attends on the GPU to at most 65535 heads of at most 65535 samples at once");
    for (const auto& convolution : convolutions(*engine_)) {
        if (convolution->algorithm() != "packed") continue;
        const Problem problem{Conv{8, 2, 2, 8, {}}, Pass::forward, 65536, DataType::f16};
        EXPECT_THAT(convolution->supports(problem).reason, testing::HasSubstr("lays at most 65535 images"));
    }
}

INSTANTIATE_TEST_SUITE_P(Places, OnAnEngine, testing::ValuesIn(places), testing::PrintToStringParamName());

}  // namespace
}  // namespace rehearse::kernels::cuda
