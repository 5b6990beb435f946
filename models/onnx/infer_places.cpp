// SPDX-License-Identifier: Apache-2.0
// Which element of its initializer each element of a weight is that was moved on the way to its reader.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "models/onnx/infer.hpp"
#include "models/onnx/infer_walk.hpp"

namespace rehearse::models {
namespace {

using Places = std::vector<std::int32_t>;

bool keeps_order(const onnx::NodeProto& node) {
    return is_one_of(node.op_type(), {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast"});
}

bool in_order(const Places& places) {
    for (std::size_t i = 0; i < places.size(); ++i)
        if (places[i] != static_cast<std::int32_t>(i)) return false;
    return true;
}

}  // namespace

std::vector<std::int32_t> places_along(const Value& from, const Shape& shape, const Sizes& steps) {
    Places places(static_cast<std::size_t>(elements(shape)));
    std::int32_t* const to = places.data();
    if (from.places) {
        const std::int32_t* const before = from.places->data();
        walk<1>(shape, {steps}, {}, [to, before](std::size_t i, const auto& at) { to[i] = before[at[0]]; });
    } else {
        walk<1>(shape, {steps}, {}, [to](std::size_t i, const auto& at) { to[i] = static_cast<std::int32_t>(at[0]); });
    }
    return places;
}

bool moves_alone(const onnx::NodeProto& node) {
    return keeps_order(node) ||
           is_one_of(node.op_type(), {"Transpose", "Slice", "Gather", "Expand", "Concat", "Split", "Tile"});
}

// The places of what a node makes that takes one value of weights, whose places are put where its numbers would be.
std::optional<Places> Inference::places_moved(const onnx::NodeProto& node, int output, Value& from,
                                              const Shape& shape) const {
    if (node.op_type() == "Transpose") return places_along(from, shape, steps_of_transpose(node, *from.dims));
    std::vector<double> numbers(static_cast<std::size_t>(elements(*from.dims)));
    std::iota(numbers.begin(), numbers.end(), 0);
    if (from.places) numbers.assign(from.places->begin(), from.places->end());
    const Data kept = std::exchange(from.data, std::make_shared<const std::vector<double>>(std::move(numbers)));
    const Data places = values(node, shape, output);
    from.data = kept;
    if (!places || places->size() != static_cast<std::size_t>(elements(shape))) return std::nullopt;
    return Places(places->begin(), places->end());
}

// Moves the numbers of the initializer's elements as the node moves the elements.
void Inference::follow(const onnx::NodeProto& node, int output, Value& value) {
    if (!moves_alone(node)) return;
    Value* from = nullptr;
    for (const std::string& input : node.input()) {
        const auto found = graph_.values_.find(input);
        if (found == graph_.values_.end() || found->second.weights.empty()) continue;
        if (from != nullptr) return;
        from = &found->second;
    }
    const std::int64_t whole = elements(graph_.dims(value.weights.front()).value_or(Shape{}));
    if (from == nullptr || !from->moved || !from->dims || whole > std::numeric_limits<std::int32_t>::max()) return;
    const Data& stored = graph_.value(value.weights.front()).data;
    // A few bytes of a file claim any size: weights without values are followed as far as its nodes make them likely.
    constexpr std::int64_t most_without_values = 1 << 26, most_together = 1 << 25, most_a_node = 1 << 21;
    if (whole > most_without_values && !stored) return;
    if (elements(*value.dims) > std::max(whole, most_without_values)) return;  // picked again and again
    if (keeps_order(node)) {
        value.moved = true, value.places = from->places;
        if (!value.places) value.data = stored;
        return;
    }
    if (!stored) followed_ += elements(*value.dims);
    const auto nodes = static_cast<std::int64_t>(graph_.written_.size());
    if (!stored && followed_ > std::max(most_together, nodes * most_a_node)) return;
    auto places = places_moved(node, output, *from, *value.dims);
    if (!places) return;
    value.moved = true;
    if (static_cast<std::int64_t>(places->size()) == whole && in_order(*places)) {
        value.data = stored;
    } else {
        value.places = std::make_shared<const Places>(std::move(*places));
    }
}

}  // namespace rehearse::models
