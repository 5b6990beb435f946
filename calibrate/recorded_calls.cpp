// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recorded_calls.hpp"

#include <algorithm>
#include <array>
#include <variant>

namespace rehearse::calibrate {

namespace {

struct Spelling {
    std::string_view part;
    CallFamily family;
};

// The first that is part of the name, in lower case.
constexpr std::array spellings{Spelling{"conv_transpose", CallFamily::transposed_convolution},
                               Spelling{"convolution_transpose", CallFamily::transposed_convolution},
                               Spelling{"_conv_depthwise", CallFamily::convolution},
                               Spelling{"conv", CallFamily::convolution},
                               Spelling{"addmm", CallFamily::product},
                               Spelling{"linear", CallFamily::product},
                               Spelling{"baddbmm", CallFamily::attention},
                               Spelling{"bmm", CallFamily::attention},
                               Spelling{"batch_norm", CallFamily::batch_norm},
                               Spelling{"batchnorm", CallFamily::batch_norm},
                               Spelling{"layer_norm", CallFamily::layer_norm},
                               Spelling{"layernorm", CallFamily::layer_norm},
                               Spelling{"group_norm", CallFamily::normalization},
                               Spelling{"groupnorm", CallFamily::normalization},
                               Spelling{"instance_norm", CallFamily::normalization},
                               Spelling{"instancenorm", CallFamily::normalization},
                               Spelling{"rms_norm", CallFamily::normalization},
                               Spelling{"rmsnorm", CallFamily::normalization},
                               Spelling{"lstm", CallFamily::recurrent},
                               Spelling{"::gru", CallFamily::recurrent},
                               Spelling{"::rnn_", CallFamily::recurrent},
                               Spelling{"_rnn", CallFamily::recurrent},
                               Spelling{"rnnbackward", CallFamily::recurrent},
                               Spelling{"pool", CallFamily::pool},
                               Spelling{"embedding", CallFamily::embedding},
                               Spelling{"cross_entropy", CallFamily::loss},
                               Spelling{"nll_loss", CallFamily::loss},
                               Spelling{"nllloss", CallFamily::loss},
                               Spelling{"log_softmax", CallFamily::loss},
                               Spelling{"logsoftmax", CallFamily::loss},
                               Spelling{"scaled_dot_product", CallFamily::attention},
                               Spelling{"scaleddotproduct", CallFamily::attention},
                               Spelling{"flash_attn", CallFamily::attention},
                               Spelling{"flashattn", CallFamily::attention},
                               Spelling{"dropout", CallFamily::dropout},
                               Spelling{"relu", CallFamily::activation},
                               Spelling{"gelu", CallFamily::activation},
                               Spelling{"tanh", CallFamily::activation},
                               Spelling{"sigmoid", CallFamily::activation},
                               Spelling{"silu", CallFamily::activation},
                               Spelling{"elu", CallFamily::activation},
                               Spelling{"clamp", CallFamily::activation},
                               Spelling{"hardswish", CallFamily::activation},
                               Spelling{"softplus", CallFamily::activation},
                               Spelling{"softsign", CallFamily::activation},
                               Spelling{"shrink", CallFamily::activation},
                               Spelling{"mish", CallFamily::activation},
                               Spelling{"softmax", CallFamily::softmax},
                               Spelling{"threshold", CallFamily::activation},
                               Spelling{"::cat", CallFamily::concat},
                               Spelling{"catbackward", CallFamily::concat},
                               Spelling{"concat", CallFamily::concat},
                               Spelling{"view", CallFamily::movement},
                               Spelling{"reshape", CallFamily::movement},
                               Spelling{"flatten", CallFamily::movement},
                               Spelling{"transpose", CallFamily::movement},
                               Spelling{"permute", CallFamily::movement},
                               Spelling{"contiguous", CallFamily::movement},
                               Spelling{"slice", CallFamily::movement},
                               Spelling{"select", CallFamily::movement},
                               Spelling{"split", CallFamily::movement},
                               Spelling{"chunk", CallFamily::movement},
                               Spelling{"expand", CallFamily::movement},
                               Spelling{"unbind", CallFamily::movement},
                               Spelling{"squeeze", CallFamily::movement},
                               Spelling{"::to", CallFamily::movement},
                               Spelling{"copy", CallFamily::movement},
                               Spelling{"clone", CallFamily::movement},
                               Spelling{"::t", CallFamily::movement},
                               Spelling{"tbackward", CallFamily::movement},
                               Spelling{"::detach", CallFamily::movement}};

bool ends_in(std::string_view name, std::string_view operation) {
    return name == operation || (name.starts_with(operation) && name.substr(operation.size()) == "_");
}

// Functions of an Elementwise that a framework calls an activation.
constexpr std::array<std::string_view, 19> activations{
    "clip",      "relu",     "leakyrelu", "prelu",    "thresholdedrelu", "hardsigmoid", "hardswish", "shrink",
    "sigmoid",   "tanh",     "silu",      "softplus", "softsign",        "elu",         "selu",      "celu",
    "quickgelu", "gelutanh", "mish"};
// ... and those that PyTorch has under the same name.
constexpr std::array<std::string_view, 13> arithmetic{"mul",        "div", "sub", "rsub", "neg", "pow",  "sqrt",
                                                      "reciprocal", "exp", "log", "erf",  "abs", "where"};

// "mul" of "aten::mul_" and of "MulBackward0"; empty of what is no such function.
std::string_view function_of(std::string_view name) {
    for (const std::string_view function : arithmetic) {
        if (name.starts_with("aten::") && ends_in(name.substr(6), function)) return function;
        const bool begins = name.size() > function.size() && std::tolower(name.front()) == function.front() &&
                            name.substr(1).starts_with(function.substr(1));
        if (begins && name.substr(function.size()).starts_with("Backward")) return function;
    }
    return {};
}

CallFamily family_of_function(std::string_view function) {
    if (function == "add") return CallFamily::add;
    if (std::ranges::find(activations, function) != activations.end()) return CallFamily::activation;
    return std::ranges::find(arithmetic, function) != arithmetic.end() ? CallFamily::arithmetic : CallFamily::other;
}

struct FamilyOfOp {
    CallFamily operator()(const Conv&) const { return CallFamily::convolution; }
    CallFamily operator()(const ConvTranspose&) const { return CallFamily::transposed_convolution; }
    CallFamily operator()(const MatMul&) const { return CallFamily::product; }
    CallFamily operator()(const BatchNorm&) const { return CallFamily::batch_norm; }
    CallFamily operator()(const LayerNorm&) const { return CallFamily::layer_norm; }
    CallFamily operator()(const Pool&) const { return CallFamily::pool; }
    CallFamily operator()(const Embedding&) const { return CallFamily::embedding; }
    CallFamily operator()(const EmbeddingBag&) const { return CallFamily::embedding; }
    CallFamily operator()(const SoftmaxLoss&) const { return CallFamily::loss; }
    CallFamily operator()(const Attention&) const { return CallFamily::attention; }
    CallFamily operator()(const Activation&) const { return CallFamily::activation; }
    CallFamily operator()(const Add&) const { return CallFamily::add; }
    CallFamily operator()(const Dropout&) const { return CallFamily::dropout; }
    CallFamily operator()(const Concat&) const { return CallFamily::concat; }
    CallFamily operator()(const Softmax&) const { return CallFamily::softmax; }
    CallFamily operator()(const Flatten&) const { return CallFamily::movement; }
    CallFamily operator()(const Recurrent&) const { return CallFamily::recurrent; }
    CallFamily operator()(const Normalization&) const { return CallFamily::normalization; }
    CallFamily operator()(const Elementwise& op) const { return family_of_function(op.function); }
    CallFamily operator()(const auto&) const { return CallFamily::other; }
};

Agreement same(std::int64_t a, std::int64_t b) { return a == b ? Agreement::equal : Agreement::different; }

std::int64_t product_of(const std::vector<std::int64_t>& sizes) {
    double product = 1;
    for (const std::int64_t size : sizes) product *= static_cast<double>(size);
    return product < 1e15 ? static_cast<std::int64_t>(product) : -1;
}

// {batch, channels, (depth,) height, width}.
std::vector<std::int64_t> image(std::int64_t batch, const auto& op) {
    std::vector<std::int64_t> sizes = image_shape(op.channels, op.depth, op.height, op.width);
    sizes.insert(sizes.begin(), batch);
    return sizes;
}

Agreement of_image(std::int64_t batch, const auto& op, const Shapes& shapes) {
    if (shapes.empty() || shapes[0].empty()) return Agreement::unknown;
    return shapes[0] == image(batch, op) ? Agreement::equal : Agreement::different;
}

struct Agrees {
    std::string_view name;
    const Shapes& shapes;
    std::int64_t batch;

