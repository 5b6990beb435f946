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

bool keeps_order(const onnx::NodeProto& node) {
    return is_one_of(node.op_type(), {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast"});
}

std::vector<std::int32_t> walked(const Shape& shape, const Sizes& steps) {
    std::vector<std::int32_t> places(static_cast<std::size_t>(elements(shape)));
    std::int32_t* const to = places.data();
    walk<1>(shape, {steps}, {}, [to](std::size_t i, const auto& at) { to[i] = static_cast<std::int32_t>(at[0]); });
    return places;
}

}  // namespace

Places::Places(std::vector<std::int32_t> all) : shape_{std::ssize(all)}, all_(std::move(all)) {}

Places::Places(Shape shape, Sizes steps) : shape_(std::move(shape)), steps_(std::move(steps)) {
    if (steps_.empty()) all_.push_back(0);
}

std::int64_t Places::size() const { return elements(shape_); }

const std::vector<std::int32_t>& Places::all() const {
    if (all_.empty() && !steps_.empty()) all_ = walked(shape_, steps_);
    return all_;
}

bool Places::in_order() const {
    if (steps_.empty()) {
        for (std::size_t i = 0; i < all_.size(); ++i)
            if (all_[i] != static_cast<std::int32_t>(i)) return false;
        return true;
    }
    const Sizes strides = strides_of(shape_);
    for (std::size_t i = 0; i < shape_.size(); ++i)
        if (shape_[i] > 1 && steps_[i] != strides[i]) return false;
    return true;
}

bool Places::each_once() const {
    if (!steps_.empty() || all_.empty()) return true;
    std::vector<bool> taken(static_cast<std::size_t>(std::ranges::max(all_)) + 1);
    return std::ranges::all_of(all_, [&](std::int32_t place) {
        const auto at = static_cast<std::size_t>(place);
        return !taken[at] && (taken[at] = true);
    });
}

std::optional<Sizes> Places::steps(const Shape& of) const {
    return steps_.empty() || shape_ != of ? std::nullopt : std::optional(steps_);
}

std::vector<std::int32_t> places_along(const Value& from, const Shape& shape, const Sizes& steps) {
    std::vector<std::int32_t> places = walked(shape, steps);
    if (!from.places) return places;
    const std::vector<std::int32_t>& before = from.places->all();
    for (std::int32_t& each : places) each = before[static_cast<std::size_t>(each)];
    return places;
}

bool moves_alone(const onnx::NodeProto& node) {
    return keeps_order(node) ||
           is_one_of(node.op_type(), {"Transpose", "Slice", "Gather", "Expand", "Concat", "Split", "Tile"});
}

// The places of what a node makes that takes one value of weights, whose places are put where its numbers would be.
std::optional<Places> Inference::places_moved(const onnx::NodeProto& node, int output, Value& from,
                                              const Shape& shape) const {
    if (node.op_type() == "Transpose") {
        const auto turned = from.places ? from.places->steps(*from.dims) : strides_of(*from.dims);
        if (turned) return Places(shape, steps_of_transpose(node, *turned));
        return Places(places_along(from, shape, steps_of_transpose(node, strides_of(*from.dims))));
    }
    std::vector<double> numbers(static_cast<std::size_t>(elements(*from.dims)));
    std::iota(numbers.begin(), numbers.end(), 0);
    if (from.places) numbers.assign(from.places->all().begin(), from.places->all().end());
    const Data kept = std::exchange(from.data, std::make_shared<const std::vector<double>>(std::move(numbers)));
    const Data places = values(node, shape, output);
    from.data = kept;
    if (!places || places->size() != static_cast<std::size_t>(elements(shape))) return std::nullopt;
    return Places({places->begin(), places->end()});
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
    if (places->size() == whole && places->in_order()) {
        value.data = stored;
    } else {
        value.places = std::make_shared<const Places>(std::move(*places));
    }
}

}  // namespace rehearse::models
