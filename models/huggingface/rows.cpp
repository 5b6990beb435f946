// SPDX-License-Identifier: Apache-2.0
#include "models/huggingface/rows.hpp"

#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace rehearse::models::huggingface {

Shape rows_of(std::int64_t rows, std::int64_t features) { return rows == 1 ? Shape{features} : Shape{rows, features}; }

std::int64_t evenly(const Config& config, std::int64_t width, std::int64_t heads, std::string_view key) {
    if (width % heads != 0) config.fail(key, fmt::format("is {}, which does not divide {}", heads, width));
    return width / heads;
}

std::int64_t layers_of(const Config& config, std::string_view key) {
    constexpr std::int64_t most = 10000;
    const std::int64_t layers = config.size(key);
    if (layers > most) config.fail(key, fmt::format("is {}, at most {}", layers, most));
    return layers;
}

std::optional<Op> activation(std::string_view name, const Shape& shape) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> elementwise{
        {{"gelu_new", "gelutanh"},
         {"gelu_pytorch_tanh", "gelutanh"},
         {"gelu_fast", "gelutanh"},
         {"silu", "silu"},
         {"swish", "silu"},
         {"quick_gelu", "quickgelu"},
         {"mish", "mish"},
         {"leaky_relu", "leakyrelu"},
         {"hardswish", "hardswish"}}};
    if (name == "gelu" || name == "gelu_python") return Activation{Nonlinearity::gelu, shape};
    if (name == "relu") return Activation{Nonlinearity::relu, shape};
    if (name == "tanh") return Activation{Nonlinearity::tanh, shape};
    if (name == "sigmoid") return Activation{Nonlinearity::sigmoid, shape};
    for (const auto& [theirs, ours] : elementwise)
        if (name == theirs) return Elementwise{std::string{ours}, shape, {shape}};
    return std::nullopt;
}

int Rows::dense(const std::string& name, int from, std::int64_t features, bool bias) {
    return b_.layer(name, MatMul{.m = rows(from), .n = features, .k = width(from), .bias = bias}, {from});
}

int Rows::layer_norm(const std::string& name, int from) {
    return b_.layer(name, LayerNorm{rows(from), width(from)}, {from});
}

int Rows::rms_norm(const std::string& name, int from, std::int64_t size) {
    if (size == 0) size = width(from);
    return b_.layer(name,
                    Normalization{.shape = b_.shape(from),
                                  .sets = elements(b_.shape(from)) / size,
                                  .gamma = size,
                                  .centred = false,
                                  .epsilon = config_.number("rms_norm_eps", 1e-6)},
                    {from});
}

int Rows::function(const std::string& name, int from, std::string_view key, std::string_view otherwise) {
    const std::string function = config_.text(key, otherwise);
    auto op = activation(function, b_.shape(from));
    if (!op)
        config_.fail(key, fmt::format("is '{}', a function that is not known: gelu, gelu_new, gelu_pytorch_tanh, "
                                      "quick_gelu, silu, relu, tanh, mish, hardswish",
                                      function));
    return b_.layer(name, *std::move(op), {from});
}

int Rows::multiply(const std::string& name, int a, int b) {
    return b_.layer(name, Elementwise{"mul", b_.shape(a), {b_.shape(a), b_.shape(b)}}, {a, b});
}

int Rows::rotary(const std::string& name, int from, Rotation rotation, std::int64_t heads) {
    if (rotation.base == 0) rotation.base = config_.of_rotary("rope_theta", config_.number("rotary_emb_base", 10000));
    if (rotation.turned % 2 != 0) {
        throw InputError(
            fmt::format("{}: {} numbers of a head are turned by rotary embeddings, which turn pairs: an even "
                        "head_dim (or hidden_size / num_attention_heads), or part of it",
                        config_.origin(), rotation.turned));
    }
    if (heads == 0) heads = width(from) / rotation.size;
    // Read beside the rows: sine and cosine of each pair.
    return b_.layer(name, rehearse::rotary(b_.shape(from), rotation, heads, {{rows(from), rotation.turned}}), {from});
}

