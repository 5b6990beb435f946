// SPDX-License-Identifier: Apache-2.0
#include "calibrate/probes.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace rehearse::calibrate {

namespace {

// Two or three sizes of each sort, such as networks of images, volumes and words have them.
constexpr std::array operators{
    "conv2d:n2c32h56w56k64r3s3:pad1:stride1:f32:forward",
    "conv2d:n2c256h14w14k128r1s1:pad0:stride1:f32:forward",
    "conv2d:n2c64h56w56k64r3s3:pad1:stride1:groups64:f32:forward",
    "conv2d:n2c128h28w28k128r3s3:pad1:stride2:groups128:f32:forward",
    "conv2d:n2c512h14w14k512r3s3:pad1:stride1:groups512:f32:forward",
    "conv3d:n2c16d16h16w16k32t3r3s3:pad1:stride1:f32:forward",
    "conv3d:n2c64d8h8w8k64t3r3s3:pad1:stride1:f32:forward",
    "conv3d:n1c16d32h32w32k16t3r3s3:pad1:stride1:f32:forward",
    "matmul:n2m64n512k256:bias:f32:forward",
    "matmul:n2m1n1000k1024:bias:f32:forward",
    "matmul:n2m128n256k1024:bias:f32:forward",
    "matmul:n2m128n4000k256:bias:f32:forward",
    "matmul:n2m128n1024k2048:bias:f32:forward",
    "attention:n2h4q64k64d64:packed:f32:forward",
    "attention:n2h8q128k128d64:packed:f32:forward",
    "layernorm:n2r64c256:f32:forward",
    "layernorm:n2r128c1024:f32:forward",
    "batchnorm:n2c64h28w28:f32:forward",
    "batchnorm:n2c256h7w7:f32:forward",
    "activation:n2:64x28x28:relu:f32:forward",
    "activation:n2:64x1024:gelu:f32:forward",
    "activation:n2:128x3072:gelu:f32:forward",
    "add:n2:64x28x28:inputs2:f32:forward",
    "pool:n2c64h56w56r3s3:pad1:stride2:max:f32:forward",
    "pool:n2c256h14w14r3s3:pad1:stride1:average:f32:forward",
    "concat:n2h28w28:64+64:f32:forward",
    "dropout:n2:128x512:keep0.9:f32:forward",
    "embedding:n2t64v8000c256:f32:forward",
    "embedding:n2t128v30000c512:f32:forward",
    "softmaxloss:n2:1000:f32:forward",
    "softmaxloss:n2:8000:rows64:f32:forward",
    "recurrent:n8t16c128h128d1:lstm:bias:f32:forward",
    "recurrent:n16t24c128h256d1:lstm:bias:f32:forward",
    "recurrent:n8t16c128h128d1:gru:bias:resetafter:f32:forward",
    "recurrent:n16t24c128h256d1:gru:bias:resetafter:f32:forward",
    "reduction:n2:64x784:mean:axes1:f32:forward",
    "reduction:n4:128x512:mean:axes0:f32:forward",
    "reduction:n2:64x784:max:axes1:f32:forward",
    "reduction:n4:128x512:max:axes0:f32:forward",
    "elementwise:n2:64x784:elu:in64x784:f32:forward",
    "elementwise:n4:128x512:silu:in128x512:f32:forward",
    "elementwise:n2:64x784:mul:in64x784+64x1:f32:forward",
    "elementwise:n4:128x512:add:in128x512+128x512:f32:forward",
    "rearrangement:n4:512x128:transpose:from128x512:by1,0:f32:forward",
    "batchedmatmul:n4:4x64x64:by4x64x128:f32:forward",
    "normalization:n2:64x784:sets8:gamma64:beta64:inner784:f32:forward",
    "softmaxalong:n4:8x64x64:axis2:f32:forward",
    "sgd:n1:1000000:f32:update",
};

double flops_an_element(const Elementwise& op) {
    const auto known = elementwise_functions();
    const auto found = std::ranges::find(known, op.function, &ElementwiseFunction::name);
    return found == known.end() ? 1 : found->flops;
}

// What says of two problems that kernels of one sort compute them.
std::pair<std::string, Pass> sort_of(const Problem& problem) {
    std::string sort{kind_of(problem.op)};
    if (const auto* conv = std::get_if<Conv>(&problem.op); conv != nullptr && conv->groups > 1) sort += " grouped";
    // Of a few rows, as a classifier has, a product reads its weights and does little with them.
    constexpr std::int64_t skinny = 16;
    if (const auto* dense = std::get_if<MatMul>(&problem.op); dense != nullptr && problem.batch * dense->m < skinny)
        sort += " few rows";
    if (const auto* function = std::get_if<Activation>(&problem.op)) sort += to_string(function->kind);
    if (const auto* pool = std::get_if<Pool>(&problem.op)) sort += pool->kind == PoolKind::max ? " max" : " average";
    if (const auto* loss = std::get_if<SoftmaxLoss>(&problem.op); loss != nullptr && loss->rows > 1) sort += " rows";
    if (const auto* cells = std::get_if<Recurrent>(&problem.op)) sort += " " + cells->cell;
    if (const auto* reduction = std::get_if<Reduction>(&problem.op)) {
        const std::string& function = reduction->function;
        const bool sums = function == "sum" || function == "mean", most = function == "max" || function == "min";
        sort += sums ? " sums" : most ? " most" : " " + function;
    }
    constexpr double of_a_series = 8;  // an exponential and the like
    if (const auto* each = std::get_if<Elementwise>(&problem.op))
        sort += flops_an_element(*each) >= of_a_series ? " function" : " simple";
    return {sort, problem.pass};
}

// Products, convolutions and steps of cells large enough that starting them and packing a few values is little of what
// they take: small ones, such as LeNet's, say little of these.
bool is_large(const Problem& problem) {
    constexpr Flops large{1e7};
    const bool products = is_convolution(problem.op) || std::holds_alternative<MatMul>(problem.op) ||
                          std::holds_alternative<BatchedMatMul>(problem.op) ||
                          std::holds_alternative<Attention>(problem.op) ||
                          std::holds_alternative<Recurrent>(problem.op);
    return products && flops(problem.op, problem.pass, problem.batch) >= large;
}

}  // namespace

std::vector<Needed> probes(std::span<const Needed> needed) {
    std::set<std::pair<std::string, Pass>> known, large;
    Bytes touched;
    for (const Needed& each : needed) {
        known.insert(sort_of(each.problem));
        if (is_large(each.problem)) large.insert(sort_of(each.problem));
        touched = std::max(touched, each.footprint);
    }
    std::vector<Needed> found;
    for (const char* const name : operators) {
        Problem problem = parse_problem(name);
        const bool update = problem.pass == Pass::update;
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update}) {
            problem.pass = pass;
            const bool asked = update == (pass == Pass::update) && has_pass(problem.op, pass);
            const auto& there = is_large(problem) ? large : known;
            if (asked && !there.contains(sort_of(problem))) found.push_back({problem, touched});
        }
    }
    return found;
}

}  // namespace rehearse::calibrate
