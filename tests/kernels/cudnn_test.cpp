// SPDX-License-Identifier: Apache-2.0
// What cuDNN and cuBLAS are told, carried out here as their documentation defines it, against the reference; and
// cuDNN's own opinion of it, for which no GPU is needed.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/channels_last.hpp"
#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/engine.hpp"
#include "kernels/cudnn/describe.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"
#if REHEARSE_HAS_CUDNN
#include "kernels/cudnn/backends.hpp"
#endif

namespace rehearse::kernels::cudnn {
namespace {

std::vector<Op> awkward_shapes() {
    const Window lopsided{3, 3, 2, 1, 0, 1, 1, 2, 1, 1}, far{3, 3, 1, 1, 2, 2, 2, 2, 2, 2},
        third{3, 2, 3, 3, 1, 1, 0, 0, 1, 1};
    Window deep = lopsided;
    deep.kernel_d = 3, deep.stride_d = 2, deep.pad_front = 1, deep.dilation_d = 2;
    return {Conv{1, 1, 1, 1, {}, 1, false},       Conv{5, 7, 9, 19, lopsided, 1, true},
            Conv{16, 11, 9, 16, far, 1, false},   Conv{3, 13, 13, 4, third, 1, true},
            Conv{8, 7, 7, 12, lopsided, 2, true}, Conv{7, 7, 9, 7, far, 7, false},
            conv3d(4, 7, 7, 6, 4, deep, 2, true)};
}

// visit(place) for each index of `sizes`, row by row.
template <typename F>
void each_place(const std::vector<std::int64_t>& sizes, F visit) {
    std::vector<std::int64_t> at(sizes.size());
    for (;;) {
        visit(at);
        std::size_t d = sizes.size();
        while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
        if (d == 0) return;
    }
}

std::int64_t offset(const Described& of, const std::vector<std::int64_t>& at) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < at.size(); ++i) offset += at[i] * of.strides[i];
    return offset;
}

// cuDNN's cross-correlation, from the descriptors alone.
std::vector<float> correlate(const Correlation& c, const std::vector<float>& x, const std::vector<float>& w) {
    std::vector<float> y(static_cast<std::size_t>(c.y.sizes[0] * c.y.strides[0]));
    const std::int64_t channels = c.w.sizes[1], groups = c.x.sizes[1] / channels, filters = c.w.sizes[0] / groups;
    each_place(c.y.sizes, [&](const std::vector<std::int64_t>& out) {
        double sum = 0;
        each_place({c.w.sizes.begin() + 1, c.w.sizes.end()}, [&](const std::vector<std::int64_t>& tap) {
            std::vector<std::int64_t> in{out[0], out[1] / filters * channels + tap[0]}, weight{out[1]};
            weight.insert(weight.end(), tap.begin(), tap.end());
            for (std::size_t d = 0; d < c.stride.size(); ++d) {
                in.push_back(out[d + 2] * c.stride[d] + tap[d + 1] * c.dilation[d] - c.before[d]);
                if (in.back() < 0 || in.back() >= c.x.sizes[d + 2]) return;
            }
            sum += static_cast<double>(x[static_cast<std::size_t>(offset(c.x, in))]) *
                   w[static_cast<std::size_t>(offset(c.w, weight))];
        });
        y[static_cast<std::size_t>(offset(c.y, out))] = static_cast<float>(sum);
    });
    return y;
}

TEST(Correlation, IsTheReferencesConvolution) {
    for (Op op : awkward_shapes()) {
        SCOPED_TRACE(to_string(op));
        std::visit(
            [](auto& o) {
                if constexpr (requires { o.bias; }) o.bias = false;
            },
            op);
        Tensors t{op, 2, reference::backend()};
        t.run(reference::backend(), Pass::forward);
        EXPECT_EQ(correlate(correlation(op, 2, false), t.src[0], t.weights), t.dst);
    }
}

// The numbers of a tensor {outer, channels, pixels} with a channel's pixels apart, a pixel's channels together.
std::vector<float> channels_together(const std::vector<float>& of, std::int64_t outer, std::int64_t channels) {
    const std::int64_t pixels = static_cast<std::int64_t>(of.size()) / (outer * channels);
    std::vector<float> made;
    for (std::int64_t o = 0; o < outer; ++o) {
        for (std::int64_t p = 0; p < pixels; ++p) {
            for (std::int64_t c = 0; c < channels; ++c) {
                made.push_back(of[static_cast<std::size_t>((o * channels + c) * pixels + p)]);
            }
        }
    }
    return made;
}

