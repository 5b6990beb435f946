// SPDX-License-Identifier: Apache-2.0
// Problem strings: "conv2d:n32c64h56w56k64r3s3:pad1:stride1:f32:forward". One string names one case everywhere.
#include <fmt/format.h>

#include <array>

#include "core/op.hpp"
#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

constexpr std::array<std::string_view, 44> kinds{
    "input",         "conv2d",        "matmul",        "pool",      "batchnorm",     "lrn",          "activation",
    "add",           "concat",        "channelpad",    "dropout",   "flatten",       "softmax",      "softmaxloss",
    "sgd",           "convtranspose", "resize",        "bias",      "communication", "attention",    "layernorm",
    "embedding",     "embeddingbag",  "interaction",   "adam",      "lamb",          "unknown",      "softmaxterms",
    "termsloss",     "channelsums",   "dispatch",      "combine",   "groupedmatmul", "elementwise",  "reduction",
    "rearrangement", "gather",        "batchedmatmul", "recurrent", "normalization", "softmaxalong", "parameter",
    "shared",        "conv3d"};
static_assert(std::variant_size_v<AnyOp> + 1 == kinds.size(),
              "in the order of Op, then what a Conv of volumes is called");

// "1" when all are equal, else "1x2".
std::string short_list(std::initializer_list<std::int64_t> values) {
    for (const std::int64_t value : values) {
        if (value != *values.begin()) return fmt::format("{}", fmt::join(values, "x"));
    }
    return fmt::format("{}", *values.begin());
}

// Of volumes: front, top, left, back, bottom, right; otherwise depth, height, width.
std::string volume_window_text(const Window& w) {
    std::string text =
        fmt::format("t{}r{}s{}:pad{}:stride{}", w.kernel_d, w.kernel_h, w.kernel_w,
                    short_list({w.pad_front, w.pad_top, w.pad_left, w.pad_back, w.pad_bottom, w.pad_right}),
                    short_list({w.stride_d, w.stride_h, w.stride_w}));
    if (w.dilation_d != 1 || w.dilation_h != 1 || w.dilation_w != 1)
        text += ":dilation" + short_list({w.dilation_d, w.dilation_h, w.dilation_w});
    return text;
}

std::string window_text(const Window& w, bool volume) {
    if (volume) return volume_window_text(w);
    std::string text = fmt::format("r{}s{}:pad{}:stride{}", w.kernel_h, w.kernel_w,
                                   short_list({w.pad_top, w.pad_left, w.pad_bottom, w.pad_right}),
                                   short_list({w.stride_h, w.stride_w}));
    if (w.dilation_h != 1 || w.dilation_w != 1) text += ":dilation" + short_list({w.dilation_h, w.dilation_w});
    return text;
}

