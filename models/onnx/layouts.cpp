// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/layouts.hpp"

#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

// The dimension of the samples: {outer, lead, samples, own, inner} elements.
struct Split {
    std::int64_t lead = 1, samples = 1, own = 1, inner = 1;
};

std::optional<Split> split_of(const OnnxGraph& graph, const Value& value) {
    if (!value.dims) return std::nullopt;
    if (value.batch < 0) return Split{};
    const auto axis = static_cast<std::size_t>(value.batch);
    const std::int64_t both = value.lead * graph.batch();
    if (axis >= value.dims->size() || both < 1 || (*value.dims)[axis] % both != 0) return std::nullopt;
    return Split{value.lead, graph.batch(), (*value.dims)[axis] / both,
                 elements(Shape(value.dims->begin() + value.batch + 1, value.dims->end()))};
}

// The element of all samples that an element of the first one is.
std::int64_t of_all(const Split& split, std::int64_t element) {
    const std::int64_t line = split.own * split.inner;
    return element / line * split.samples * line + element % line;
}

// And back; nothing of another sample's.
std::optional<std::int64_t> of_first(const Split& split, std::int64_t element) {
    const std::int64_t line = split.own * split.inner;
    if (line < 1 || element / line % split.samples != 0) return std::nullopt;
    return element / line / split.samples * line + element % line;
}

// The element of a node's input that element `element` of its output is; nothing where sizes are not known.
std::optional<std::int64_t> before(const OnnxGraph& graph, const onnx::NodeProto& node, std::int64_t element) {
    const std::string& type = node.op_type();
    if (!is_one_of(type, {"Transpose", "Expand", "Tile"})) return element;
    const auto from = graph.dims(node.input(0)), to = graph.dims(node.output(0));
    if (!from || !to || from->size() != to->size()) return std::nullopt;
    const std::size_t rank = to->size();
    auto perm = list(node, "perm").value_or(std::vector<std::int64_t>{});
    for (std::size_t i = perm.size(); i < rank; ++i)
        perm.push_back(static_cast<std::int64_t>(type == "Transpose" ? rank - 1 - i : i));
    std::vector<std::int64_t> strides(rank, 1);
    for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * (*from)[i];
    std::int64_t place = 0;
    for (std::size_t i = rank; i-- > 0; element /= (*to)[i]) {
        const auto axis = static_cast<std::size_t>(perm[i]);
        if (axis >= rank || (*to)[i] < 1 || (*from)[axis] < 1) return std::nullopt;
        place += element % (*to)[i] % (*from)[axis] * strides[axis];
    }
    return place;
}

}  // namespace

bool lay_out(const OnnxGraph& graph, const Moves& moves, std::int64_t count,
             const std::function<std::int64_t(std::int64_t)>& to,
             const std::function<std::int64_t(std::int64_t)>& from) {
    constexpr std::int64_t most = 4096, step = 1'000'003;  // a prime: all of few elements, some of many
    const auto made = split_of(graph, graph.value(moves.to)), read = split_of(graph, graph.value(moves.from));
    if (!made || !read) return false;
    for (std::int64_t k = 0; k < std::min(count, most); ++k) {
        const std::int64_t i = count <= most ? k : k * step % count;
        std::optional<std::int64_t> element = of_all(*made, to(i));
        for (std::size_t n = 0; n < moves.nodes.size() && element; ++n)
            element = before(graph, *moves.nodes[n], *element);
        if (element) element = of_first(*read, *element);
        if (element != from(i)) return false;
    }
    return true;
}

}  // namespace rehearse::models
