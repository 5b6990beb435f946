// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recorded_calls.hpp"

#include <algorithm>
#include <array>
#include <variant>

namespace rehearse::calibrate {

namespace {

struct Spelling {
    std::string_view part;
    Family family;
};

// The first that is part of the name, in lower case.
constexpr std::array spellings{Spelling{"conv_transpose", Family::transposed_convolution},
                               Spelling{"convolution_transpose", Family::transposed_convolution},
                               Spelling{"_conv_depthwise", Family::convolution},
                               Spelling{"conv", Family::convolution},
                               Spelling{"addmm", Family::product},
                               Spelling{"linear", Family::product},
                               Spelling{"baddbmm", Family::attention},
                               Spelling{"bmm", Family::attention},
                               Spelling{"batch_norm", Family::batch_norm},
                               Spelling{"batchnorm", Family::batch_norm},
                               Spelling{"layer_norm", Family::layer_norm},
                               Spelling{"layernorm", Family::layer_norm},
                               Spelling{"pool", Family::pool},
                               Spelling{"embedding", Family::embedding},
                               Spelling{"cross_entropy", Family::loss},
                               Spelling{"nll_loss", Family::loss},
                               Spelling{"nllloss", Family::loss},
                               Spelling{"log_softmax", Family::loss},
                               Spelling{"logsoftmax", Family::loss},
                               Spelling{"scaled_dot_product", Family::attention},
                               Spelling{"scaleddotproduct", Family::attention},
                               Spelling{"flash_attn", Family::attention},
                               Spelling{"dropout", Family::dropout},
                               Spelling{"relu", Family::activation},
                               Spelling{"gelu", Family::activation},
                               Spelling{"tanh", Family::activation},
                               Spelling{"sigmoid", Family::activation},
                               Spelling{"silu", Family::activation},
                               Spelling{"softmax", Family::softmax},
                               Spelling{"threshold", Family::activation},
                               Spelling{"::cat", Family::concat},
                               Spelling{"catbackward", Family::concat},
                               Spelling{"concat", Family::concat},
                               Spelling{"view", Family::movement},
                               Spelling{"reshape", Family::movement},
                               Spelling{"flatten", Family::movement},
                               Spelling{"transpose", Family::movement},
                               Spelling{"permute", Family::movement},
                               Spelling{"contiguous", Family::movement},
                               Spelling{"slice", Family::movement},
                               Spelling{"select", Family::movement},
                               Spelling{"split", Family::movement},
                               Spelling{"chunk", Family::movement},
                               Spelling{"expand", Family::movement},
                               Spelling{"unbind", Family::movement},
                               Spelling{"squeeze", Family::movement},
                               Spelling{"::to", Family::movement},
                               Spelling{"copy", Family::movement},
                               Spelling{"clone", Family::movement},
                               Spelling{"::t", Family::movement},
                               Spelling{"tbackward", Family::movement},
                               Spelling{"::detach", Family::movement}};

bool ends_in(std::string_view name, std::string_view operation) {
    return name == operation || (name.starts_with(operation) && name.substr(operation.size()) == "_");
}

struct FamilyOfOp {
    Family operator()(const Conv&) const { return Family::convolution; }
    Family operator()(const ConvTranspose&) const { return Family::transposed_convolution; }
    Family operator()(const MatMul&) const { return Family::product; }
    Family operator()(const BatchNorm&) const { return Family::batch_norm; }
    Family operator()(const LayerNorm&) const { return Family::layer_norm; }
    Family operator()(const Pool&) const { return Family::pool; }
    Family operator()(const Embedding&) const { return Family::embedding; }
    Family operator()(const EmbeddingBag&) const { return Family::embedding; }
    Family operator()(const SoftmaxLoss&) const { return Family::loss; }
    Family operator()(const Attention&) const { return Family::attention; }
    Family operator()(const Activation&) const { return Family::activation; }
    Family operator()(const Add&) const { return Family::add; }
    Family operator()(const Dropout&) const { return Family::dropout; }
    Family operator()(const Concat&) const { return Family::concat; }
    Family operator()(const Softmax&) const { return Family::softmax; }
    Family operator()(const Flatten&) const { return Family::movement; }
    Family operator()(const auto&) const { return Family::other; }
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
    Agreement operator()(const auto&) const { return Agreement::unknown; }
};

}  // namespace

Family family_of(const Op& op) { return std::visit(FamilyOfOp{}, op); }

std::string_view short_name(std::string_view name) {
    constexpr std::string_view engine = "autograd::engine::evaluate_function: ";
    if (name.starts_with(engine)) name.remove_prefix(engine.size());
    return name;
}

Family family_of(std::string_view full) {
    const std::string_view name = short_name(full);
    if (ends_in(name, "aten::add") || name.starts_with("AddBackward")) return Family::add;
    if (name == "aten::mm" || name == "aten::matmul" || name.starts_with("MmBackward")) return Family::product;
    if (name == "aten::mean" || name.starts_with("MeanBackward")) return Family::pool;
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const auto& [part, family] : spellings) {
        const std::size_t at = lower.find(part);
        if (at == std::string::npos) continue;
        if (part == "::t" && lower != "aten::t") continue;
        return family;
    }
    return Family::other;
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