    Agreement operator()(const Conv& op) const {
        if (shapes.size() < 2 || shapes[1].empty()) return Agreement::unknown;
        std::vector<std::int64_t> weights{op.filters, op.channels / op.groups};
        if (op.depth > 0) weights.push_back(op.window.kernel_d);
        weights.push_back(op.window.kernel_h);
        weights.push_back(op.window.kernel_w);
        return shapes[1] == weights ? of_image(batch, op, shapes) : Agreement::different;
    }
    Agreement operator()(const MatMul& op) const {
        const ProductShape found = product_shape(name, shapes);
        if (found.columns == 0) return shapes.empty() ? Agreement::unknown : Agreement::different;
        const bool equal = found.columns == op.n && found.depth == op.k && found.rows == op.m * batch;
        return equal ? Agreement::equal : Agreement::different;
    }
    Agreement operator()(const BatchNorm& op) const { return of_image(batch, op, shapes); }
    Agreement operator()(const Pool& op) const { return of_image(batch, op, shapes); }
    Agreement operator()(const LayerNorm& op) const {
        if (shapes.empty() || shapes[0].empty()) return Agreement::unknown;
        if (shapes[0].back() != op.features) return Agreement::different;
        return same(product_of(shapes[0]), batch * op.rows * op.features);
    }
    Agreement operator()(const Embedding& op) const {
        if (shapes.empty() || shapes[0].size() != 2) return Agreement::unknown;
        return shapes[0] == std::vector{op.vocabulary, op.width} ? Agreement::equal : Agreement::different;
    }
    Agreement operator()(const SoftmaxLoss& op) const {
        if (shapes.empty() || shapes[0].size() < 2) return Agreement::unknown;
        return same(product_of(shapes[0]), batch * op.rows * op.classes * (op.image.empty() ? 1 : elements(op.image)));
    }
    Agreement operator()(const Attention& op) const {
        if (shapes.empty() || shapes[0].size() != 4) return Agreement::unknown;
        return same(product_of(shapes[0]), batch * op.queries * query_width(op));
    }
    // {batch, steps, inputs}, or steps first.
    Agreement operator()(const Recurrent& op) const {
        if (shapes.empty() || shapes[0].size() != 3) return Agreement::unknown;
        return same(product_of(shapes[0]), batch * op.steps * op.inputs);
    }
    Agreement operator()(const Normalization& op) const {
        if (shapes.empty() || shapes[0].empty()) return Agreement::unknown;
        return same(product_of(shapes[0]), batch * elements(op.shape));
    }
    Agreement operator()(const auto&) const { return Agreement::unknown; }
};

}  // namespace

CallFamily family_of(const Op& op) { return std::visit(FamilyOfOp{}, op); }

std::string_view short_name(std::string_view name) {
    constexpr std::string_view engine = "autograd::engine::evaluate_function: ";
    if (name.starts_with(engine)) name.remove_prefix(engine.size());
    return name;
}

CallFamily family_of(std::string_view full) {
    const std::string_view name = short_name(full);
    if (ends_in(name, "aten::add") || name.starts_with("AddBackward")) return CallFamily::add;
    if (name == "aten::mm" || name == "aten::matmul" || name.starts_with("MmBackward")) return CallFamily::product;
    if (!function_of(name).empty()) return CallFamily::arithmetic;
    if (name == "aten::mean" || name.starts_with("MeanBackward")) return CallFamily::pool;
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& [part, family] : spellings) {
        const std::size_t at = lower.find(part);
        if (at == std::string::npos) continue;
        if (part == "::t" && lower != "aten::t") continue;
        return family;
    }
    return CallFamily::other;
}

