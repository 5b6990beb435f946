// SPDX-License-Identifier: Apache-2.0
// What each ONNX operator becomes, and the table of them. An operator's form that ours cannot say (another axis, a
// constant where a layer is needed) is unknown, with its reason.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

template <Nonlinearity kind>
std::string activation(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    import.put(node, Activation{kind, import.builder.shape(from)}, {from});
    return "";
}

std::string alias(Import& import, const onnx::NodeProto& node) {
    import.layer_of[node.output(0)] = import.source(node, 0);
    return "";
}

std::string gemm(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape& shape = import.builder.shape(from);
    if (shape.size() != 1 || integer(node, "transA", 0) != 0) return "it is not a dense layer of one vector a sample";
    if (node.input_size() < 2 || !import.graph.constant(node.input(1))) return "it multiplies two activations";
    Shape weights = import.weights(node, 1, 2);
    if (integer(node, "transB", 0) != 0) std::swap(weights[0], weights[1]);
    if (weights[0] != shape[0])
        import.graph.fail(node, fmt::format("weights for {} features cannot read {}", weights[0], shape[0]));
    const bool bias = node.input_size() > 2 && !node.input(2).empty();
    if (bias) {
        const auto dims = import.graph.dims(node.input(2));
        if (!dims || elements(*dims) != weights[1]) return "its third input is not a bias";
    }
    import.put(node, MatMul{.m = 1, .n = weights[1], .k = weights[0], .bias = bias}, {from});
    return "";
}

std::string mat_mul(Import& import, const onnx::NodeProto& node) {
    if (import.graph.constant(node.input(0))) return "it multiplies a constant from the left";
    const int from = import.source(node, 0);
    const Shape& shape = import.builder.shape(from);
    if (node.input_size() < 2 || !import.graph.constant(node.input(1))) return "it multiplies two activations";
    if (shape.size() > 2) return "it multiplies a stack of matrices";
    const Shape weights = import.weights(node, 1, 2);
    if (weights[0] != shape.back())
        import.graph.fail(node, fmt::format("weights for {} features cannot read {}", weights[0], shape.back()));
    const std::int64_t rows = shape.size() == 2 ? shape[0] : 1;
    import.put(node, MatMul{.m = rows, .n = weights[1], .k = weights[0], .bias = false}, {from});
    return "";
}

std::string batch_norm(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const std::size_t rank = import.builder.shape(from).size();
    if (rank != 3 && rank != 4) return "it does not normalize images";
    const Shape shape = image(import, node, from);
    for (int i = 1; i <= 4; ++i)
        if (import.weights(node, i, 1)[0] != shape[0])
            import.graph.fail(node, fmt::format("'{}' has not one value a channel", node.input(i)));
    import.put(
        node,
        BatchNorm{
            .channels = shape[0], .height = shape[rank - 2], .width = shape.back(), .depth = rank == 4 ? shape[1] : 0},
        {from});
    import.builder.add_state(2 * shape[0]);
    return "";
}

std::string lrn(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    if (import.builder.shape(from).size() != 3) return "it does not normalize images";
    const Shape shape = image(import, node, from);
    import.put(node,
               Lrn{shape[0], shape[1], shape[2], integer(node, "size", 5), number(node, "alpha", 1e-4),
                   number(node, "beta", 0.75), number(node, "bias", 1.0)},
               {from});
    return "";
}

// A constant vector behind a convolution or dense layer without bias is its bias, said in two operators.
std::string add_constant(Import& import, const onnx::NodeProto& node, int constant) {
    const int from = import.source(node, 1 - constant);
    const auto dims = import.graph.dims(node.input(constant));
    const Shape& shape = import.builder.shape(from);
    const std::size_t rank = shape.size();
    const bool image = rank >= 3;
    const std::int64_t wide = image ? shape.front() : shape.back();
    // Over the channels of an image the vector must be {c, 1, 1}, over those of a volume {c, 1, 1, 1}, over features
    // {n}.
    const bool fits = dims && elements(*dims) == wide &&
                      (image ? dims->size() >= rank && (*dims)[dims->size() - rank] == wide : dims->back() == wide);
    if (!fits || import.graph.readers(node.input(1 - constant)) > 1 || !import.builder.add_bias(from))
        return "it adds a constant that is not a layer's bias";
    import.layer_of[node.output(0)] = from;
    return "";
}

std::string add(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() == 2)
        for (const int i : {0, 1})
            if (import.graph.constant(node.input(i))) return add_constant(import, node, i);
    std::vector<int> from;
    for (int i = 0; i < node.input_size(); ++i) {
        if (import.graph.constant(node.input(i))) return "it adds a constant";
        from.push_back(import.source(node, i));
        if (import.builder.shape(from.back()) != import.builder.shape(from[0])) return "it adds unequal shapes";
    }
    if (from.empty()) import.graph.fail(node, "it has no inputs");
    const Shape shape = import.builder.shape(from[0]);
    import.put(node, Add{shape, static_cast<std::int64_t>(from.size())}, from);
    return "";
}

