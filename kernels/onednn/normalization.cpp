// SPDX-License-Identifier: Apache-2.0
// Batch norm and local response normalization. oneDNN's generated kernels for both want channels in blocks; on plain
// NCHW it falls back to loops that are 5 to 20 times slower (32 x 16 x 32 x 32, one core: batch norm backward 2.1 ms
// against 0.1 ms, LRN backward 23 ms against 0.14 ms), far more than the reorders cost (0.1 ms each).
#include <array>
#include <string_view>

#include "kernels/batchnorm.hpp"
#include "kernels/heads.hpp"
#include "kernels/onednn/describe.hpp"
#include "kernels/onednn/locate.hpp"
#include "kernels/onednn/plans.hpp"

namespace rehearse::kernels::onednn {
namespace {

using dnnl::memory;

// Forward and backward must be of one layout: LRN's workspace depends on it.
template <typename Forward, typename Backward>
struct Pair {
    memory::desc inside;
    Forward forward;
    Backward backward;
    bool generated() const { return is_generated(forward) && is_generated(backward); }

private:
    template <typename PrimitiveDesc>
    static bool is_generated(const PrimitiveDesc& desc) {
        return std::string_view{desc.impl_info_str()}.find("jit") != std::string_view::npos;
    }
};

// The first layout for which both passes have a generated kernel; NCHW when none has.
template <typename Make>
auto fastest_layout(const memory::desc& given, Make make) {
    const bool volume = dims_of(given).size() == 5;
    for (const auto tag : {volume ? memory::format_tag::nCdhw16c : memory::format_tag::nChw16c,
                           volume ? memory::format_tag::nCdhw8c : memory::format_tag::nChw8c}) {
        auto pair = make(memory::desc(dims_of(given), memory::data_type::f32, tag));
        if (pair.generated()) return pair;
    }
    return make(given);
}

memory::desc image(const Op& op, std::int64_t batch) { return dense(behind(batch, input_shapes(op)[0])); }

using BatchNormPair =
    Pair<dnnl::batch_normalization_forward::primitive_desc, dnnl::batch_normalization_backward::primitive_desc>;

BatchNormPair make_batchnorm(const memory::desc& inside, double of_op) {
    using enum dnnl::normalization_flags;
    const auto epsilon = static_cast<float>(of_op);
    const auto forward = described_alike<dnnl::batch_normalization_forward>(
        std::tuple{dnnl::prop_kind::forward_training}, inside, epsilon, use_scale | use_shift);
    return {inside, forward,
            described_alike_back<dnnl::batch_normalization_backward>(forward, std::tuple{dnnl::prop_kind::backward},
                                                                     inside, epsilon, use_scale | use_shift)};
}

// Forward with ReLU; its bits for a backward pass of its own are thrown away, because the sign of dst says the same.
dnnl::batch_normalization_forward::primitive_desc batchnorm_with_relu(const memory::desc& inside, double epsilon) {
    using enum dnnl::normalization_flags;
    return described_alike<dnnl::batch_normalization_forward>(std::tuple{dnnl::prop_kind::forward_training}, inside,
                                                              static_cast<float>(epsilon),
                                                              use_scale | use_shift | fuse_norm_relu);
}

using LrnPair = Pair<dnnl::lrn_forward::primitive_desc, dnnl::lrn_backward::primitive_desc>;

LrnPair make_lrn(const Lrn& op, const memory::desc& inside) {
    const auto kind = dnnl::algorithm::lrn_across_channels;
    const auto alpha = static_cast<float>(op.alpha);
    const auto beta = static_cast<float>(op.beta);
    const auto bias = static_cast<float>(op.bias);
    const auto forward = described_alike<dnnl::lrn_forward>(std::tuple{dnnl::prop_kind::forward_training, kind}, inside,
                                                            op.size, alpha, beta, bias);
    return {inside, forward,
            described_alike_back<dnnl::lrn_backward>(forward, std::tuple{kind}, inside, op.size, alpha, beta, bias)};
}

LrnPair lrn_pair(const Lrn& op, std::int64_t batch) {
    return fastest_layout(image(op, batch), [&](const memory::desc& inside) { return make_lrn(op, inside); });
}

// Two vectors of {channels}, one after the other: gamma and beta, mean and variance.
struct TwoVectors {
    memory first, second;
};

template <typename Base>
TwoVectors bind_two(Program& program, std::int64_t channels, Base base) {
    const auto second = [base, channels](const Buffers& b) { return base(b) + channels; };
    return {program.bind(dense({channels}), base), program.bind(dense({channels}), second)};
}

}  // namespace

void plan(Program& program, const BatchNorm& op, Pass pass, std::int64_t batch) {
    const memory::desc given = image(op, batch);
    const BatchNormPair pair =
        fastest_layout(given, [&](const memory::desc& inside) { return make_batchnorm(inside, op.epsilon); });
    const auto [mean, variance] = bind_two(program, op.channels, workspace);
    const auto [gamma, beta] = bind_two(program, op.channels, weights);
    std::vector<Argument> arguments{{DNNL_ARG_MEAN, mean},
                                    {DNNL_ARG_VARIANCE, variance},
                                    {DNNL_ARG_SCALE, gamma},
                                    {DNNL_ARG_SHIFT, beta},
                                    {DNNL_ARG_SRC, program.input(given, pair.inside, src)}};
    if (pass == Pass::forward) {
        arguments.push_back({DNNL_ARG_DST, program.output(given, pair.inside, dst)});
        const auto forward = op.relu ? batchnorm_with_relu(pair.inside, op.epsilon) : pair.forward;
        if (op.relu) arguments.push_back({DNNL_ARG_WORKSPACE, program.scratch(forward.workspace_desc())});
        program.add(forward, dnnl::batch_normalization_forward(forward), arguments);
        return;
    }
    const auto [diff_gamma, diff_beta] = bind_two(program, op.channels, diff_weights);
    arguments.push_back({DNNL_ARG_DIFF_SCALE, diff_gamma});
    arguments.push_back({DNNL_ARG_DIFF_SHIFT, diff_beta});
    const std::optional<Nonlinearity> relu = op.relu ? std::optional{Nonlinearity::relu} : std::nullopt;
    const memory diff = diff_of_result(program, relu, given);
    arguments.push_back({DNNL_ARG_DIFF_DST, program.reordered(diff, pair.inside)});
    // gamma and beta get their gradient even when nobody needs that of the input.
    arguments.push_back({DNNL_ARG_DIFF_SRC, program.output(given, pair.inside, diff_src, true)});
    program.add(pair.backward, dnnl::batch_normalization_backward(pair.backward), arguments);
}

// Rows are dense already: no layout to choose.
void plan(Program& program, const LayerNorm& op, Pass pass, std::int64_t batch) {
    using enum dnnl::normalization_flags;
    const std::int64_t rows = batch * op.rows;
    const memory::desc data = dense({rows, op.features});
    const memory::desc statistics = dense({rows});
    const auto epsilon = static_cast<float>(layer_norm_epsilon);
    const auto forward = described_alike<dnnl::layer_normalization_forward>(
        std::tuple{dnnl::prop_kind::forward_training}, data, statistics, epsilon, use_scale | use_shift);
    const auto variance_at = [rows](const Buffers& b) { return workspace(b) + rows; };
    const auto [gamma, beta] = bind_two(program, op.features, weights);
    std::vector<Argument> arguments{{DNNL_ARG_SRC, program.bind(data, src)},
                                    {DNNL_ARG_MEAN, program.bind(statistics, workspace)},
                                    {DNNL_ARG_VARIANCE, program.bind(statistics, variance_at)},
                                    {DNNL_ARG_SCALE, gamma},
                                    {DNNL_ARG_SHIFT, beta}};
    if (pass == Pass::forward) {
        arguments.push_back({DNNL_ARG_DST, program.bind(data, dst)});
        program.add(forward, dnnl::layer_normalization_forward(forward), arguments);
        return;
    }
    const auto desc = described_alike_back<dnnl::layer_normalization_backward>(
        forward, std::tuple{dnnl::prop_kind::backward}, data, statistics, epsilon, use_scale | use_shift);
    const auto [diff_gamma, diff_beta] = bind_two(program, op.features, diff_weights);
    arguments.push_back({DNNL_ARG_DIFF_SCALE, diff_gamma});
    arguments.push_back({DNNL_ARG_DIFF_SHIFT, diff_beta});
    arguments.push_back({DNNL_ARG_DIFF_DST, program.bind(data, diff_dst)});
    arguments.push_back({DNNL_ARG_DIFF_SRC, program.bind(data, diff_src, true)});
    program.add(desc, dnnl::layer_normalization_backward(desc), arguments);
}

std::size_t workspace_bytes(const Lrn& op, std::int64_t batch) {
    return lrn_pair(op, batch).forward.workspace_desc().get_size();
}

void plan(Program& program, const Lrn& op, Pass pass, std::int64_t batch) {
    const memory::desc given = image(op, batch);
    const LrnPair pair = lrn_pair(op, batch);
    const memory::desc kept = pair.forward.workspace_desc();
    std::vector<Argument> arguments{{DNNL_ARG_SRC, program.input(given, pair.inside, src)}};
    if (kept.get_size() > 0) arguments.push_back({DNNL_ARG_WORKSPACE, program.bind(kept, workspace)});
    if (pass == Pass::forward) {
        arguments.push_back({DNNL_ARG_DST, program.output(given, pair.inside, dst)});
        program.add(pair.forward, dnnl::lrn_forward(pair.forward), arguments);
        return;
    }
    arguments.push_back({DNNL_ARG_DIFF_DST, program.input(given, pair.inside, diff_dst)});
    arguments.push_back({DNNL_ARG_DIFF_SRC, program.output(given, pair.inside, diff_src)});
    program.add(pair.backward, dnnl::lrn_backward(pair.backward), arguments);
}

}  // namespace rehearse::kernels::onednn
