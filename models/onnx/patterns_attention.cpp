// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention (Vaswani et al. 2017, equation 1) as PyTorch's exporter spells it:
//
//   q {L, h d} -- Reshape, Transpose, (Mul) --+
//   k {M, h d} -- Reshape, Transpose, (Mul) -- MatMul -- (Div) -- (Add or Where: a causal mask) -- Softmax -- MatMul --
//   v {M, h d} -- Reshape, Transpose ---------------------------------------------------------------------+   |
//                                                                     out {L, h d} -- Reshape, Transpose ----------+
// Of keys that several heads share (grouped queries: Ainslie et al. 2023), also
//
//   k {M, g d} -- Reshape, Transpose, Unsqueeze, Expand or Tile {g, h / g, M, d}, Reshape {h, M, d} -- MatMul
//
// or, of one head, a product that broadcasts it. Rotary embeddings of queries and keys (patterns_rotary.cpp) become
// layers before the attention. What it cannot say (masks of data, biases of positions) stays in the general form.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/onnx/importer.hpp"
#include "models/onnx/layouts.hpp"
#include "models/onnx/patterns_rotary.hpp"

namespace rehearse::models {
namespace {

using Node = const onnx::NodeProto*;

// Where rows of heads come from, whether they were turned on the way, and how many heads they hold.
struct Source {
    std::string value;
    std::optional<Rotary> turned{};
    std::int64_t heads = 0;
};

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
        scale_ = 1;
        Node scores = products_before(softmax->input(0));
        if (scores == nullptr) return;
        Node values = softmax;
        inside_.push_back(softmax);
        bool dropped = false;
        values = only_reader(values);
        while (values != nullptr && (values->op_type() == "Dropout" || values->op_type() == "Cast")) {
            dropped = dropped || values->op_type() == "Dropout";
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
        Source queries = trace(scores->input(0), queries_, false), keys = trace(scores->input(1), keys_, true);
        const double of_scores = std::exchange(scale_, 1);
        const std::array sources{std::move(queries), std::move(keys), trace(values->input(1), keys_, false)};
        value_scale_ = std::exchange(scale_, of_scores);
        for (const Source& source : sources)
            if (source.value.empty()) return;
        if (sources[0].heads != heads_ || sources[1].heads != sources[2].heads || sources[2].turned) return;
        if (heads_ % sources[1].heads != 0) return;
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
        const auto readers = computing_readers(graph_, node->output(0));
        return readers && readers->size() == 1 ? readers->front() : nullptr;
    }

    // The product behind what softmax reads, past a scale and a causal mask.
    Node products_before(std::string value) {
        for (int i = 0; i < 5; ++i) {
            Node node = graph_.value(value).maker;
            const auto readers = computing_readers(graph_, value);
            if (node == nullptr || !readers || readers->size() != 1 || !graph_.activation(value)) return nullptr;
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
            if (type == "Add" ? !causal(node->input(1 - at), Hides::low) : !scales(*node, at)) return nullptr;
            value = node->input(at);
        }
        return nullptr;
    }

