// SPDX-License-Identifier: Apache-2.0
// Layer normalization (Ba et al. 2016) and RMS normalization (Zhang and Sennrich 2019), spelled out:
//
//   x -- ReduceMean -- Sub --+-- Pow 2 -- ReduceMean -- Add eps -- Sqrt --+
//   |                   |    |                                            Div -- Mul gamma -- Add beta
//   +-------------------+    +--------------------------------------------+
//
// RMS normalization has x where layer normalization has x - mean, and often a Reciprocal and a Mul for the Div.
#include <algorithm>

#include <fmt/format.h>

#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

using Node = const onnx::NodeProto*;

// One value is stretched along dimensions in front.
Shape without_leading_ones(Shape shape) {
    while (!shape.empty() && shape.front() == 1) shape.erase(shape.begin());
    return shape;
}

class Chain {
public:
    explicit Chain(const OnnxGraph& graph) : graph_(graph) {}

    // The only reader of what `node` makes, if it is such an operator.
    Node next(Node node, std::string_view type) const {
        if (node == nullptr || graph_.readers(node->output(0)) != 1 || graph_.readers_of(node->output(0)).size() != 1)
            return nullptr;
        Node reader = graph_.readers_of(node->output(0)).front();
        return reader->op_type() == type ? reader : nullptr;
    }
    // The other operand of a sum or product; -1 where the node does not read `value` exactly once.
    int other(Node node, const std::string& value) const {
        if (node == nullptr || node->input_size() != 2) return -1;
        if ((node->input(0) == value) == (node->input(1) == value)) return -1;
        return node->input(0) == value ? 1 : 0;
    }
    // Sizes of the trailing dimensions that are kept as 1.
    std::optional<Shape> features(Node mean) const {
        const auto dims = graph_.dims(mean->input(0));
        if (!dims || integer(*mean, "keepdims", 1) == 0) return std::nullopt;
        auto axes = list(*mean, "axes");
        if (!axes && mean->input_size() > 1) axes = graph_.numbers(mean->input(1));
        if (!axes || axes->empty()) return std::nullopt;
        const auto rank = static_cast<std::int64_t>(dims->size());
        for (std::int64_t& axis : *axes)
            if (axis < 0) axis += rank;
        std::ranges::sort(*axes);
        for (std::size_t i = 0; i < axes->size(); ++i) {
            const std::int64_t axis = rank - static_cast<std::int64_t>(axes->size() - i);
            if ((*axes)[i] != axis || axis < 1) return std::nullopt;
        }
        return Shape(dims->end() - static_cast<std::ptrdiff_t>(axes->size()), dims->end());
    }

    // From what is squared on: finds the whole, or leaves `patterns` as it was.
    void find(Node square, Patterns& patterns) const {
        const bool pow =
            square->op_type() == "Pow" && square->input_size() == 2 && graph_.scalar(square->input(1)) == 2.0;
        const bool times =
            square->op_type() == "Mul" && square->input_size() == 2 && square->input(0) == square->input(1);
        if ((!pow && !times) || !graph_.activation(square->output(0))) return;
        const std::string& centred = square->input(0);
        Node mean = next(square, "ReduceMean");
        if (mean == nullptr) return;
        const auto size = features(mean);
        Node add = next(mean, "Add");
        const int eps = add == nullptr ? -1 : other(add, mean->output(0));
        if (!size || eps < 0 || !graph_.scalar(add->input(eps))) return;
        Node root = next(add, "Sqrt");
        if (root == nullptr) return;
        std::vector<Node> inside{square, mean, add, root};
        Node last = next(root, "Div");
        if (last != nullptr && last->input(0) != centred && graph_.scalar(last->input(0)) == 1.0) {
            inside.push_back(last);
            last = next(last, "Mul");
        } else if (last == nullptr && next(root, "Reciprocal") != nullptr) {
            inside.push_back(next(root, "Reciprocal"));
            last = next(inside.back(), "Mul");
        }
        if (last == nullptr || last->input_size() != 2 || (last->input(0) != centred && last->input(1) != centred))
            return;
        // Whose mean was taken off?
        std::string source = centred;
        Node minus = graph_.value(centred).maker;
        bool layer = false;
        if (minus != nullptr && minus->op_type() == "Sub" && graph_.readers(centred) == (times ? 3 : 2)) {
            Node first = graph_.value(minus->input(1)).maker;
            layer = first != nullptr && first->op_type() == "ReduceMean" && first->input(0) == minus->input(0) &&
                    features(first) == size && graph_.readers(minus->input(1)) == 1;
            if (layer) {
                source = minus->input(0);
                inside.insert(inside.end(), {minus, first});
            }
        }
        take(last, inside, source, *size, layer, graph_.scalar(add->input(eps)).value(), patterns);
    }

private:
    // The weights of one value a feature that a following operator brings, as the file has them or moved; empty where
    // it is another operator. What is computed of weights stays one for who runs it.
    std::string scale(Node after, const std::string& value, const Shape& features) const {
        const int at = other(after, value);
        if (at < 0) return "";
        const Value& weights = graph_.value(after->input(at));
        if (weights.weights.empty() || !weights.dims || (weights.computed && graph_.keeps_values())) return "";
        return without_leading_ones(*weights.dims) == without_leading_ones(features) ? after->input(at) : "";
    }

    void take(Node last, std::vector<Node> inside, const std::string& source, const Shape& features, bool centred,
              double epsilon, Patterns& patterns) const {
        const std::int64_t size = elements(features);
        std::string gamma, beta;
        if (Node after = next(last, "Mul")) {
            gamma = scale(after, last->output(0), features);
            if (!gamma.empty()) inside.push_back(std::exchange(last, after));
        }
        if (Node after = gamma.empty() ? nullptr : next(last, "Add")) {
            beta = scale(after, last->output(0), features);
            if (!beta.empty()) inside.push_back(std::exchange(last, after));
        }
        for (Node node : inside) patterns.inside.insert(node);
        const double stored = std::stod(fmt::format("{}", static_cast<float>(epsilon)));
        patterns.at[last] = [last, source, size, gamma, beta, centred, stored](Import& import) {
            const Shape shape = import.sample(*last, source);
            std::vector<std::string> tensors;
            for (const std::string& value : {gamma, beta}) {
                const std::vector<std::string> behind = import.tensors_of(value);
                tensors.insert(tensors.end(), behind.begin(), behind.end());
            }
            const std::int64_t sets = elements(shape) / size;
            const Shape rows = sets == 1 ? Shape{size} : Shape{sets, size};
            const int from = import.layer_of(*last, source, rows);
            Op op = Normalization{rows, sets, gamma.empty() ? 0 : size, beta.empty() ? 0 : size, 1, centred, stored};
            if (centred && !gamma.empty() && !beta.empty() && stored == 1e-5) op = LayerNorm{sets, size};
            import.begin_as(import.put(*last, std::move(op), {from}, std::move(tensors)), {gamma, beta});
        };
    }

    const OnnxGraph& graph_;
};

}  // namespace

void find_normalizations(const OnnxGraph& graph, Patterns& patterns) {
    const Chain chain{graph};
    for (Node node : graph.nodes()) chain.find(node, patterns);
}

}  // namespace rehearse::models
