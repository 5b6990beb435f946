// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn/describe_attention.hpp"

#include "core/error.hpp"

namespace rehearse::kernels::cudnn {
namespace {

class Builder {
public:
    Builder(const Attention& op, std::int64_t batch) : op_(op), batch_(batch) {}
    AttentionGraph graph;

    int add(GraphTensor tensor) {
        graph.tensors.push_back(std::move(tensor));
        return static_cast<int>(graph.tensors.size()) - 1;
    }
    /// The rows of one part of every head; `across`: {sample, head, element, row}.
    int rows(Kept kept, bool across = false) {
        const std::int64_t width = op_.heads * op_.head_size;
        const bool of_result = kept == Kept::dst || kept == Kept::diff_dst;
        const bool of_keys = kept == Kept::k || kept == Kept::v || kept == Kept::diff_k || kept == Kept::diff_v;
        const std::int64_t count = of_keys ? op_.keys : op_.queries;
        const std::int64_t row = op_.packed && !of_result ? 3 * width : width;
        Described shape{{batch_, op_.heads, count, op_.head_size}, {count * row, op_.head_size, row, 1}};
        if (across) std::swap(shape.sizes[2], shape.sizes[3]), std::swap(shape.strides[2], shape.strides[3]);
        return add({std::move(shape), Number::element, kept});
    }
    int scalar(Kept kept) { return add({{{1, 1, 1, 1}, {1, 1, 1, 1}}, Number::f32, kept}); }
    int per_query(Kept kept = Kept::nowhere) {
        const std::int64_t head = op_.queries;
        return add({{{batch_, op_.heads, head, 1}, {op_.heads * head, head, 1, 1}}, Number::f32, kept});
    }
    int scores(Number number = Number::f32) {
        const std::int64_t head = op_.queries * op_.keys;
        return add({{{batch_, op_.heads, op_.queries, op_.keys}, {op_.heads * head, head, op_.keys, 1}}, number});
    }
    int run(Action action, int from, int other, int to, int mask = -1) {
        graph.nodes.push_back({action, from, other, mask, to});
        return to;
    }

    /// scale Q K^T, and far below everything what a query does not see.
    int scaled_scores(int q) {
        const int product = run(Action::product, q, rows(Kept::k, true), scores());
        const int scaled = run(Action::times, product, scalar(Kept::scale), scores());
        if (!op_.causal) return scaled;
        const int row = run(Action::row, scaled, -1, scores(Number::index));
        const int column = run(Action::column, scaled, -1, scores(Number::index));
        const int seen = run(Action::at_least, row, column, scores(Number::truth));
        return run(Action::chosen, scaled, scalar(Kept::lowest), scores(), seen);
    }
    /// Scores that are rounded to elements, column by column.
    int turned(int rounded) {
        GraphTensor made = graph.tensors[static_cast<std::size_t>(rounded)];
        std::swap(made.shape.sizes[2], made.shape.sizes[3]);
        std::swap(made.shape.strides[2], made.shape.strides[3]);
        return run(Action::relaid, rounded, -1, add(std::move(made)));
    }
    int in_f32(Kept kept) {
        GraphTensor made = graph.tensors[static_cast<std::size_t>(rows(kept))];
        graph.tensors.pop_back();
        made.number = Number::f32, made.kept = Kept::nowhere;
        return add(std::move(made));
    }

    void forward() {
        const int seen = scaled_scores(rows(Kept::q));
        const int largest = run(Action::largest, seen, -1, per_query());
        const int below = run(Action::minus, seen, largest, scores());
        const int powers = run(Action::exponential, below, -1, scores());
        const int total = run(Action::total, powers, -1, per_query());
        const int logarithm = run(Action::logarithm, total, -1, per_query());
        run(Action::plus, largest, logarithm, per_query(Kept::log_sums));
        const int p = run(Action::over, powers, total, scores(Number::element));
        run(Action::product, p, rows(Kept::v), rows(Kept::dst));
    }
    void backward() {
        const int q = rows(Kept::q), diff = rows(Kept::diff_dst);
        const int products = run(Action::times, diff, rows(Kept::dst), in_f32(Kept::dst));
        const int common = run(Action::total, products, -1, per_query());
        const int below = run(Action::minus, scaled_scores(q), per_query(Kept::log_sums), scores());
        const int p = run(Action::exponential, below, -1, scores());
        const int rounded = run(Action::rounded, p, -1, scores(Number::element));
        run(Action::product, turned(rounded), diff, rows(Kept::diff_v));
        const int diff_p = run(Action::product, diff, rows(Kept::v, true), scores());
        const int apart = run(Action::minus, diff_p, common, scores());
        const int diff_s = run(Action::times, apart, p, scores());
        const int scaled = run(Action::times, diff_s, scalar(Kept::scale), scores(Number::element));
        run(Action::product, scaled, rows(Kept::k), rows(Kept::diff_q));
        run(Action::product, turned(scaled), q, rows(Kept::diff_k));
    }

private:
    const Attention& op_;
    std::int64_t batch_;
};

}  // namespace

AttentionGraph attention_graph(const Attention& op, Pass pass, std::int64_t batch) {
    require(!op.causal || op.keys == op.queries, "as many keys as queries");
    Builder builder{op, batch};
    if (pass == Pass::forward) builder.forward();
    if (pass != Pass::forward) builder.backward();
    return std::move(builder.graph);
}

std::int64_t first_element(const Attention& op, Kept kept) {
    if (!op.packed) return 0;
    const std::int64_t width = op.heads * op.head_size;
    if (kept == Kept::k || kept == Kept::diff_k) return width;
    return kept == Kept::v || kept == Kept::diff_v ? 2 * width : 0;
}

}  // namespace rehearse::kernels::cudnn
