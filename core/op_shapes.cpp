// SPDX-License-Identifier: Apache-2.0
// Shapes that an operator's own sizes imply.
#include <fmt/format.h>

#include <numeric>

#include "core/error.hpp"
#include "core/op.hpp"
#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

std::int64_t windows(std::int64_t size, std::int64_t before, std::int64_t after, std::int64_t kernel,
                     std::int64_t dilation, std::int64_t stride, std::string_view what) {
    const std::int64_t extent = dilation * (kernel - 1) + 1;
    const std::int64_t room = size + before + after - extent;
    if (size < 1 || kernel < 1 || stride < 1 || dilation < 1 || before < 0 || after < 0) {
        throw InputError(fmt::format("{}: size {}, kernel {}, stride {}, dilation {} must be at least 1, padding 0",
                                     what, size, kernel, stride, dilation));
    }
    if (room < 0) {
        throw InputError(fmt::format("{}: a window of {} does not fit into {} with padding {}+{}", what, extent, size,
                                     before, after));
    }
    return room / stride + 1;
}

// Windows that fit into a volume, or into an image (depth 0).
Shape slide(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width, const Window& w) {
    if (depth == 0 && (w.kernel_d != 1 || w.stride_d != 1 || w.pad_front != 0 || w.pad_back != 0 || w.dilation_d != 1))
        throw InputError("a window over depth needs a volume");
    const std::int64_t planes =
        depth == 0 ? 0 : windows(depth, w.pad_front, w.pad_back, w.kernel_d, w.dilation_d, w.stride_d, "depth");
    return image_shape(channels, planes,
                       windows(height, w.pad_top, w.pad_bottom, w.kernel_h, w.dilation_h, w.stride_h, "height"),
                       windows(width, w.pad_left, w.pad_right, w.kernel_w, w.dilation_w, w.stride_w, "width"));
}

// The size from which as many windows as `size` are cut.
std::int64_t unslide(std::int64_t size, std::int64_t before, std::int64_t after, std::int64_t kernel,
                     std::int64_t dilation, std::int64_t stride, std::int64_t output_pad, std::string_view what) {
    if (output_pad < 0 || output_pad >= stride) {
        throw InputError(
            fmt::format("{}: the output padding is {}, must be below the stride of {}", what, output_pad, stride));
    }
    const std::int64_t whole = stride * (size - 1) + dilation * (kernel - 1) + 1 + output_pad - before - after;
    if (whole < 1) throw InputError(fmt::format("{}: padding {}+{} leaves nothing of {}", what, before, after, size));
    windows(whole, before, after, kernel, dilation, stride, what);  // checks the window's own sizes
    return whole;
}

Shape unslide(const ConvTranspose& op) {
    const Window& w = op.window;
    const std::int64_t depth = op.depth == 0 ? 0
                                             : unslide(op.depth, w.pad_front, w.pad_back, w.kernel_d, w.dilation_d,
                                                       w.stride_d, op.output_pad_d, "depth");
    return image_shape(
        op.filters, depth,
        unslide(op.height, w.pad_top, w.pad_bottom, w.kernel_h, w.dilation_h, w.stride_h, op.output_pad_h, "height"),
        unslide(op.width, w.pad_left, w.pad_right, w.kernel_w, w.dilation_w, w.stride_w, op.output_pad_w, "width"));
}

void check_groups(const auto& op) {
    if (op.groups >= 1 && op.channels % op.groups == 0 && op.filters % op.groups == 0) return;
    throw InputError(
        fmt::format("{} channels and {} filters cannot be split into {} groups", op.channels, op.filters, op.groups));
}

Shape loss_input(const SoftmaxLoss& op) {
    if (op.rows > 1) return {op.rows, op.classes};
    Shape shape{op.classes};
    shape.insert(shape.end(), op.image.begin(), op.image.end());
    return shape;
}

// One row is a vector: what a dense layer of one row makes.
Shape rows_of(std::int64_t rows, std::int64_t features) { return rows == 1 ? Shape{features} : Shape{rows, features}; }

