// SPDX-License-Identifier: Apache-2.0
// General operators in problem strings: "elementwise:n8:64x56x56:mul:in64x56x56+64x1x1:f32:forward".
#include <fmt/format.h>

#include "core/op_general_visitors.hpp"

namespace rehearse::general {

namespace {

std::string list(std::string_view word, const std::vector<Shape>& shapes) {
    std::string text;
    for (const Shape& shape : shapes) text += fmt::format("{}{}", text.empty() ? "" : "+", to_string(shape));
    return text.empty() ? "" : fmt::format(":{}{}", word, text);
}

// Signs and exponents are kept apart from the separators: "~" is a minus.
template <typename Number>
std::string numbers(std::string_view word, const std::vector<Number>& values) {
    std::string text;
    for (const Number value : values) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
    return text.empty() ? "" : fmt::format(":{}{}", word, text);
}

std::vector<Shape> shapes(const ProblemParts& parts, std::string_view word) {
    std::vector<Shape> all;
    if (const auto text = parts.find(word)) {
        for (const std::string_view each : split(*text, '+')) all.push_back(parts.shape(each));
    }
    return all;
}

std::vector<std::int64_t> integers(const ProblemParts& parts, std::string_view word) {
    std::vector<std::int64_t> all;
    if (const auto text = parts.find(word)) {
        for (const std::string_view each : split(*text, ',')) all.push_back(parse_int(each, word));
    }
    return all;
}

}  // namespace

std::string Text::operator()(const Elementwise& op) const {
    return fmt::format("{}:{}{}{}{}{}{}", to_string(op.shape), op.function, list("in", op.inputs),
                       list("weights", op.weights), list("fixed", op.constants), numbers("by", op.numbers),
                       op.order.empty() ? "" : ":order" + op.order);
}

std::string Text::operator()(const Reduction& op) const {
    return fmt::format("{}:{}{}{}", to_string(op.shape), op.function, numbers("axes", op.axes), op.keep ? ":keep" : "");
}

std::string Text::operator()(const Rearrangement& op) const {
    return fmt::format("{}:{}{}{}{}", to_string(op.output), op.kind, list("from", op.inputs), numbers("by", op.numbers),
                       op.fill == 0 ? "" : fmt::format(":fill{}", op.fill));
}

std::string Text::operator()(const Gather& op) const {
    return fmt::format("{}:of{}:indices{}{}{}", to_string(op.output), to_string(op.table), op.indices,
                       op.trained ? ":trained" : "", op.scatter ? ":scatter" : "");
}

std::string Text::operator()(const BatchedMatMul& op) const {
    return fmt::format("{}:by{}{}", to_string(op.a), to_string(op.b),
                       op.trained == 0   ? ""
                       : op.trained == 1 ? ":left"
                                         : ":right");
}

std::string Text::operator()(const Recurrent& op) const {
    return fmt::format("t{}c{}h{}d{}:{}{}{}{}{}", op.steps, op.inputs, op.hidden, op.directions, op.cell,
                       op.bias ? ":bias" : "", op.reverse ? ":reverse" : "", op.reset_after ? ":resetafter" : "",
                       op.relu ? ":relu" : "");
}

std::string Text::operator()(const Normalization& op) const {
    return fmt::format(
        "{}:sets{}{}{}{}{}{}", to_string(op.shape), op.sets, op.gamma == 0 ? "" : fmt::format(":gamma{}", op.gamma),
        op.beta == 0 ? "" : fmt::format(":beta{}", op.beta), op.inner == 1 ? "" : fmt::format(":inner{}", op.inner),
        op.centred ? "" : ":rms", op.epsilon == Normalization{}.epsilon ? "" : fmt::format(":eps{}", op.epsilon));
}

std::string Text::operator()(const SoftmaxAlong& op) const {
    return fmt::format("{}:axis{}{}", to_string(op.shape), op.axis, op.log ? ":log" : "");
}

std::optional<Op> parse(const ProblemParts& parts, std::string_view kind) {
    const auto shape = [&] { return parts.shape(parts.part(0)); };
    if (kind == "elementwise") {
        Elementwise op{std::string{parts.part(1)}, shape(), shapes(parts, "in"), shapes(parts, "weights"),
                       shapes(parts, "fixed")};
        if (const auto by = parts.find("by")) {
            for (const std::string_view each : split(*by, ',')) op.numbers.push_back(parts.number_of(each));
        }
        op.order = parts.find("order").value_or("");
        return op;
    }
    if (kind == "reduction")
        return Reduction{std::string{parts.part(1)}, shape(), integers(parts, "axes"), parts.has("keep")};
    if (kind == "rearrangement")
        return Rearrangement{std::string{parts.part(1)}, shapes(parts, "from"), shape(), integers(parts, "by"),
                             parts.find("fill") ? parts.number("fill") : 0};
    if (kind == "gather") {
        const auto of = parts.find("of");
        if (!of) parts.fail("'of' and the table's shape are missing");
        return Gather{parts.shape(*of), shape(), parts.integer("indices"), parts.has("trained"), parts.has("scatter")};
    }
    if (kind == "batchedmatmul") {
        const auto by = parts.find("by");
        if (!by) parts.fail("'by' and the second operand's shape are missing");
        return BatchedMatMul{shape(), parts.shape(*by), parts.has("left") ? 1 : parts.has("right") ? 2 : 0};
    }
    if (kind == "recurrent") {
        auto f = parts.fields(0, "tchd");
        return Recurrent{std::string{parts.part(1)},
                         f['t'],
                         f['c'],
                         f['h'],
                         f['d'],
                         parts.has("bias"),
                         parts.has("reverse"),
                         parts.has("resetafter"),
                         parts.has("relu")};
    }
    if (kind == "normalization") {
        Normalization op{shape(),
                         parts.integer("sets"),
                         parts.integer_or("gamma", 0),
                         parts.integer_or("beta", 0),
                         parts.integer_or("inner", 1),
                         !parts.has("rms")};
        if (parts.find("eps")) op.epsilon = parts.number("eps");
        return op;
    }
    if (kind == "softmaxalong") return SoftmaxAlong{shape(), parts.integer("axis"), parts.has("log")};
    if (kind == "parameter") return Parameter{shape()};
    return std::nullopt;
}

}  // namespace rehearse::general
