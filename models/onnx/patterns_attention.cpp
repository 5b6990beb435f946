// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention (Vaswani et al. 2017, equation 1) as PyTorch's exporter spells it:
//
//   q {L, h d} -- Reshape, Transpose, (Mul) --+
//   k {M, h d} -- Reshape, Transpose, (Mul) -- MatMul -- (Div) -- (Add or Where: a causal mask) -- Softmax -- MatMul --
//   v {M, h d} -- Reshape, Transpose ---------------------------------------------------------------------+   |
//                                                                     out {L, h d} -- Reshape, Transpose ----------+
// What it cannot say (masks of data, biases of positions, shared keys) stays in the general form.
#include <algorithm>
#include <array>

#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

using Node = const onnx::NodeProto*;

class Finder {
public:
    explicit Finder(const OnnxGraph& graph) : graph_(graph) {}

    void find(Node softmax, Patterns& patterns) {
        if (softmax->op_type() != "Softmax") return;
        inside_.clear();
        const auto& dims = graph_.value(softmax->input(0)).dims;
        if (!dims || dims->size() < 3 || !along_last(softmax, dims->size())) return;
        if (patterns.at.contains(softmax) || patterns.inside.contains(softmax)) return;
        queries_ = (*dims)[dims->size() - 2], keys_ = dims->back();
        causal_ = false;
        Node scores = products_before(softmax->input(0));
        if (scores == nullptr) return;
        Node values = softmax;
        inside_.push_back(softmax);
        bool dropped = false;
        values = only_reader(values);
        if (values != nullptr && values->op_type() == "Dropout") {
            dropped = true;
            inside_.push_back(values);
            values = only_reader(values);
        }
        if (values == nullptr || values->op_type() != "MatMul" ||
            graph_.value(values->input(0)).maker != inside_.back())
            return;
        inside_.push_back(values);
        const auto& made = graph_.value(values->output(0)).dims;
        if (!made || !graph_.sample(values->output(0))) return;
        size_ = made->back();
        heads_ = elements(*graph_.sample(values->output(0))) / std::max<std::int64_t>(1, queries_ * size_);
        const auto& left = graph_.value(scores->input(0)).dims;
        if (!left || left->back() != size_ || heads_ < 1) return;
        const std::array sources{trace(scores->input(0), queries_), trace(scores->input(1), keys_),
                                 trace(values->input(1), keys_)};
        for (const std::string& source : sources)
            if (source.empty()) return;
        Node last = forward(values);
        if (last == nullptr) return;
        for (Node node : inside_)
            if (patterns.at.contains(node) || patterns.inside.contains(node)) return;
        take(last, sources, dropped, patterns);
    }

private:
    static bool along_last(Node softmax, std::size_t rank) {
        const std::int64_t axis = integer(*softmax, "axis", -1);
        return axis == -1 || axis == static_cast<std::int64_t>(rank) - 1;
    }

    Node only_reader(Node node) const {
        const auto& readers = graph_.readers_of(node->output(0));
        return graph_.readers(node->output(0)) == 1 && readers.size() == 1 ? readers.front() : nullptr;
    }

    // The product behind what softmax reads, past a scale and a causal mask.
    Node products_before(std::string value) {
        for (int i = 0; i < 5; ++i) {
            Node node = graph_.value(value).maker;
            if (node == nullptr || graph_.readers(value) != 1 || !graph_.activation(value)) return nullptr;
            inside_.push_back(node);
            const std::string& type = node->op_type();
            if (type == "MatMul")
                return graph_.activation(node->input(0)) && graph_.activation(node->input(1)) ? node : nullptr;
            if (type == "Cast") {
                value = node->input(0);
                continue;
            }
            if (type == "Where" && node->input_size() == 3) {
                const bool yes = graph_.activation(node->input(1));
                if (!causal(node->input(0), yes ? Hides::zero : Hides::other)) return nullptr;
                value = node->input(yes ? 1 : 2);
                continue;
            }
            if (node->input_size() != 2) return nullptr;
            const int at = graph_.activation(node->input(0)) ? 0 : 1;
            if (graph_.activation(node->input(1 - at))) return nullptr;
            if (type == "Add" ? !causal(node->input(1 - at), Hides::low)
                              : (type != "Div" && type != "Mul") || !graph_.scalar(node->input(1 - at)))
                return nullptr;
            value = node->input(at);
        }
        return nullptr;
    }