std::string concat(Import& import, const onnx::NodeProto& node) {
    Concat op;
    std::vector<int> from;
    std::int64_t rank = 3;
    for (int i = 0; i < node.input_size(); ++i) {
        if (import.graph.constant(node.input(i))) return "it joins a constant";
        from.push_back(import.source(node, i));
        const Shape& shape = import.builder.shape(from.back());
        rank = static_cast<std::int64_t>(shape.size());
        if (rank != 3 && rank != 4) return "it does not join images";
        op.channels.push_back(shape[0]);
        op.depth = rank == 4 ? shape[1] : 0;
        op.height = shape[shape.size() - 2];
        op.width = shape.back();
    }
    const std::int64_t axis = integer(node, "axis", 1);
    if (axis != 1 && axis != -rank) return fmt::format("it joins along axis {}, not along the channels", axis);
    import.put(node, std::move(op), std::move(from));
    return "";
}

std::string dropout(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    double ratio = number(node, "ratio", 0.5);
    if (node.input_size() > 1) ratio = import.graph.scalar(node.input(1)).value_or(0.5);
    if (!(ratio >= 0 && ratio < 1)) import.graph.fail(node, fmt::format("a ratio of {} is impossible", ratio));
    import.put(node, Dropout{import.builder.shape(from), 1 - ratio}, {from});
    return "";
}

std::string reshape(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const auto wanted = import.graph.sample(node.output(0));
    if (!wanted) return "libonnx cannot infer the shape that it makes";
    const Shape& shape = import.builder.shape(from);
    if (*wanted == shape) return alias(import, node);
    if (*wanted != Shape{elements(shape)})
        return fmt::format("it makes {} of {}", to_string(*wanted), to_string(shape));
    import.put(node, Flatten{shape}, {from});
    return "";
}

std::string softmax(Import& import, const onnx::NodeProto& node) {
    int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    const bool modern = import.graph.opset() >= 13;  // before, everything behind the axis was one vector
    const std::int64_t axis = integer(node, "axis", modern ? -1 : 1);
    const auto rank = static_cast<std::int64_t>(shape.size()) + 1;
    const std::string& output = node.output(0);
    const bool last = output == import.graph.output() && import.graph.readers(output) == 1;
    if (last && modern && (axis == 1 || axis == 1 - rank) && rank >= 4) {  // of each pixel's classes
        import.layer_of[output] = from;
        import.ends_in_softmax = true;
        return "";
    }
    const bool whole = (axis == 1 || axis == 1 - rank) && (!modern || elements(shape) == shape[0]);
    if (!whole) return "it is not a softmax over all features of a sample";
    if (!last && (shape.size() != 1 || node.op_type() != "Softmax")) return "it is not the network's last operator";
    if (!last) {
        import.put(node, Softmax{shape[0]}, {from});
        return "";
    }
    if (shape.size() != 1) from = import.builder.flatten(import.name_for(node), from);
    import.layer_of[output] = from;
    import.ends_in_softmax = true;
    return "";
}

struct Entry {
    std::string_view op_type;
    Translate translate;
};
constexpr std::array table{
    Entry{"Add", add},
    Entry{"AveragePool", average_pool},
    Entry{"BatchNormalization", batch_norm},
    Entry{"Concat", concat},
    Entry{"Conv", conv},
    Entry{"ConvTranspose", conv_transpose},
    Entry{"Dropout", dropout},
    Entry{"Flatten", reshape},
    Entry{"Gemm", gemm},
    Entry{"GlobalAveragePool", global_average_pool},
    Entry{"GlobalMaxPool", global_max_pool},
    Entry{"Identity", alias},
    Entry{"LRN", lrn},
    Entry{"LogSoftmax", softmax},
    Entry{"MatMul", mat_mul},
    Entry{"MaxPool", max_pool},
    Entry{"Relu", activation<Nonlinearity::relu>},
    Entry{"Reshape", reshape},
    Entry{"Resize", resize},
    Entry{"Sigmoid", activation<Nonlinearity::sigmoid>},
    Entry{"Softmax", softmax},
    Entry{"Squeeze", reshape},
    Entry{"Sum", add},
    Entry{"Tanh", activation<Nonlinearity::tanh>},
    Entry{"Upsample", resize},
};

}  // namespace

Translate translation(std::string_view op_type) {
    const auto* const found = std::ranges::find(table, op_type, &Entry::op_type);
    return found == table.end() ? nullptr : found->translate;
}

}  // namespace rehearse::models