/// Large: one method an operator.
struct Inputs : general::Inputs {
    using general::Inputs::operator();
    std::vector<Shape> operator()(const Input&) const { return {}; }
    std::vector<Shape> operator()(const SgdUpdate&) const { return {}; }
    std::vector<Shape> operator()(const MatMul& op) const { return {rows_of(op.m, op.k)}; }
    std::vector<Shape> operator()(const Activation& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Bias& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Communication& op) const {
        if (op.movement == Movement::receive) return {};
        return {op.shape};
    }
    std::vector<Shape> operator()(const Dropout& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Flatten& op) const { return {op.shape}; }
    std::vector<Shape> operator()(const Softmax& op) const { return {{op.classes}}; }
    std::vector<Shape> operator()(const SoftmaxLoss& op) const { return {loss_input(op)}; }
    std::vector<Shape> operator()(const Attention& op) const {
        const std::int64_t q = query_width(op), k = key_width(op), v = value_width(op);
        if (op.packed) return {rows_of(op.queries, q + k + v)};
        return {rows_of(op.queries, q), rows_of(op.keys, k), rows_of(op.keys, v)};
    }
    std::vector<Shape> operator()(const SoftmaxTerms& op) const { return {rows_of(op.rows, op.classes)}; }
    std::vector<Shape> operator()(const TermsLoss& op) const { return {rows_of(op.rows, 3 * op.parts)}; }
    std::vector<Shape> operator()(const LayerNorm& op) const { return {rows_of(op.rows, op.features)}; }
    std::vector<Shape> operator()(const Embedding& op) const { return {{op.tokens}}; }
    std::vector<Shape> operator()(const EmbeddingBag& op) const { return {{op.samples * op.tables * op.lookups}}; }
    std::vector<Shape> operator()(const Interaction& op) const {
        return {{op.width}, rows_of(op.vectors - 1, op.width)};
    }
    std::vector<Shape> operator()(const DispatchTokens& op) const {
        return {rows_of(op.routing.tokens, op.routing.width), scores(op.routing)};
    }
    std::vector<Shape> operator()(const CombineTokens& op) const {
        return {rows_of(op.routing.slots(), op.routing.width), scores(op.routing)};
    }
    static Shape scores(const Routing& routing) { return rows_of(routing.tokens, routing.experts); }
    std::vector<Shape> operator()(const GroupedMatMul& op) const { return {rows_of(rows(op), op.k)}; }
    static std::int64_t rows(const GroupedMatMul& op) { return op.sources * op.experts * op.rows / op.group; }
    std::vector<Shape> operator()(const AdamUpdate&) const { return {}; }
    std::vector<Shape> operator()(const LambUpdate&) const { return {}; }
    std::vector<Shape> operator()(const Add& op) const {
        return std::vector<Shape>(static_cast<std::size_t>(op.inputs), op.shape);
    }
    std::vector<Shape> operator()(const Concat& op) const {
        std::vector<Shape> shapes;
        for (const std::int64_t channels : op.channels)
            shapes.push_back(image_shape(channels, op.depth, op.height, op.width));
        return shapes;
    }
    std::vector<Shape> operator()(const Unknown& op) const { return {{op.input_elements}}; }
    std::vector<Shape> operator()(const Lrn& op) const { return {image(op)}; }
    std::vector<Shape> operator()(const ChannelPad& op) const { return {image(op)}; }
    std::vector<Shape> operator()(const BatchNorm& op) const {
        std::vector<Shape> shapes(op.add ? 2 : 1, image_shape(op.channels, op.depth, op.height, op.width));
        if (op.parts > 1) shapes.push_back({2 * op.channels});
        return shapes;
    }
    // Conv, ConvTranspose, Pool, Resize, ChannelSums: one image or volume.
    std::vector<Shape> operator()(const auto& op) const {
        return {image_shape(op.channels, op.depth, op.height, op.width)};
    }
    static Shape image(const auto& op) { return {op.channels, op.height, op.width}; }
};

void at_least_one(std::string_view what, std::initializer_list<std::int64_t> sizes) {
    for (const std::int64_t size : sizes) {
        if (size < 1) throw InputError(fmt::format("{}: a size is {}, must be at least 1", what, size));
    }
}