bool says_function(const Op& op, std::string_view name) {
    const auto* of = std::get_if<Elementwise>(&op);
    return of != nullptr && of->function == function_of(short_name(name));
}

Shapes shapes_in(std::string_view text) {
    Shapes shapes;
    int depth = 0;
    std::int64_t number = -1;
    for (const char c : text) {
        if (c >= '0' && c <= '9') {
            number = std::min<std::int64_t>(std::max<std::int64_t>(number, 0) * 10 + (c - '0'), std::int64_t{1} << 40);
            continue;
        }
        if (number >= 0 && depth == 2) shapes.back().push_back(number);
        number = -1;
        if (c == '[' && ++depth == 2) shapes.emplace_back();
        if (c == ']') --depth;
        if (c == '"' || depth > 2) return shapes;  // lists of tensors: what follows is none of a layer's operands
    }
    return shapes;
}

ProductShape product_shape(std::string_view name, const Shapes& shapes) {
    ProductShape found;
    const bool bias_first = name == "aten::addmm";
    const std::size_t left = bias_first ? 1 : 0, right = left + 1;
    if (shapes.size() <= right || shapes[right].size() != 2 || shapes[left].empty()) return found;
    const bool transposed = name == "aten::linear";  // weights {columns, depth}
    found.columns = shapes[right][transposed ? 0 : 1];
    found.depth = shapes[right][transposed ? 1 : 0];
    const std::int64_t elements = product_of(shapes[left]);
    found.rows = found.depth > 0 ? elements / found.depth : 0;
    return found;
}

Agreement agreement(const Layer& layer, std::string_view name, const Shapes& shapes, std::int64_t batch) {
    return std::visit(Agrees{name, shapes, batch}, layer.op);
}

}  // namespace rehearse::calibrate
