// SPDX-License-Identifier: Apache-2.0
// Attention, layer norm, tables, loss and optimizers of every backend against the reference, our own on each SIMD
// target and with three threads.
#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu_convolutions.hpp"

namespace rehearse::kernels {
namespace {

class Transformer : public OnEachTarget {};

INSTANTIATE_TEST_SUITE_P(EachTarget, Transformer,
                         testing::Combine(testing::ValuesIn(simd_targets()), testing::Values(1, 3)), target_name);

struct Tolerance {
    double dst = 0, diff_q = 0, diff_k = 0, diff_v = 0;
};

// Inputs are quarters of at most 1, gradients whole numbers of at most 4, so scores and dP are exact. u = 2^-24.
// p: 2^t, |t| <= T = sqrt(size) log2 e, t and the log-sum off by 2 u T each, the power by 4 u.
// dst: sums of p v over sums of p, `keys` additions. D = sum of dO O, |D| and |dP| <= 4 size.
// diff_q: scale times the sum over keys of p (dP - D) k, where the p sum to 1; diff_k: over queries, p at most 1.
Tolerance tolerance_of(const Attention& op) {
    constexpr double u = 0x1p-24;
    const auto size = static_cast<double>(op.head_size);
    const auto queries = static_cast<double>(op.queries);
    const auto keys = static_cast<double>(op.keys);
    const double p = (4 * std::sqrt(size) * 1.45 + 4) * u;
    const double dst = 2 * p + (keys + 8) * u;
    const double common = 4 * size * dst + (size + 2) * u * 4 * size;
    const double diff_s = 8 * size * (p + 4 * u) + common;
    const double scale = 1 / std::sqrt(size);
    return {dst, scale * (diff_s + keys * u * 8 * size), queries * scale * (diff_s + queries * u * 8 * size),
            queries * 4 * (p + queries * u)};
}

void expect_close(const Attention& op, std::int64_t batch, const Backend& backend) {
    SCOPED_TRACE(full_name(backend) + ", " + to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    Tensors expected{op, batch, reference::backend()};
    Tensors actual{op, batch, backend};
    for (Tensors* t : {&expected, &actual}) {
        for (auto& tensor : t->src) {
            for (float& value : tensor) value /= 4;
        }
    }
    expected.run_forward_and_backward(reference::backend());
    actual.run_forward_and_backward(backend);
    const Tolerance tolerance = tolerance_of(op);
    EXPECT_LE(largest_difference(actual.dst, expected.dst), tolerance.dst);
    if (op.packed) {
        const double worst = std::max({tolerance.diff_q, tolerance.diff_k, tolerance.diff_v});
        EXPECT_LE(largest_difference(actual.diff_src[0], expected.diff_src[0]), worst);
        return;
    }
    EXPECT_LE(largest_difference(actual.diff_src[0], expected.diff_src[0]), tolerance.diff_q);
    EXPECT_LE(largest_difference(actual.diff_src[1], expected.diff_src[1]), tolerance.diff_k);
    EXPECT_LE(largest_difference(actual.diff_src[2], expected.diff_src[2]), tolerance.diff_v);
}

// heads, queries, keys, head size, causal, packed: one of everything, primes, more than one block of keys and one panel
// of queries, head sizes around a vector.
const std::vector<Attention> attentions{
    {1, 1, 1, 1},
    {1, 1, 37, 64},
    {3, 37, 1, 5},
    {2, 31, 53, 65},
    {1, 67, 67, 64},
    {2, 17, 300, 16},
    {1, 40, 131, 128},
    {2, 33, 33, 7, false, true},
    {1, 61, 61, 33, true},
    {2, 37, 149, 16, true},
    {3, 35, 35, 4, true, true},
    {1, 1, 29, 3, true},
    {1, 96, 290, 8, true},
};

TEST_P(Transformer, AttendsAsTheReference) {
    for (const Attention& op : attentions) {
        for (const std::int64_t batch : {1, 2}) expect_close(op, batch, cpu_algorithm("flash"));
    }
}

TEST(TransformerLibraries, AttendAsTheReference) {
    for (const Backend* backend : backends()) {
        if (backend->name() != "onednn" || !backend->algorithm().empty()) continue;
        for (const Attention& op : attentions) expect_close(op, 2, *backend);
    }
}

TEST_P(Transformer, AttentionLeavesOutGradientsThatNobodyWants) {
    const Attention op{2, 21, 33, 9};
    const Backend& backend = cpu_algorithm("flash");
    Tensors all{op, 1, backend};
    all.run_forward_and_backward(backend);
    for (std::size_t left_out = 0; left_out < 3; ++left_out) {
        Tensors some{op, 1, backend};
        some.run(backend, Pass::forward);
        Buffers b = some.buffers();
        b.diff_src[left_out] = {};
        backend.prepare({op, Pass::backward_data, 1, DataType::f32})->run(b);
        some.diff_src[left_out] = all.diff_src[left_out];
        EXPECT_EQ(some.diff_src, all.diff_src);
    }
}

TEST_P(Transformer, TwiceGivesTheSameBits) {
    const Attention op{2, 70, 70, 24, true};
    Tensors once{op, 2, cpu_algorithm("flash")};
    Tensors again = once;
    once.run_forward_and_backward(cpu_algorithm("flash"));
    again.run_forward_and_backward(cpu_algorithm("flash"));
    EXPECT_EQ(once.dst, again.dst);
    EXPECT_EQ(once.diff_src, again.diff_src);
}

// As BatchNorm in equality_test.cpp: N = features values of at most 4 a row, rounding (N + 8) u of what is added up;
// diff_gamma sums that over all rows.
void expect_same_norm(const LayerNorm& op, std::int64_t batch, const Backend& backend) {
    SCOPED_TRACE(full_name(backend) + ", " + to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    Tensors expected{op, batch, reference::backend()};
    Tensors actual{op, batch, backend};
    for (Tensors* t : {&expected, &actual}) {
        // Never a row without spread: its deviation would be sqrt(1e-5), and every rounding 300 times as large.
        for (std::size_t i = 0; i < t->src[0].size(); ++i) t->src[0][i] += i % op.features == 0 ? 9.0F : 0.0F;
    }
    expected.run_forward_and_backward(reference::backend());
    actual.run_forward_and_backward(backend);
    const auto features = static_cast<double>(op.features);
    const double rounding = (features + 16) * 0x1p-24;
    const double normal = 4 * std::sqrt(features);  // the largest (x - mean) / deviation there can be, and some
    EXPECT_LE(largest_difference(actual.dst, expected.dst), 4 * normal * rounding);
    EXPECT_LE(largest_difference(actual.diff_src[0], expected.diff_src[0]), 16 * normal * normal * rounding);
    const double rows = static_cast<double>(batch * op.rows);
    EXPECT_LE(largest_difference(actual.diff_weights, expected.diff_weights),
              rows * 4 * normal * (rounding + rows * 0x1p-24));
}

const std::vector<LayerNorm> norms{{1, 2}, {3, 7}, {5, 16}, {4, 67}, {2, 257}};

TEST_P(Transformer, NormalizesLayersAsTheReference) {
    for (const LayerNorm& op : norms) {
        for (const std::int64_t batch : {1, 3}) expect_same_norm(op, batch, cpu_algorithm("rows"));
    }
}

TEST(TransformerLibraries, NormalizeLayersAsTheReference) {
    for (const Backend* backend : backends()) {
        if (backend->name() != "onednn" || !backend->algorithm().empty()) continue;
        for (const LayerNorm& op : norms) expect_same_norm(op, 2, *backend);
    }
}

TEST_P(Transformer, LooksUpAndAddsRowsExactly) {
    for (const Op& op : {Op{Embedding{1, 1, 1}}, Op{Embedding{7, 11, 5, 9, 2}}, Op{Embedding{16, 100, 33, 0, 3}},
                         Op{EmbeddingBag{1, 1, 1, 1}}, Op{EmbeddingBag{3, 5, 7, 19}}, Op{EmbeddingBag{2, 1, 50, 64}},
                         Op{EmbeddingBag{2, 40, 50, 20}}}) {  // more lookups than rows are asked for ahead
        for (const std::int64_t batch : {1, 3}) {
            SCOPED_TRACE(to_string(op));
            Tensors expected{op, batch, reference::backend()};
            Tensors actual{op, batch, cpu_algorithm("rows")};
            expected.run_forward_and_backward(reference::backend());
            actual.run_forward_and_backward(cpu_algorithm("rows"));
            EXPECT_EQ(actual.dst, expected.dst);
            EXPECT_EQ(actual.diff_weights, expected.diff_weights);
        }
    }
}

// More lookups a bag than rows are asked for ahead; weights and gradients are whole, the rate a quarter.
TEST_P(Transformer, UpdatesPickedRowsExactly) {
    const EmbeddingBag op{.tables = 3, .lookups = 37, .vocabulary = 29, .width = 40, .direct = true};
    const auto updated = [&](const Backend& backend) {
        Tensors t{op, 2, backend};
        t.run(backend, Pass::forward);
        for (std::size_t i = 0; i < t.diff_dst.size(); ++i) t.diff_dst[i] = static_cast<float>(i % 7) - 3;
        Buffers buffers = t.buffers();
        buffers.learning_rate = 0.25F;
        backend.prepare({op, Pass::backward_weights, 2, DataType::f32})->run(buffers);
        return std::vector<float>(t.weights.begin(), t.weights.end());
    };
    EXPECT_EQ(updated(cpu_algorithm("rows")), updated(reference::backend()));
}

// Whole numbers: every sum is exact.
TEST_P(Transformer, MultipliesRowsByTheirExpertExactly) {
    for (const GroupedMatMul& op : {GroupedMatMul{1, 1, 1, 1}, GroupedMatMul{3, 5, 7, 11},
                                    GroupedMatMul{5, 17, 33, 9, 2, 2, false}, GroupedMatMul{2, 1, 65, 64, 4, 4}}) {
        for (const std::int64_t batch : {op.group, 3 * op.group}) {
            SCOPED_TRACE(to_string(Op{op}));
            Tensors expected{op, batch, reference::backend()};
            Tensors actual{op, batch, cpu_algorithm("gemm")};
            expected.run_forward_and_backward(reference::backend());
            actual.run_forward_and_backward(cpu_algorithm("gemm"));
            EXPECT_EQ(actual.dst, expected.dst);
            EXPECT_EQ(actual.diff_src, expected.diff_src);
            EXPECT_EQ(actual.diff_weights, expected.diff_weights);
        }
    }
}

TEST_P(Transformer, TakesTheSameLoss) {
    // Scores of at most 4: the logarithm of the sum is below 4 + ln 1000 = 11, off by 2 u of each power and of the sum.
    for (const SoftmaxLoss& op : {SoftmaxLoss{1}, SoftmaxLoss{37}, SoftmaxLoss{.classes = 1000, .rows = 3},
                                  SoftmaxLoss{.classes = 65, .rows = 7}}) {
        SCOPED_TRACE(to_string(op));
        Tensors expected{op, 3, reference::backend()};
        Tensors actual{op, 3, cpu_algorithm("rows")};
        expected.labels[1] = actual.labels[1] = -1;  // asks for nothing
        expected.run_forward_and_backward(reference::backend());
        actual.run_forward_and_backward(cpu_algorithm("rows"));
        const double rounding = (static_cast<double>(op.classes) / 8 + 16) * 0x1p-24;
        EXPECT_LE(largest_difference(actual.dst, expected.dst), 4 * rounding);
        EXPECT_LE(largest_difference(actual.diff_src[0], expected.diff_src[0]), 8 * rounding);
    }
}

// A label that is nearly certain, as after some steps of training: 1 - p is some 1e-7 then, of which a difference of
// two f32 numbers keeps no digit. Powers are off by u of their exponents, at most 24 log2 e, and by 4 u; sums by u of
// each addition.
TEST_P(Transformer, TakesTheGradientOfWhatIsNearlyCertain) {
    for (const SoftmaxLoss& op : {SoftmaxLoss{3}, SoftmaxLoss{70}, SoftmaxLoss{.classes = 1000, .rows = 2}}) {
        SCOPED_TRACE(to_string(op));
        Tensors expected{op, 3, reference::backend()};
        for (std::size_t row = 0; row < expected.labels.size(); ++row) {
            const auto label = static_cast<std::size_t>(row) * op.classes + expected.labels[row];
            expected.src[0][label] = 14.3F + static_cast<float>(row);
        }
        Tensors actual = expected;
        expected.run_forward_and_backward(reference::backend());
        actual.run_forward_and_backward(cpu_algorithm("rows"));
        const double relative = (2 * 24 * 1.45 + static_cast<double>(op.classes) / 8 + 16) * 0x1p-24;
        for (std::size_t i = 0; i < expected.dst.size(); ++i)
            EXPECT_NEAR(actual.dst[i], expected.dst[i], relative * expected.dst[i]);
        for (std::size_t i = 0; i < expected.diff_src[0].size(); ++i) {
            const double right = expected.diff_src[0][i];
            EXPECT_NEAR(actual.diff_src[0][i], right, relative * std::abs(right)) << "at " << i;
        }
    }
}

TEST_P(Transformer, UpdatesAsTheReference) {
    // Moments, root, quotient and step: a dozen roundings, some of them left out by a fused multiply-add, of numbers of
    // at most 4 + 1; LAMB's norms add `count` squares in f32, relative to their sum.
    for (const Op& op : {Op{AdamUpdate{1}}, Op{AdamUpdate{1000}}, Op{LambUpdate{9, 9}}, Op{LambUpdate{10007, 3}}}) {
        SCOPED_TRACE(to_string(op));
        Tensors expected{op, 1, reference::backend()};
        expected.diff_weights = whole_numbers(static_cast<std::int64_t>(expected.weights.size()), 300);
        for (float& value : expected.momentum) value = 0.5F;
        for (float& value : expected.second_moment) value = 2;
        Tensors actual = expected;
        const auto run = [&](Tensors& t, const Backend& backend) {
            Buffers b = t.buffers();
            b.learning_rate = 0.125F;
            b.momentum_factor = 0.9F;
            b.weight_decay = 0.01F;
            b.update_count = 3;
            backend.prepare({op, Pass::update, 1, DataType::f32})->run(b);
        };
        run(expected, reference::backend());
        run(actual, cpu_algorithm("rows"));
        const double summed = std::holds_alternative<LambUpdate>(op) ? 4096.0 / 4 : 0;
        EXPECT_LE(largest_difference(actual.momentum, expected.momentum), 12 * 4 * 0x1p-24);
        EXPECT_LE(largest_difference(actual.second_moment, expected.second_moment), 12 * 16 * 0x1p-24);
        EXPECT_LE(largest_difference(actual.weights, expected.weights), (12 + summed) * 5 * 0x1p-24);
    }
}

// Wherever the largest score and the label are: in whole vectors, in what is left behind them, the label first or last.
TEST_P(Transformer, FindsTheLargestScoreAnywhere) {
    const SoftmaxLoss op{83};
    for (std::int32_t at = 0; at < 83; ++at) {
        SCOPED_TRACE(at);
        Tensors t{op, 1, cpu_algorithm("rows")};
        std::ranges::fill(t.src[0], -50.0F);
        t.src[0][static_cast<std::size_t>(at)] = 150;  // 200 above the others: nothing is left of them in f32
        t.labels[0] = 82 - at;
        t.run_forward_and_backward(cpu_algorithm("rows"));
        EXPECT_EQ(t.dst[0], at == t.labels[0] ? 0.0F : 200.0F);
        EXPECT_EQ(t.diff_src[0][static_cast<std::size_t>(at)], at == t.labels[0] ? 0.0F : 1.0F);
        EXPECT_EQ(t.diff_src[0][static_cast<std::size_t>(t.labels[0])], at == t.labels[0] ? 0.0F : -1.0F);
    }
}

TEST(ChooseForTransformers, TakesTheKernelThatKeepsNoScores) {
    const Backend& chosen = choose(Attention{2, 8, 8, 4}, 1, DataType::f32);
    EXPECT_EQ(full_name(chosen), "cpu flash");
    EXPECT_EQ(chosen.workspace(Attention{2, 8, 8, 4}, 3), 3 * 2 * 8);
    EXPECT_EQ(full_name(choose(AdamUpdate{8}, 1, DataType::f32)), "cpu rows");
}

// Scores of 10^8 leave their log-sum no digit behind the point: a probability must not become e^8 for it.
TEST_P(Transformer, BoundsTheGradientOfLargeScores) {
    const Attention op{.heads = 1, .queries = 5, .keys = 7, .head_size = 4};
    Tensors expected{op, 1, reference::backend()};
    Tensors actual{op, 1, cpu_algorithm("flash")};
    for (Tensors* t : {&expected, &actual}) {
        for (const std::size_t part : {0, 1}) {
            for (float& value : t->src[part]) value *= 3333.3F;
        }
    }
    expected.run_forward_and_backward(reference::backend());
    actual.run_forward_and_backward(cpu_algorithm("flash"));
    // dV sums at most five gradients of at most 4, each times a probability.
    for (const float value : actual.diff_src[2]) EXPECT_LE(std::abs(value), 20.0F);
    EXPECT_LE(largest_difference(actual.dst, expected.dst), 1e-5);
}

TEST_P(Transformer, KeepsWhatIsNotANumber) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto poisoned = [&](const Op& op, const Backend& backend) {
        Tensors t{op, 1, backend};
        t.src[0].back() = nan;
        t.run_forward_and_backward(backend);
        return t;
    };
    const Tensors loss = poisoned(SoftmaxLoss{1000}, cpu_algorithm("rows"));
    EXPECT_TRUE(std::isnan(loss.dst[0]));
    EXPECT_TRUE(std::ranges::all_of(loss.diff_src[0], [](float each) { return std::isnan(each); }));
    const Attention attention{.heads = 1, .queries = 3, .keys = 40, .head_size = 8};
    const Tensors attended = poisoned(attention, cpu_algorithm("flash"));
    EXPECT_TRUE(std::ranges::all_of(std::span{attended.dst}.last(8), [](float each) { return std::isnan(each); }));
    EXPECT_TRUE(std::isnan(attended.diff_src[1][0]));
    BatchNorm norm;
    norm.channels = 2, norm.height = norm.width = 3;
    const Tensors normalized = poisoned(norm, cpu_algorithm("batchnorm"));
    EXPECT_TRUE(std::isnan(normalized.state[1])) << "the mean";
    EXPECT_TRUE(std::isnan(normalized.state[3])) << "the variance";
}

}  // namespace
}  // namespace rehearse::kernels