/// Large: one method an operator.
struct Output : general::Output {
    using general::Output::operator();
    Shape operator()(const Input& op) const { return op.shape; }
    Shape operator()(const Conv& op) const {
        check_groups(op);
        if (op.relu && op.depth > 0) throw InputError("conv3d is not fused with relu: let it be a layer of its own");
        return slide(op.filters, op.depth, op.height, op.width, op.window);
    }
    Shape operator()(const ConvTranspose& op) const {
        check_groups(op);
        return unslide(op);
    }
    Shape operator()(const Pool& op) const { return slide(op.channels, op.depth, op.height, op.width, op.window); }
    Shape operator()(const MatMul& op) const {
        if (op.activation && op.activation != Nonlinearity::relu && op.activation != Nonlinearity::gelu) {
            throw InputError(fmt::format("matmul is fused with relu or gelu, not with {}", to_string(*op.activation)));
        }
        return rows_of(op.m, op.n);
    }
    Shape operator()(const BatchNorm& op) const { return image_shape(op.channels, op.depth, op.height, op.width); }
    Shape operator()(const ChannelSums& op) const {
        at_least_one("channelsums", {op.channels, op.height, op.width});
        return {2 * op.channels};
    }
    Shape operator()(const Lrn& op) const { return {op.channels, op.height, op.width}; }
    Shape operator()(const Resize& op) const {
        if ((op.depth == 0) != (op.out_depth == 0) || op.out_depth < 0 || op.out_height < 1 || op.out_width < 1)
            throw InputError("an image is resized to an image and a volume to a volume, at least one pixel each way");
        return image_shape(op.channels, op.out_depth, op.out_height, op.out_width);
    }
    Shape operator()(const Activation& op) const { return op.shape; }
    Shape operator()(const Add& op) const { return op.shape; }
    Shape operator()(const Concat& op) const {
        return image_shape(std::accumulate(op.channels.begin(), op.channels.end(), std::int64_t{0}), op.depth,
                           op.height, op.width);
    }
    Shape operator()(const ChannelPad& op) const { return {op.before + op.channels + op.after, op.height, op.width}; }
    Shape operator()(const Dropout& op) const { return op.shape; }
    Shape operator()(const Flatten& op) const {
        if (op.to.empty()) return {elements(op.shape)};
        if (elements(op.to) != elements(op.shape))
            throw InputError(fmt::format("flatten: {} is not {}", to_string(op.to), to_string(op.shape)));
        return op.to;
    }
    Shape operator()(const Softmax& op) const { return {op.classes}; }
    Shape operator()(const SoftmaxLoss& op) const {
        if (!op.class_weights.empty() && static_cast<std::int64_t>(op.class_weights.size()) != op.classes)
            throw InputError(fmt::format("{} class weights for {} classes", op.class_weights.size(), op.classes));
        if (op.rows < 1 || (op.rows > 1 && !op.image.empty()))
            throw InputError(fmt::format("a loss of {} rows of an image: labels are of rows or of pixels", op.rows));
        return {1};
    }
    Shape operator()(const SgdUpdate&) const { return {}; }
    Shape operator()(const Bias& op) const {
        if (op.dim < 0 || static_cast<std::size_t>(op.dim) >= op.shape.size()) {
            throw InputError(fmt::format("a bias along dimension {} of {}", op.dim, to_string(op.shape)));
        }
        return op.shape;
    }
    Shape operator()(const Communication& op) const {
        if (op.movement == Movement::halo) {
            const auto along = static_cast<std::size_t>(op.dim);
            if (op.dim < 0 || along >= op.shape.size() || op.shape[along] != op.halo.own || op.halo.size < 1) {
                throw InputError(fmt::format("a halo of dimension {} of {}: {} rows of {}", op.dim, to_string(op.shape),
                                             op.halo.size, op.halo.own));
            }
            Shape shape = op.shape;
            shape[along] = op.halo.size;
            return shape;
        }
        if (op.movement == Movement::all_to_all) return exchanged(op);
        const bool joins = op.movement == Movement::gather || op.movement == Movement::all_gather;
        if (!joins && op.movement != Movement::slice && op.movement != Movement::reduce_scatter) return op.shape;
        const auto dim = static_cast<std::size_t>(op.dim);
        if (op.dim < 0 || dim >= op.shape.size() || op.parts < 1) {
            throw InputError(fmt::format("{} of dimension {} of {} over {} ranks", to_string(op.movement), op.dim,
                                         to_string(op.shape), op.parts));
        }
        Shape shape = op.shape;
        if (joins) {
            shape[dim] *= op.parts;
        } else if (shape[dim] % op.parts != 0) {
            throw InputError(
                fmt::format("dimension {} of {} cannot be cut into {} pieces", op.dim, to_string(op.shape), op.parts));
        } else {
            shape[dim] /= op.parts;
        }
        return shape;
    }
    static Shape exchanged(const Communication& op) {
        const auto dim = static_cast<std::size_t>(op.dim);
        if (op.dim < 0 || dim >= op.shape.size() || op.parts < 1 || op.group < 1 ||
            op.shape[dim] * op.group % op.parts != 0 || op.kept > op.shape[dim] ||
            (op.group > 1 && (dim != 0 || op.kept > 0))) {
            throw InputError(fmt::format("exchange of dimension {} of {} over {} ranks, of which {} are kept", op.dim,
                                         to_string(op.shape), op.parts, op.kept));
        }
        Shape shape = op.shape;
        if (op.kept > 0) shape[dim] = op.kept;
        return shape;
    }
    Shape operator()(const Attention& op) const {
        at_least_one("attention", {op.heads, op.queries, op.keys, op.head_size, key_heads(op), value_size(op)});
        if (op.heads % key_heads(op) != 0) {
            throw InputError(fmt::format("attention: {} heads cannot share {} heads of keys and values evenly",
                                         op.heads, key_heads(op)));
        }
        if (op.packed && op.queries != op.keys) {
            throw InputError(
                fmt::format("attention: packed, so {} keys must be as many as the {} queries", op.keys, op.queries));
        }
        if (op.causal && op.queries > op.keys) {
            throw InputError(fmt::format("attention: causal, so the first of {} queries would see none of {} keys",
                                         op.queries, op.keys));
        }
        return rows_of(op.queries, result_width(op));
    }
    Shape operator()(const LayerNorm& op) const {
        at_least_one("layernorm", {op.rows, op.features});
        return rows_of(op.rows, op.features);
    }
    Shape operator()(const Embedding& op) const {
        at_least_one("embedding", {op.tokens, op.vocabulary, op.width, op.parts});
        if (op.positions != 0 && op.positions < op.tokens) {
            throw InputError(
                fmt::format("embedding: {} tokens need a position each, there are {}", op.tokens, op.positions));
        }
        return rows_of(op.tokens, op.width);
    }
    Shape operator()(const SoftmaxTerms& op) const {
        at_least_one("softmaxterms", {op.rows, op.classes, op.parts});
        return rows_of(op.rows, 3);
    }
    Shape operator()(const TermsLoss& op) const {
        at_least_one("termsloss", {op.rows, op.parts});
        return {1};
    }
    Shape operator()(const EmbeddingBag& op) const {
        at_least_one("embeddingbag", {op.tables, op.lookups, op.vocabulary, op.width, op.samples});
        return rows_of(op.samples * op.tables, op.width);
    }
    Shape operator()(const DispatchTokens& op) const {
        check_routing("dispatch", op.routing);
        return rows_of(op.routing.slots(), op.routing.width);
    }
    Shape operator()(const CombineTokens& op) const {
        check_routing("combine", op.routing);
        return rows_of(op.routing.tokens, op.routing.width);
    }
    static void check_routing(std::string_view what, const Routing& r) {
        at_least_one(what, {r.tokens, r.width, r.experts, r.top, r.capacity, r.group});
        if (r.top > r.experts) {
            throw InputError(fmt::format("{}: a token goes to 1 to {} experts, not {}", what, r.experts, r.top));
        }
        whole_slots(what, r.experts * r.capacity, r.group);
    }
    static void whole_slots(std::string_view what, std::int64_t slots, std::int64_t group) {
        if (slots % group == 0) return;
        throw InputError(fmt::format("{}: {} slots of {} samples are no whole number a sample", what, slots, group));
    }
    Shape operator()(const GroupedMatMul& op) const {
        at_least_one("groupedmatmul", {op.experts, op.rows, op.n, op.k, op.sources, op.group});
        whole_slots("groupedmatmul", op.sources * op.experts * op.rows, op.group);
        return rows_of(Inputs::rows(op), op.n);
    }
    Shape operator()(const Interaction& op) const {
        at_least_one("interaction", {op.vectors - 1, op.width});
        return {op.width + op.vectors * (op.vectors - 1) / 2};
    }
    Shape operator()(const AdamUpdate&) const { return {}; }
    Shape operator()(const LambUpdate& op) const {
        if (op.tensors < 1 || op.tensors > op.count) {
            throw InputError(fmt::format("lamb: {} parameters cannot be {} tensors", op.count, op.tensors));
        }
        return {};
    }
    Shape operator()(const Unknown& op) const { return op.output; }
};

}  // namespace

std::vector<Shape> input_shapes(const Op& op) { return std::visit(Inputs{}, op); }

Shape output_shape(const Op& op) { return std::visit(Output{}, op); }

Shape output_shape(const Op& op, const std::vector<Shape>& inputs) {
    if (!std::holds_alternative<Unknown>(op)) {
        const std::vector<Shape> expected = input_shapes(op);
        if (inputs.size() != expected.size()) {
            throw InputError(fmt::format("{} takes {} inputs, not {}", kind_of(op), expected.size(), inputs.size()));
        }
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (inputs[i] == expected[i]) continue;
            throw InputError(fmt::format("input {} of {} is {}, it was made for {}", i, kind_of(op),
                                         to_string(inputs[i]), to_string(expected[i])));
        }
    }
    return output_shape(op);
}

}  // namespace rehearse