    enum class Hides { zero, other, low };
    // A constant {..., queries, keys} that hides what comes after each query, and nothing else.
    bool causal(const std::string& mask, Hides hides) {
        const Value& value = graph_.value(mask);
        if (value.kind != Value::Kind::constant || !value.data || !value.dims || value.dims->size() < 2) return false;
        const std::int64_t columns = value.dims->back(), rows = (*value.dims)[value.dims->size() - 2];
        if (columns != keys_ || rows != queries_) return false;
        for (std::size_t i = 0; i < value.data->size(); ++i) {
            const auto at = static_cast<std::int64_t>(i);
            const double one = (*value.data)[i];
            const bool hidden = hides == Hides::zero ? one == 0 : hides == Hides::other ? one != 0 : one < -1e3;
            if (hides == Hides::low && !hidden && one != 0) return false;
            if (hidden != (at % columns > at / columns % rows + keys_ - queries_)) return false;
        }
        causal_ = true;
        return true;
    }

    // Back past what only moves or scales, to rows of `rows` x heads * size; empty where it does not come from there.
    std::string trace(std::string value, std::int64_t rows) {
        std::vector<Node> passed;
        for (int i = 0; i < 8; ++i) {
            const auto sample = graph_.sample(value);
            if (!passed.empty() && sample && sample->size() <= 2 && sample->front() == rows &&
                elements(*sample) == rows * heads_ * size_) {
                inside_.insert(inside_.end(), passed.begin(), passed.end());
                return value;
            }
            Node node = graph_.value(value).maker;
            if (node == nullptr || graph_.readers(value) != 1) return "";
            const std::string& type = node->op_type();
            const bool moves = type == "Transpose" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze";
            const bool scales =
                (type == "Mul" || type == "Div") && node->input_size() == 2 && graph_.scalar(node->input(1));
            if (!moves && !scales) return "";
            passed.push_back(node);
            value = node->input(0);
        }
        return "";
    }

    Node forward(Node node) {
        for (int i = 0; i < 4; ++i) {
            const auto sample = graph_.sample(node->output(0));
            if (sample && sample->size() == 2 && *sample == Shape{queries_, heads_ * size_}) return node;
            if (queries_ == 1 && sample == Shape{heads_ * size_}) return node;
            Node after = only_reader(node);
            if (after == nullptr || (after->op_type() != "Transpose" && after->op_type() != "Reshape")) return nullptr;
            inside_.push_back(after);
            node = after;
        }
        return nullptr;
    }

    void take(Node last, const std::array<std::string, 3>& sources, bool dropped, Patterns& patterns) {
        for (Node node : inside_)
            if (node != last) patterns.inside.insert(node);
        // Three pieces of one dense layer's rows are attention over them as they lie.
        std::string packed;
        Node cut = graph_.value(sources[0]).maker;
        if (cut != nullptr && cut->op_type() == "Split" && cut->output_size() == 3 && queries_ == keys_ &&
            queries_ > 1) {
            bool all = true;
            for (int i = 0; i < 3; ++i)
                all = all && cut->output(i) == sources[static_cast<std::size_t>(i)] &&
                      graph_.readers(cut->output(i)) == 1;
            const auto sample = graph_.sample(cut->input(0));
            if (all && sample == Shape{queries_, 3 * heads_ * size_}) packed = cut->input(0);
        }
        if (!packed.empty()) patterns.inside.insert(cut);
        const Attention op{heads_, queries_, keys_, size_, causal_, !packed.empty()};
        patterns.at[last] = [last, op, sources, packed, dropped](Import& import) {
            if (dropped) ++import.notes["dropout of attention's probabilities is left out"];
            std::vector<int> layers;
            const auto read = [&](const std::string& value, std::int64_t rows, std::int64_t width) {
                layers.push_back(import.layer_of(*last, value, rows == 1 ? Shape{width} : Shape{rows, width}));
            };
            const std::int64_t width = op.heads * op.head_size;
            if (packed.empty()) {
                read(sources[0], op.queries, width);
                read(sources[1], op.keys, width);
                read(sources[2], op.keys, width);
            } else {
                read(packed, op.queries, 3 * width);
            }
            import.put(*last, op, layers);
        };
    }

    const OnnxGraph& graph_;
    std::vector<Node> inside_;
    std::int64_t queries_ = 0, keys_ = 0, heads_ = 0, size_ = 0;
    bool causal_ = false;
};

}  // namespace

void find_attention(const OnnxGraph& graph, Patterns& patterns) {
    Finder finder{graph};
    for (Node node : graph.nodes()) finder.find(node, patterns);
}

}  // namespace rehearse::models