int Rows::attention(const std::string& name, int q, int k, int v, const Heads& heads) {
    if (heads.rotary > 0) {
        const Rotation rotation{.size = heads.head_size, .turned = heads.rotary};
        q = rotary(name + ".rotary_q", q, rotation);
        k = rotary(name + ".rotary_k", k, rotation);
    }
    Attention op{.heads = heads.heads,
                 .queries = rows(q),
                 .keys = rows(k),
                 .head_size = heads.head_size,
                 .causal = heads.causal};
    if (heads.key_heads != heads.heads) op.key_heads = heads.key_heads;
    if (heads.value_size != heads.head_size) op.value_size = heads.value_size;
    return b_.layer(name + ".attention", op, {q, k, v});
}

int Rows::dropout(const std::string& name, int from, double share) {
    return share > 0 && share < 1 ? b_.dropout(name, from, 1 - share) : from;
}

int Rows::slice(const std::string& name, int from, std::size_t axis, std::int64_t first, std::int64_t count) {
    const Shape shape = b_.shape(from);
    Shape to = shape;
    to.at(axis) = count;
    std::vector<std::int64_t> numbers(2 * shape.size(), 1);  // the first of each axis, then the step of each
    for (std::size_t i = 0; i < shape.size(); ++i) numbers[i] = i == axis ? first : 0;
    const int cut = b_.layer(name, Rearrangement{"slice", {shape}, to, std::move(numbers)}, {from});
    if (count > 1 || shape.size() == 1) return cut;
    to.erase(to.begin() + static_cast<std::ptrdiff_t>(axis));
    return view(name + ".view", cut, to);
}

int Rows::transpose(const std::string& name, int from, const std::vector<std::int64_t>& axes) {
    const Shape shape = b_.shape(from);
    Shape to;
    for (const std::int64_t axis : axes) to.push_back(shape.at(static_cast<std::size_t>(axis)));
    return b_.layer(name, Rearrangement{"transpose", {shape}, to, axes}, {from});
}

int Rows::view(const std::string& name, int from, const Shape& shape) {
    if (b_.shape(from) == shape) return from;
    return b_.layer(name, Flatten{b_.shape(from), shape.size() == 1 ? Shape{} : shape}, {from});
}

int Rows::gated(const std::string& name, int from, std::int64_t inner, bool bias, std::string_view key,
                std::string_view otherwise) {
    const std::int64_t features = width(from);
    const int gate = function(name + ".act_fn", dense(name + ".gate_proj", from, inner, bias), key, otherwise);
    const int both = multiply(name + ".gated", gate, dense(name + ".up_proj", from, inner, bias));
    return dense(name + ".down_proj", both, features, bias);
}

int Rows::gated_at_once(const std::string& name, int from, std::int64_t inner) {
    const std::int64_t features = width(from);
    const int both = dense(name + ".gate_up_proj", from, 2 * inner, false);
    const std::size_t last = b_.shape(both).size() - 1;
    const int gate = slice(name + ".gate", both, last, 0, inner), up = slice(name + ".up", both, last, inner, inner);
    const int product = multiply(name + ".gated", function(name + ".activation_fn", gate, "hidden_act", "silu"), up);
    return dense(name + ".down_proj", product, features, false);
}

void Rows::word_loss(int scores) {
    b_.layer("loss", SoftmaxLoss{.classes = width(scores), .rows = rows(scores)}, {scores});
}

void Rows::label_loss(int scores) {
    const int loss = b_.loss(scores);
    if (elements(b_.shape(scores)) > 1) return;
    Given told;
    told.not_run = "one label is a regression, whose mean squared error is priced as the loss of one class";
    b_.at(loss).given = std::make_shared<const Given>(std::move(told));
}

}  // namespace rehearse::models::huggingface