    // A product with a number, or a quotient by one; operand `at` is what it scales.
    bool scales(const onnx::NodeProto& node, int at) {
        if (node.input_size() != 2) return false;
        const auto number = graph_.scalar(node.input(1 - at));
        const bool divides = node.op_type() == "Div" && at == 0;
        if (!number || *number == 0 || (node.op_type() != "Mul" && !divides)) return false;
        scale_ *= divides ? 1 / *number : *number;
        return true;
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

    // Back past what only moves, scales or turns, to rows of `rows` x heads * size; empty where it does not come from
    // there, or its heads lie otherwise in these rows. Heads that are repeated for those of the queries count once.
    // `turned`: the product reads {heads, size, rows}.
    Source trace(std::string value, std::int64_t rows, bool turned) {
        std::vector<Node> passed;
        Moves way{.to = value, .from = value};
        Source source;
        const auto operand = graph_.sample(value);
        if (!operand) return {};
        std::int64_t numbers = elements(*operand);
        for (int i = 0; i < 12; ++i) {
            const auto sample = graph_.sample(value);
            way.from = value;
            if (!passed.empty() && sample && sample->size() <= 2 && sample->front() == rows &&
                elements(*sample) == numbers && numbers % (rows * size_) == 0 &&
                heads_in_rows(way, elements(*operand), numbers, rows, turned)) {
                inside_.insert(inside_.end(), passed.begin(), passed.end());
                source.value = value;
                source.heads = numbers / (rows * size_);
                return source;
            }
            Node node = graph_.value(value).maker;
            if (node == nullptr || !read_inside(value, source, passed)) return {};
            const std::string& type = node->op_type();
            if (type == "Add" && !source.turned) {
                source.turned = rotary_at(graph_, *node);
                if (!source.turned) return {};
                passed.insert(passed.end(), source.turned->nodes.begin(), source.turned->nodes.end());
                value = source.turned->from;
                continue;
            }
            const bool moves = type == "Transpose" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze";
            const bool repeated = type == "Expand" || type == "Tile";
            const std::int64_t times = repeated ? repeats(*node) : 1;
            if ((!moves && !repeated && !scales(*node, 0)) || times < 1) return {};
            numbers /= times;
            passed.push_back(node);
            way.nodes.push_back(node);
            value = node->input(0);
        }
        return {};
    }

    // Whether `count` numbers {heads, rows, size} of a product are `numbers` of rows in which each head's numbers lie
    // side by side, one head after the other.
    bool heads_in_rows(const Moves& way, std::int64_t count, std::int64_t numbers, std::int64_t rows,
                       bool turned) const {
        const std::int64_t width = numbers / rows, times = count / numbers, size = size_;
        return lay_out(
            graph_, way, count,
            [=](std::int64_t i) {
                const std::int64_t head = i / (rows * size), row = i / size % rows, in_head = i % size;
                return turned ? (head * size + in_head) * rows + row : i;
            },
            [=](std::int64_t i) { return i / size % rows * width + i / (rows * size) / times * size + i % size; });
    }

    // Only by one node, or by those that turn it.
    bool read_inside(const std::string& value, const Source& source, const std::vector<Node>& passed) const {
        const auto readers = computing_readers(graph_, value);
        if (!readers) return false;
        if (readers->size() == 1) return true;
        return source.turned && source.turned->from == value && std::ranges::all_of(*readers, [&](Node reader) {
                   return std::ranges::find(passed, reader) != passed.end();
               });
    }

    // {..., g, 1, M, d} -> {..., g, n, M, d}: n; 0 where it is expanded otherwise.
    std::int64_t repeats(const onnx::NodeProto& node) const {
        const auto from = graph_.dims(node.input(0)), to = graph_.dims(node.output(0));
        if (!from || !to || from->size() != to->size() || to->size() < 4) return 0;
        const std::size_t at = to->size() - 3;
        for (std::size_t i = 0; i < to->size(); ++i)
            if (i != at && (*from)[i] != (*to)[i]) return 0;
        return (*from)[at] == 1 ? (*to)[at] : (*from)[at] == (*to)[at] ? 1 : 0;
    }

    // The node behind `values` that makes rows of heads side by side of what these make.
    Node forward(Node values) {
        Moves way{.to = "", .from = values->output(0)};
        Node node = values;
        for (int i = 0; i < 4; ++i) {
            way.to = node->output(0);
            const auto sample = graph_.sample(way.to);
            const std::int64_t width = heads_ * size_, rows = queries_, size = size_;
            const bool flat = sample == Shape{rows, width} || (rows == 1 && sample == Shape{width});
            if (flat &&
                lay_out(
                    graph_, way, rows * width, [](std::int64_t at) { return at; },
                    [=](std::int64_t at) { return (at % width / size * rows + at / width) * size + at % size; }))
                return node;
            Node after = only_reader(node);
            if (after == nullptr || (after->op_type() != "Transpose" && after->op_type() != "Reshape")) return nullptr;
            inside_.push_back(after);
            way.nodes.insert(way.nodes.begin(), after);
            node = after;
        }
        return nullptr;
    }

    // Three pieces of one dense layer's rows are attention over them as they lie.
    Node packed_by(const std::array<Source, 3>& sources) const {
        Node cut = graph_.value(sources[0].value).maker;
        if (cut == nullptr || cut->op_type() != "Split" || cut->output_size() != 3 || queries_ != keys_ ||
            queries_ <= 1 || sources[0].turned || sources[1].turned || sources[1].heads != heads_)
            return nullptr;
        for (int i = 0; i < 3; ++i) {
            if (cut->output(i) != sources[static_cast<std::size_t>(i)].value || graph_.readers(cut->output(i)) != 1)
                return nullptr;
        }
        return graph_.sample(cut->input(0)) == Shape{queries_, 3 * heads_ * size_} ? cut : nullptr;
    }

    void take(Node last, const std::array<Source, 3>& sources, bool dropped, Patterns& patterns) {
        for (Node node : inside_)
            if (node != last) patterns.inside.insert(node);
        // Ours are divided by sqrt(size); what the file multiplies by besides goes onto queries and values.
        const std::array<double, 3> factors{scale_ * std::sqrt(static_cast<double>(size_)), 1, value_scale_};
        const auto plain = [](double factor) { return std::abs(factor - 1) < 1e-5; };
        Node cut = std::ranges::all_of(factors, plain) ? packed_by(sources) : nullptr;
        if (cut != nullptr) patterns.inside.insert(cut);
        Attention op{heads_, queries_, keys_, size_, causal_, cut != nullptr};
        if (sources[1].heads != heads_) op.key_heads = sources[1].heads;
        patterns.at[last] = [last, op, sources, cut, dropped, factors, plain](Import& import) {
            if (dropped) ++import.notes["dropout of attention's probabilities is left out"];
            std::vector<int> layers;
            const auto read = [&](const std::string& value, std::int64_t rows, std::int64_t width) {
                layers.push_back(import.layer_of(*last, value, rows == 1 ? Shape{width} : Shape{rows, width}));
            };
            if (cut != nullptr) {
                read(cut->input(0), op.queries, 3 * query_width(op));
            } else {
                const std::array<std::int64_t, 3> rows{op.queries, op.keys, op.keys};
                const std::array<std::int64_t, 3> widths{query_width(op), key_width(op), value_width(op)};
                for (std::size_t i = 0; i < sources.size(); ++i) {
                    read(sources[i].value, rows[i], widths[i]);
                    if (sources[i].turned) layers.back() = put_rotary(import, *sources[i].turned, layers.back());
                    if (plain(factors[i])) continue;
                    const Shape shape = import.builder.shape(layers.back());
                    onnx::NodeProto named;
                    named.set_name(sources[i].value + ".scale");
                    Elementwise scaled{"mul", shape, {shape}};
                    scaled.numbers = {factors[i]};
                    layers.back() = import.builder.layer(import.name_for(named), scaled, {layers.back()});
                }
            }
            import.put(*last, op, layers);
        };
    }

    const OnnxGraph& graph_;
    std::vector<Node> inside_;
    std::int64_t queries_ = 0, keys_ = 0, heads_ = 0, size_ = 0;
    bool causal_ = false;
    double scale_ = 1, value_scale_ = 1;  // that numbers in the graph multiply scores and values by
};

}  // namespace

void find_attention(const OnnxGraph& graph, Patterns& patterns) {
    Finder finder{graph};
    for (Node node : graph.nodes()) finder.find(node, patterns);
}

}  // namespace rehearse::models