/// Large: one method an operator.
struct Text : general::Text {
    using general::Text::operator();
    std::string operator()(const Input& op) const {
        return to_string(op.shape) + (op.vocabulary == 0 ? "" : fmt::format(":vocabulary{}", op.vocabulary));
    }
    std::string operator()(const Conv& op) const {
        return fmt::format("{}k{}{}{}{}{}", volume(op), op.filters, window_text(op.window, op.depth > 0),
                           op.groups == 1 ? "" : fmt::format(":groups{}", op.groups), op.bias ? ":bias" : "",
                           op.relu ? ":relu" : "");
    }
    std::string operator()(const ConvTranspose& op) const {
        std::string text = fmt::format("{}k{}{}", volume(op), op.filters, window_text(op.window, op.depth > 0));
        if (op.groups != 1) text += fmt::format(":groups{}", op.groups);
        if (op.output_pad_d != 0 || op.output_pad_h != 0 || op.output_pad_w != 0) {
            text += ":outpad" + (op.depth == 0 ? short_list({op.output_pad_h, op.output_pad_w})
                                               : short_list({op.output_pad_d, op.output_pad_h, op.output_pad_w}));
        }
        return text + (op.bias ? ":bias" : "");
    }
    std::string operator()(const Resize& op) const {
        const Shape to = output_shape(Op{op});
        return fmt::format("{}:to{}:{}{}", volume(op), fmt::join(to.begin() + 1, to.end(), "x"),
                           op.kind == Interpolation::nearest ? "nearest" : "linear",
                           op.align_corners ? ":corners" : "");
    }
    std::string operator()(const MatMul& op) const {
        return fmt::format("m{}n{}k{}{}{}{}", op.m, op.n, op.k, op.bias ? ":bias" : "",
                           op.activation ? fmt::format(":{}", rehearse::to_string(*op.activation)) : "",
                           op.tied ? ":tied" : "");
    }
    std::string operator()(const Pool& op) const {
        return fmt::format("{}{}:{}{}", volume(op), window_text(op.window, op.depth > 0),
                           op.kind == PoolKind::max ? "max" : "average", op.count_padding ? ":countpad" : "");
    }
    std::string operator()(const BatchNorm& op) const {
        const BatchNorm usual;
        return fmt::format("{}{}{}{}{}", volume(op), op.affine ? "" : ":plain", op.add ? ":add" : "",
                           op.relu ? ":relu" : "", op.parts == 1 ? "" : fmt::format(":parts{}", op.parts)) +
               (op.epsilon == usual.epsilon ? "" : fmt::format(":eps{}", op.epsilon)) +
               (op.momentum == usual.momentum ? "" : fmt::format(":momentum{}", op.momentum));
    }
    std::string operator()(const ChannelSums& op) const { return volume(op); }
    std::string operator()(const Lrn& op) const {
        return fmt::format("{}:size{}:alpha{}:beta{}:bias{}", image(op), op.size, op.alpha, op.beta, op.bias);
    }
    std::string operator()(const Activation& op) const {
        return fmt::format("{}:{}", to_string(op.shape), rehearse::to_string(op.kind));
    }
    std::string operator()(const Add& op) const { return fmt::format("{}:inputs{}", to_string(op.shape), op.inputs); }
    std::string operator()(const Concat& op) const {
        return fmt::format("{}h{}w{}:{}", depth(op), op.height, op.width, fmt::join(op.channels, "+"));
    }
    std::string operator()(const ChannelPad& op) const {
        return fmt::format("{}:{}+{}", image(op), op.before, op.after);
    }
    std::string operator()(const Dropout& op) const { return fmt::format("{}:keep{}", to_string(op.shape), op.keep); }
    std::string operator()(const Flatten& op) const {
        return to_string(op.shape) + (op.to.empty() ? "" : ":to" + to_string(op.to));
    }
    std::string operator()(const Softmax& op) const { return fmt::format("{}", op.classes); }
    std::string operator()(const SoftmaxLoss& op) const {
        std::string text = fmt::format("{}", op.classes);
        if (!op.image.empty()) text += ":image" + to_string(op.image);
        if (!op.class_weights.empty()) text += fmt::format(":weights{}", fmt::join(op.class_weights, "+"));
        if (op.rows != 1) text += fmt::format(":rows{}", op.rows);
        return text;
    }
    std::string operator()(const SgdUpdate& op) const { return fmt::format("{}", op.count); }
    std::string operator()(const Bias& op) const { return fmt::format("{}:dim{}", to_string(op.shape), op.dim); }
    std::string operator()(const Communication& op) const {
        const Halo& h = op.halo;
        return fmt::format("{}:{}:{}:parts{}:dim{}:offset{}{}{}{}{}", to_string(op.shape),
                           rehearse::to_string(op.movement), op.axis, op.parts, op.dim, op.offset,
                           op.gradient ? "" : ":nogradient",
                           h == Halo{} ? "" : fmt::format(":halo{}x{}x{}x{}", h.own, h.size, h.step, h.before),
                           op.lowest ? ":lowest" : "", op.kept == 0 ? "" : fmt::format(":kept{}", op.kept)) +
               group(op.group);
    }
    std::string operator()(const Attention& op) const {
        return fmt::format("h{}q{}k{}d{}{}{}{}{}{}", op.heads, op.queries, op.keys, op.head_size,
                           op.causal ? ":causal" : "", op.packed ? ":packed" : "", op.kept ? ":kept" : "",
                           op.key_heads == 0 ? "" : fmt::format(":shared{}", op.key_heads),
                           op.value_size == 0 ? "" : fmt::format(":values{}", op.value_size));
    }
    std::string operator()(const LayerNorm& op) const { return fmt::format("r{}c{}", op.rows, op.features); }
    std::string operator()(const Embedding& op) const {
        return fmt::format("t{}v{}c{}{}{}", op.tokens, op.vocabulary, op.width,
                           op.positions == 0 ? "" : fmt::format(":positions{}", op.positions),
                           op.segments == 0 ? "" : fmt::format(":segments{}", op.segments)) +
               (op.parts == 1 ? "" : fmt::format(":parts{}", op.parts));
    }
    std::string operator()(const SoftmaxTerms& op) const {
        return fmt::format("r{}c{}:parts{}{}", op.rows, op.classes, op.parts,
                           op.words == 0 ? "" : fmt::format(":words{}", op.words));
    }
    std::string operator()(const TermsLoss& op) const { return fmt::format("r{}:parts{}", op.rows, op.parts); }
    std::string operator()(const EmbeddingBag& op) const {
        return fmt::format("t{}l{}v{}c{}{}{}", op.tables, op.lookups, op.vocabulary, op.width,
                           op.samples == 1 ? "" : fmt::format(":samples{}", op.samples), op.direct ? ":direct" : "");
    }
    std::string operator()(const Interaction& op) const { return fmt::format("v{}c{}", op.vectors, op.width); }
    std::string operator()(const AdamUpdate& op) const { return fmt::format("{}", op.count); }
    std::string operator()(const LambUpdate& op) const { return fmt::format("{}:tensors{}", op.count, op.tensors); }
    std::string operator()(const Unknown& op) const {
        return fmt::format("{}:{}:inputs{}:weights{}", to_string(op.output), op.type, op.input_elements,
                           op.weight_elements);
    }
    std::string operator()(const DispatchTokens& op) const { return routing(op.routing); }
    std::string operator()(const CombineTokens& op) const { return routing(op.routing); }
    static std::string routing(const Routing& r) {
        return fmt::format("t{}c{}e{}:top{}:capacity{}{}", r.tokens, r.width, r.experts, r.top, r.capacity,
                           group(r.group));
    }
    std::string operator()(const GroupedMatMul& op) const {
        return fmt::format("e{}m{}n{}k{}{}{}{}", op.experts, op.rows, op.n, op.k, op.bias ? ":bias" : "",
                           op.sources == 1 ? "" : fmt::format(":sources{}", op.sources), group(op.group));
    }
    static std::string group(std::int64_t size) { return size == 1 ? "" : fmt::format(":group{}", size); }
    static std::string depth(const auto& op) { return op.depth == 0 ? "" : fmt::format("d{}", op.depth); }
    static std::string volume(const auto& op) {
        return fmt::format("c{}{}h{}w{}", op.channels, depth(op), op.height, op.width);
    }
    static std::string image(const auto& op) { return fmt::format("c{}h{}w{}", op.channels, op.height, op.width); }
};

}  // namespace

std::string_view to_string(Nonlinearity kind) {
    switch (kind) {
        case Nonlinearity::relu:
            return "relu";
        case Nonlinearity::sigmoid:
            return "sigmoid";
        case Nonlinearity::tanh:
            return "tanh";
        case Nonlinearity::gelu:
            return "gelu";
    }
    return "?";
}

std::string_view kind_of(const Op& op) {
    const auto* conv = std::get_if<Conv>(&op);
    return conv != nullptr && conv->depth > 0 ? kinds.back() : kinds.at(op.index());
}

std::span<const std::string_view> op_kinds() { return kinds; }

std::string to_string(const Op& op) { return fmt::format("{}:{}", kind_of(op), std::visit(Text{}, op)); }

std::string to_string(const Problem& problem) {
    const std::string rest = std::visit(Text{}, problem.op);
    const bool lettered = rest[0] >= 'a' && rest[0] <= 'z';
    return fmt::format("{}:n{}{}{}:{}:{}", kind_of(problem.op), problem.batch, lettered ? "" : ":", rest,
                       to_string(problem.type), to_string(problem.pass));
}

}  // namespace rehearse
