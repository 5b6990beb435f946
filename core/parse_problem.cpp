// SPDX-License-Identifier: Apache-2.0
// Problem strings read back; problem.cpp writes them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "core/op.hpp"
#include "core/op_general_visitors.hpp"
#include "core/problem_forms.hpp"
#include "core/problem_parts.hpp"
#include "core/text.hpp"

namespace rehearse {

namespace {

Op parse_convolution(const ProblemParts& parts, std::string_view kind) {
    const std::int64_t groups = parts.integer_or("groups", 1);
    const bool bias = parts.find("bias").has_value();
    if (kind != "convtranspose") {
        const bool volume = kind == "conv3d";
        auto f = parts.fields(0, volume ? "cdhwktrs" : "chwkrs");
        return Conv{
            f['c'], f['h'], f['w'], f['k'], parts.window(f), groups, bias, parts.has("relu"), volume ? f['d'] : 0};
    }
    auto f = parts.image_fields("chwkrs");
    const bool volume = f.contains('d');
    const auto outside = parts.repeated("outpad", volume ? 3 : 2, 0);
    ConvTranspose op{f['c'], f['h'], f['w'], f['k'], parts.window(f), groups, bias, volume ? f['d'] : 0};
    op.output_pad_d = volume ? outside[0] : 0;
    op.output_pad_h = outside[outside.size() - 2];
    op.output_pad_w = outside.back();
    return op;
}

Op parse_resize(const ProblemParts& parts) {
    auto f = parts.image_fields("chw");
    const bool volume = f.contains('d');
    const std::string_view to = parts.part(1);
    if (!to.starts_with("to")) parts.fail("expected the new size, like to768x1152");
    const Shape sizes = parts.shape(to.substr(2));
    if (sizes.size() != (volume ? 3 : 2)) parts.fail("the new size has as many numbers as the old");
    if (!parts.find("nearest") && !parts.find("linear")) parts.fail("'nearest' or 'linear' is missing");
    return Resize{parts.find("nearest") ? Interpolation::nearest : Interpolation::linear,
                  f['c'],
                  f['h'],
                  f['w'],
                  sizes[sizes.size() - 2],
                  sizes.back(),
                  volume ? f['d'] : 0,
                  volume ? sizes[0] : 0,
                  parts.find("corners").has_value()};
}

Op parse_loss(const ProblemParts& parts) {
    SoftmaxLoss op{parts.positive(parts.part(0))};
    if (const auto image = parts.find("image")) op.image = parts.shape(*image);
    if (const auto weights = parts.find("weights")) {
        for (const std::string_view weight : split(*weights, '+')) op.class_weights.push_back(parts.number_of(weight));
    }
    op.rows = parts.integer_or("rows", 1);
    return op;
}

Op parse_pool(const ProblemParts& parts) {
    auto f = parts.image_fields("chwrs");
    if (!parts.find("max") && !parts.find("average")) parts.fail("'max' or 'average' is missing");
    return Pool{parts.find("max") ? PoolKind::max : PoolKind::average,
                f['c'],
                f['h'],
                f['w'],
                parts.window(f),
                parts.find("countpad").has_value(),
                f.contains('d') ? f['d'] : 0};
}

Op parse_image(const ProblemParts& parts, std::string_view kind) {
    if (kind == "batchnorm") {
        auto f = parts.image_fields("chw");
        const BatchNorm usual;
        return BatchNorm{.channels = f['c'],
                         .height = f['h'],
                         .width = f['w'],
                         .depth = f.contains('d') ? f['d'] : 0,
                         .relu = parts.has("relu"),
                         .add = parts.has("add"),
                         .parts = parts.integer_or("parts", 1),
                         .epsilon = parts.find("eps") ? parts.number("eps") : usual.epsilon,
                         .momentum = parts.find("momentum") ? parts.number("momentum") : usual.momentum,
                         .affine = !parts.has("plain")};
    }
    if (kind == "channelsums") {
        auto f = parts.image_fields("chw");
        return ChannelSums{f['c'], f['h'], f['w'], f.contains('d') ? f['d'] : 0};
    }
    auto f = parts.fields(0, "chw");
    if (kind == "lrn") {
        return Lrn{f['c'],
                   f['h'],
                   f['w'],
                   parts.integer("size"),
                   parts.number("alpha"),
                   parts.number("beta"),
                   parts.number("bias")};
    }
    const auto pads = parts.list(parts.part(1), '+');
    if (pads.size() != 2) parts.fail("two paddings, like 8+8");
    return ChannelPad{f['c'], f['h'], f['w'], pads[0], pads[1]};
}

constexpr std::array nonlinearities{Nonlinearity::relu, Nonlinearity::sigmoid, Nonlinearity::tanh, Nonlinearity::gelu};

std::optional<Nonlinearity> parse_activation(const ProblemParts& parts) {
    for (const Nonlinearity kind : nonlinearities) {
        if (parts.has(to_string(kind))) return kind;
    }
    return std::nullopt;
}

Op parse_shaped(const ProblemParts& parts, std::string_view kind) {
    const Shape shape = parts.shape(parts.part(0));
    if (kind == "input") return Input{shape, parts.integer_or("vocabulary", 0)};
    if (kind == "flatten") {
        const auto to = parts.find("to");
        return Flatten{shape, to ? parts.shape(*to) : Shape{}};
    }
    if (kind == "add") return Add{shape, parts.inputs()};
    if (kind == "bias") return Bias{shape, parts.integer("dim")};
    if (kind == "communication") parts.fail("a communication is not computed: it has no problem");
    if (kind == "dropout") return Dropout{shape, parts.number("keep")};
    if (kind == "unknown") {
        return Unknown{std::string{parts.part(1)}, parts.inputs(), parts.integer("weights"), shape};
    }
    for (const Nonlinearity nonlinearity : nonlinearities) {
        if (parts.part(1) == to_string(nonlinearity)) return Activation{nonlinearity, shape};
    }
    parts.fail(fmt::format("unknown activation '{}': relu, sigmoid, tanh or gelu", parts.part(1)));
}

Routing parse_routing(const ProblemParts& parts) {
    auto f = parts.fields(0, "tce");
    return {f['t'], f['c'], f['e'], parts.integer("top"), parts.integer("capacity"), parts.integer_or("group", 1)};
}

std::optional<Op> parse_sequence(const ProblemParts& parts, std::string_view kind) {
    if (kind == "attention") {
        auto f = parts.fields(0, "hqkd");
        return Attention{f['h'],
                         f['q'],
                         f['k'],
                         f['d'],
                         parts.find("causal").has_value(),
                         parts.find("packed").has_value(),
                         parts.find("kept").has_value(),
                         parts.integer_or("shared", 0),
                         parts.integer_or("values", 0)};
    }
    if (kind == "layernorm") {
        auto f = parts.fields(0, "rc");
        return LayerNorm{f['r'], f['c']};
    }
    if (kind == "embedding") {
        auto f = parts.fields(0, "tvc");
        return Embedding{f['t'],
                         f['v'],
                         f['c'],
                         parts.integer_or("positions", 0),
                         parts.integer_or("segments", 0),
                         parts.integer_or("parts", 1)};
    }
    if (kind == "softmaxterms") {
        auto f = parts.fields(0, "rc");
        return SoftmaxTerms{f['c'], f['r'], parts.integer("parts"), parts.integer_or("words", 0)};
    }
    if (kind == "termsloss") return TermsLoss{parts.fields(0, "r")['r'], parts.integer("parts")};
    if (kind == "embeddingbag") {
        auto f = parts.fields(0, "tlvc");
        return EmbeddingBag{
            f['t'], f['l'], f['v'], f['c'], parts.integer_or("samples", 1), parts.find("direct").has_value()};
    }
    if (kind == "dispatch") return DispatchTokens{parse_routing(parts)};
    if (kind == "combine") return CombineTokens{parse_routing(parts)};
    if (kind == "groupedmatmul") {
        auto f = parts.fields(0, "emnk");
        return GroupedMatMul{
            f['e'],           f['m'], f['n'], f['k'], parts.integer_or("sources", 1), parts.integer_or("group", 1),
            parts.has("bias")};
    }
    if (kind == "interaction") {
        auto f = parts.fields(0, "vc");
        return Interaction{f['v'], f['c']};
    }
    return std::nullopt;
}

// NOLINTNEXTLINE(misc-no-recursion): what is shared is not shared once more
Op parse_op(std::string_view kind, std::string_view rest) {
    const ProblemParts parts{rest};
    if (kind == "shared") {
        const std::size_t colon = std::min(rest.find(':'), rest.size() - 1);
        const std::string_view inner = rest.substr(0, colon);
        if (inner == kind || std::ranges::find(op_kinds(), inner) == op_kinds().end())
            parts.fail("the operator that is computed again is missing, like shared:n8conv2d:...");
        return Shared{std::make_shared<const SharedOp>(SharedOp{parse_op(inner, rest.substr(colon + 1))})};
    }
    if (std::optional<Op> op = general::parse(parts, kind)) return *std::move(op);
    if (kind == "conv2d" || kind == "conv3d" || kind == "convtranspose") return parse_convolution(parts, kind);
    if (kind == "pool") return parse_pool(parts);
    if (kind == "resize") return parse_resize(parts);
    if (kind == "batchnorm" || kind == "channelsums" || kind == "lrn" || kind == "channelpad")
        return parse_image(parts, kind);
    if (kind == "matmul") {
        auto f = parts.fields(0, "mnk");
        return MatMul{f['m'], f['n'], f['k'], parts.has("bias"), parse_activation(parts), parts.has("tied")};
    }
    if (kind == "concat") {
        auto f = parts.image_fields("hw");
        return Concat{parts.list(parts.part(1), '+'), f['h'], f['w'], f.contains('d') ? f['d'] : 0};
    }
    if (kind == "softmax") return Softmax{parts.positive(rest)};
    if (kind == "softmaxloss") return parse_loss(parts);
    if (kind == "sgd") return SgdUpdate{parts.positive(rest)};
    if (kind == "adam") return AdamUpdate{parts.positive(rest)};
    if (kind == "lamb") return LambUpdate{parts.positive(parts.part(0)), parts.integer("tensors")};
    if (std::optional<Op> op = parse_sequence(parts, kind)) return *std::move(op);
    return parse_shaped(parts, kind);
}

template <typename Enum>
Enum parse_word(std::string_view word, std::initializer_list<Enum> values, std::string_view problem) {
    for (const Enum value : values) {
        if (to_string(value) == word) return value;
    }
    throw InputError(
        fmt::format("problem '{}': '{}' is no pass or type here (it ends like ':f32:forward')", problem, word));
}

}  // namespace

Problem parse_problem(std::string_view text) {
    const auto fail = [&](std::string_view why) { return InputError(fmt::format("problem '{}': {}", text, why)); };
    const std::size_t colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    if (std::ranges::find(op_kinds(), kind) == op_kinds().end()) {
        throw fail(fmt::format("unknown operator '{}'{}", kind, did_you_mean(kind, op_kinds())));
    }
    const std::size_t last = text.rfind(':');
    const std::size_t second = last == 0 ? std::string_view::npos : text.rfind(':', last - 1);
    if (colon == std::string_view::npos || !text.substr(colon).starts_with(":n") || second == std::string_view::npos ||
        second <= colon) {
        throw fail(fmt::format("expected {}:nBATCH...:TYPE:PASS, like {}", kind, example_of(kind)));
    }
    Problem problem;
    problem.pass = parse_word(text.substr(last + 1),
                              {Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update}, text);
    problem.type = parse_word(text.substr(second + 1, last - second - 1),
                              {DataType::f32, DataType::f16, DataType::bf16, DataType::tf32, DataType::fp8}, text);
    std::string_view rest = text.substr(colon + 2, second - colon - 2);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    problem.batch = parse_int(rest.substr(0, digits), fmt::format("problem '{}': batch", text));
    if (problem.batch < 1) throw fail("the batch must be at least 1");
    rest.remove_prefix(digits);
    if (rest.starts_with(':')) rest.remove_prefix(1);
    try {
        problem.op = parse_op(kind, rest);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}; it is written like {}", error.what(), example_of(kind)));
    }
    const Shape output = output_shape(problem.op);  // throws when the sizes cannot be
    if (static_cast<double>(problem.batch) * product_of(output) > most_elements) {
        throw fail("its result has more elements than any kernel works on: a smaller batch or shape");
    }
    return problem;
}

}  // namespace rehearse