TEST(Correlation, IsTheSameOfTensorsThatAreChannelsLast) {
    for (Op op : awkward_shapes()) {
        SCOPED_TRACE(to_string(op));
        auto& conv = std::get<Conv>(op);
        conv.bias = false;
        Tensors t{op, 2, reference::backend()};
        t.run(reference::backend(), Pass::forward);
        Correlation c = correlation(op, 2, true);
        const auto x = channels_together(t.src[0], 2, conv.channels);
        const auto w = channels_together(t.weights, conv.filters, conv.channels / conv.groups);
        EXPECT_EQ(correlate(c, x, w), channels_together(t.dst, 2, conv.filters));
    }
}

TEST(Correlation, HasTheOutputSizeThatCudnnComputes) {
    for (const Op& op : awkward_shapes()) {
        const Correlation c = correlation(op, 2, false);
        for (std::size_t d = 0; d < c.stride.size(); ++d) {
            const std::int64_t extent = (c.w.sizes[d + 2] - 1) * c.dilation[d] + 1;
            EXPECT_EQ(c.y.sizes[d + 2], 1 + (c.x.sizes[d + 2] + c.before[d] + c.after[d] - extent) / c.stride[d]);
        }
    }
}

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, from the description alone.
std::vector<float> normalize(const Normalized& n, const std::vector<float>& x, const std::vector<float>& weights) {
    const auto count = static_cast<std::size_t>(n.parameter_count());
    std::vector<double> sums(static_cast<std::size_t>(n.statistic_count())), squares(sums);
    std::vector<float> y(x.size());
    const auto at = [](const Described& of, std::vector<std::int64_t> place) {
        for (std::size_t d = 0; d < place.size(); ++d) place[d] = of.sizes[d] == 1 ? 0 : place[d];
        return static_cast<std::size_t>(offset(of, place));
    };
    const double share = static_cast<double>(sums.size()) / static_cast<double>(x.size());
    each_place(n.x.sizes, [&](const std::vector<std::int64_t>& place) {
        const double value = x[at(n.x, place)];
        sums.at(at(n.statistics, place)) += share * value;
        squares.at(at(n.statistics, place)) += share * value * value;
    });
    each_place(n.x.sizes, [&](const std::vector<std::int64_t>& place) {
        const std::size_t of = at(n.statistics, place), parameter = at(n.parameters, place);
        const double deviation = std::sqrt(squares[of] - sums[of] * sums[of] + n.epsilon);
        y.at(at(n.x, place)) = static_cast<float>((x[at(n.x, place)] - sums[of]) / deviation * weights[parameter] +
                                                  weights[count + parameter]);
    });
    return y;
}

// Both in double, rounded once to f32.
TEST(Normalized, IsTheReferencesNormalization) {
    for (const Op& op : {Op{BatchNorm{4, 3, 5}}, Op{BatchNorm{8, 3, 3, 2}}, Op{LayerNorm{5, 12}}}) {
        for (const bool last : {false, true}) {
            const auto* batch_norm = std::get_if<BatchNorm>(&op);
            if (last && batch_norm == nullptr) continue;
            SCOPED_TRACE(to_string(op));
            Tensors t{op, 3, reference::backend()};
            t.run(reference::backend(), Pass::forward);
            const auto laid = [&](const std::vector<float>& tensor) {
                return last ? channels_together(tensor, 3, batch_norm->channels) : tensor;
            };
            const std::vector<float> made = normalize(normalized(op, 3, last), laid(t.src[0]), t.weights);
            const std::vector<float> right = laid(t.dst);
            for (std::size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(made[i], right[i], 0x1p-20) << "at " << i;
        }
    }
}

// op(A) and op(B), column after column, as BLAS defines them.
struct Factors {
    const Product& p;
    const std::vector<float>&a, &b;
    double left(std::int64_t i, std::int64_t l) const {
        return a[static_cast<std::size_t>(p.transpose_a ? l + i * p.row_a : i + l * p.row_a)];
    }
    double right(std::int64_t l, std::int64_t j) const {
        return b[static_cast<std::size_t>(p.transpose_b ? j + l * p.row_b : l + j * p.row_b)];
    }
};

// C, with the bias of the layer's weights added where it says so; behind it the bias's gradient, likewise.
std::vector<float> multiply(const Factors& f, const std::vector<float>& weights) {
    const Product& p = f.p;
    std::vector<float> c(static_cast<std::size_t>(p.row_c * p.n));
    for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
            double sum = p.bias == BiasPart::added ? weights[weights.size() - static_cast<std::size_t>(p.m - i)] : 0;
            for (std::int64_t l = 0; l < p.k; ++l) sum += f.left(i, l) * f.right(l, j);
            c[static_cast<std::size_t>(i + j * p.row_c)] = static_cast<float>(sum);
        }
    }
    for (std::int64_t i = 0; i < (p.bias == BiasPart::summed ? p.m : 0); ++i) {
        double sum = 0;
        for (std::int64_t l = 0; l < p.k; ++l) sum += f.left(i, l);
        c.push_back(static_cast<float>(sum));
    }
    return c;
}

