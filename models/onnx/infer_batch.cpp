// SPDX-License-Identifier: Apache-2.0
// Which dimension of a value holds the samples. Where the batch was left open it has a size that nothing else is a
// multiple of; else the dimension is followed from node to node.
#include <algorithm>

#include "models/onnx/infer.hpp"

namespace rehearse::models {

int Inference::batch_of(const onnx::NodeProto& node, int output, const Shape& shape, std::int64_t& lead) const {
    if (graph_.open_batch_) {
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (shape[i] > 0 && shape[i] % graph_.batch_ == 0) return static_cast<int>(i);
        return -1;
    }
    int first = -1;  // the input that the samples come by
    for (int i = 0; i < node.input_size() && first < 0; ++i)
        if (in(node, i).batch >= 0 && in(node, i).kind != Value::Kind::constant) first = i;
    if (first < 0) return -1;
    const Value& from = in(node, first);
    const std::string& type = node.op_type();
    lead = from.lead;
    const int rank = static_cast<int>(shape.size());
    const int rank_in = static_cast<int>(from.dims ? from.dims->size() : shape.size());
    const int batch = from.batch;
    const auto removed = [&](const std::vector<std::int64_t>& axes) {
        if (std::ranges::find(axes, batch) != axes.end()) return -1;
        return batch - static_cast<int>(std::ranges::count_if(axes, [&](std::int64_t axis) { return axis < batch; }));
    };
    int axis = batch;
    if (type == "Reshape" || type == "Flatten") {
        axis = batch_of_reshape(from, shape, lead);
    } else if (type == "Transpose") {
        const auto perm = list(node, "perm");
        axis = -1;
        for (int i = 0; i < rank && (!perm || perm->size() == shape.size()); ++i)
            if ((perm ? static_cast<int>((*perm)[static_cast<std::size_t>(i)]) : rank - 1 - i) == batch) axis = i;
    } else if (type == "Squeeze") {
        auto axes = axes_of(node, 1, static_cast<std::size_t>(rank_in)).value_or(std::vector<std::int64_t>{});
        if (axes.empty())
            for (int i = 0; i < rank_in; ++i)
                if ((*from.dims)[static_cast<std::size_t>(i)] == 1) axes.push_back(i);
        axis = removed(axes);
    } else if (type == "Unsqueeze") {
        auto axes = axes_of(node, 1, shape.size()).value_or(std::vector<std::int64_t>{});
        std::ranges::sort(axes);
        for (const std::int64_t each : axes)
            if (each <= axis) ++axis;
    } else if (type.starts_with("Reduce") || type.starts_with("Arg")) {
        if (rank < rank_in) {
            auto axes = axes_of(node, 1, static_cast<std::size_t>(rank_in)).value_or(std::vector<std::int64_t>{});
            if (type.starts_with("Arg"))
                axes = {static_cast<std::int64_t>(axis_of(node, static_cast<std::size_t>(rank_in), 0).value_or(0))};
            axis = removed(axes);
        }
    } else if (type == "Gather") {
        const auto along =
            static_cast<int>(axis_of(node, in(node, 0).dims ? in(node, 0).dims->size() : 1, 0).value_or(0));
        const int indices = rank - static_cast<int>(in(node, 0).dims ? in(node, 0).dims->size() : 1) + 1;
        axis = first == 1 ? along + batch : batch == along ? -1 : batch < along ? batch : batch + indices - 1;
        // Rows of all samples, one after the other, of which each sample picks as many.
        const bool rows =
            first == 0 && batch == along && from.dims && (*from.dims)[static_cast<std::size_t>(along)] > graph_.batch_;
        if (rows && in(node, 1).batch >= 0) {
            axis = along + in(node, 1).batch;
            lead = in(node, 1).lead;
        }
    } else if (type == "LSTM" || type == "GRU" || type == "RNN") {
        axis = output == 0 ? (integer(node, "layout", 0) == 1 ? 0 : 2) : (integer(node, "layout", 0) == 1 ? 0 : 1);
    } else if (type == "Gemm") {
        axis = 0;
    } else if (type == "MatMul") {
        const bool by_vector = first < 2 && in(node, 1 - first).dims.value_or(Shape{}).size() == 1;
        const int summed = first == 0 ? rank_in - 1 : rank_in - 2;
        axis = by_vector ? batch - (batch > summed ? 1 : 0) : rank - rank_in + batch;
    } else if (type == "Einsum") {
        const auto read = einsum_of(node);
        if (!read || !read->why_not.empty()) return -1;
        const std::size_t at =
            read->made.find(read->terms[static_cast<std::size_t>(first)][static_cast<std::size_t>(batch)]);
        axis = at == std::string::npos ? -1 : static_cast<int>(at);
    } else if (type == "OneHot") {
        const auto beside = axis_of(node, static_cast<std::size_t>(rank_in) + 1, -1).value_or(0);
        axis = batch + (static_cast<int>(beside) <= batch ? 1 : 0);
    } else if (is_one_of(type, {"Col2Im", "AffineGrid", "STFT"})) {
        axis = batch;
    } else if (rank > rank_in) {
        axis = rank - rank_in + batch;  // broadcast, expanded
    }
    return axis >= 0 && axis < rank &&
                   shape[static_cast<std::size_t>(axis)] % std::max<std::int64_t>(1, graph_.batch_) == 0
               ? axis
               : -1;
}

// The dimension in which, in memory, the samples begin: they may be merged with what lies outside of them.
int Inference::batch_of_reshape(const Value& from, const Shape& shape, std::int64_t& lead) const {
    std::int64_t outer = from.lead;
    for (int i = 0; i < from.batch; ++i) outer = elements({outer, (*from.dims)[static_cast<std::size_t>(i)]});
    if (outer <= 0) return -1;
    std::int64_t before = 1;
    for (std::size_t i = 0; i < shape.size() && shape[i] > 0; ++i) {
        const bool one = graph_.batch_ == 1 && before == outer && shape[i] == 1;
        if (one || elements({before, shape[i]}) > outer) {
            if (outer % before != 0 || shape[i] % elements({outer / before, graph_.batch_}) != 0) return -1;
            lead = outer / before;
            return static_cast<int>(i);
        }
        before *= shape[i];
    }
    return -1;
}

}  // namespace rehearse::models