TEST(Product, IsTheReferencesDenseLayerInEveryPass) {
    for (const bool tied : {false, true}) {
        for (const MatMul& op : {MatMul{1, 1, 1, false}, MatMul{3, 5, 7, true}, MatMul{2, 8, 3, true}}) {
            MatMul own = op;
            own.tied = tied;
            own.bias = op.bias && !tied;
            Tensors t{own, 4, reference::backend()};
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                SCOPED_TRACE(to_string(Problem{own, pass, 4}));
                t.run(reference::backend(), pass);
                const Product p = product(own, pass, 4);
                const auto factor = [&](Factor which) {
                    return which == Factor::src ? t.src[0] : which == Factor::weights ? t.weights : t.diff_dst;
                };
                const std::vector<float> a = factor(p.a), b = factor(p.b), made = multiply({p, a, b}, t.weights);
                EXPECT_EQ(made, pass == Pass::forward         ? t.dst
                                : pass == Pass::backward_data ? t.diff_src[0]
                                                              : t.diff_weights);
            }
        }
    }
}

#if REHEARSE_HAS_CUDNN
TEST(Cudnn, TakesTheDescriptionOfEveryPassAndType) {
    for (const Op& op : awkward_shapes()) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
                for (const bool last : {false, true}) {
                    EXPECT_EQ(refused_description({op, pass, 2, type}, last), "")
                        << to_string(Problem{op, pass, 2, type}) << (last ? ", channels last" : "");
                }
            }
        }
    }
}

TEST(Cudnn, SaysThatThereIsNoGpu) {
    if (cuda::gpu().refusal().empty()) GTEST_SKIP() << "there is one";
    const Problem problem{Conv{8, 8, 8, 8, {}, 1, false}, Pass::forward, 1, DataType::f32};
    for (const auto& backend : cudnn::plans(cuda::gpu(), false)) {
        EXPECT_NE(backend->supports(problem).reason.find("no GPU"), std::string::npos)
            << backend->supports(problem).reason;
        EXPECT_EQ(backend->supports({MatMul{1, 2, 3}, Pass::forward, 1, DataType::f32}).reason,
                  "runs convolutions, attention and normalizations, not matmul");
    }
    for (const auto& backend : cudnn::products(cuda::gpu())) {
        EXPECT_NE(backend->supports({MatMul{1, 2, 3}, Pass::forward, 1, DataType::f32}).reason.find("no GPU"),
                  std::string::npos);
        EXPECT_EQ(backend->supports(problem).reason, "runs products, not conv2d");
    }
}

// Against the reference, by every algorithm that takes the problem, where there is a GPU.
TEST(Cudnn, ConvolvesAndMultipliesExactlyOnAGpu) {
    if (!cuda::gpu().refusal().empty()) GTEST_SKIP() << cuda::gpu().refusal();
    auto all = cudnn::plans(cuda::gpu(), false);
    for (auto& backend : cudnn::plans(cuda::gpu(), true)) all.push_back(std::move(backend));
    for (auto& backend : cudnn::products(cuda::gpu())) all.push_back(std::move(backend));
    for (auto& backend : cudnn::products_lt(cuda::gpu())) all.push_back(std::move(backend));
    std::vector<Op> ops = awkward_shapes();
    ops.emplace_back(MatMul{3, 40, 17, true});
    int compared = 0;
    for (const auto& device : all) {
        const auto there = cuda::staged(*device, cuda::gpu());
        const auto relaid = channels_first(*there);
        const Backend* const backend = device->algorithm().starts_with("nhwc-") ? relaid.get() : there.get();
        for (const Op& op : ops) {
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                const Problem problem{op, pass, 2, DataType::f32};
                if (!backend->supports(problem).yes) continue;
                SCOPED_TRACE(full_name(*backend) + " " + to_string(problem));
                Tensors expected{op, 2, reference::backend()}, actual{op, 2, reference::backend()};
                expected.run(reference::backend(), pass);
                actual.run(*backend, pass);
                const auto& right = pass == Pass::forward         ? expected.dst
                                    : pass == Pass::backward_data ? expected.diff_src[0]
                                                                  : expected.diff_weights;
                const auto& got = pass == Pass::forward         ? actual.dst
                                  : pass == Pass::backward_data ? actual.diff_src[0]
                                                                : actual.diff_weights;
                // Winograd's and the Fourier transform's roundings of sums below 2^11; all others are exact.
                for (std::size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(got[i], right[i], 0x1p-5) << "at " << i;
                ++compared;
            }
        }
    }
    EXPECT_GT(compared, 20);
}
#endif

}  // namespace
}  // namespace rehearse::kernels::cudnn
