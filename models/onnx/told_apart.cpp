// SPDX-License-Identifier: Apache-2.0
// What a file does not say of its tensors and PyTorch's exporter shows in other ways: which of them nobody trains, and
// which of those that hold the same are one.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "models/onnx/graph.hpp"

namespace rehearse::models {
namespace {

constexpr double close = 1e-4;

bool near(double a, double b) { return std::abs(a - b) <= close; }

// Numbers from -1 to 1 whose squares add up to 1 in pairs, beside each other or half a row apart: sines and cosines.
bool pairs_of_angles(const std::vector<double>& values, std::size_t row) {
    if (row < 4 || row % 2 != 0) return false;
    const auto all = [&](std::size_t step, std::size_t apart) {
        for (std::size_t first = 0; first < values.size(); first += row) {
            for (std::size_t i = 0; i < row / 2; ++i) {
                const double a = values[first + i * step], b = values[first + i * step + apart];
                if (!near(a * a + b * b, 1)) return false;
            }
        }
        return true;
    };
    return all(2, 1) || all(1, row / 2);
}

// Rows of sines, or of cosines, of multiples of some angles: the first of 0, so that by those of the second the third
// is known (of the double angle).
bool multiples_of_angles(const std::vector<double>& values, std::size_t row) {
    if (row < 2 || values.size() < 3 * row) return false;
    bool sines = true, cosines = true;
    for (std::size_t i = 0; i < row; ++i) {
        const double zero = values[i], one = values[row + i], two = values[2 * row + i];
        cosines = cosines && near(zero, 1) && near(two, 2 * one * one - 1);
        sines = sines && near(zero, 0) && near(two * two, 4 * one * one * (1 - one * one));
    }
    const auto second = values.begin() + static_cast<std::ptrdiff_t>(row);
    const bool all_same = std::all_of(second, second + static_cast<std::ptrdiff_t>(row),
                                      [&](double each) { return near(each, values.front()); });
    return (sines || cosines) && !all_same;
}

constexpr std::size_t fewest = 4;  // numbers that show a rule

// By one factor each: how often each pair of a row turns in rotary embeddings, steps of frequency and of time.
bool geometric(const std::vector<double>& values) {
    if (values.size() < fewest || values[0] == 0 || values[1] == 0 || values[0] == values[1]) return false;
    for (std::size_t i = 1; i < values.size(); ++i)
        if (!(std::abs(values[i] / values[i - 1] / (values[1] / values[0]) - 1) <= close)) return false;
    return true;
}

// By one distance each: places, the centres of radial functions.
bool arithmetic(const std::vector<double>& values) {
    if (values.size() < fewest || values[0] == values[1]) return false;
    const double step = values[1] - values[0];
    for (std::size_t i = 1; i < values.size(); ++i)
        if (!(std::abs(values[i] - values[i - 1] - step) <= close * std::abs(step))) return false;
    return true;
}

// Whether a value's numbers are as many as its sizes say, one at least.
bool is_filled(const Value& value) {
    if (!value.data || !value.dims || value.data->empty()) return false;
    std::size_t count = 1;
    for (const std::int64_t size : *value.dims) {
        if (size < 1 || static_cast<std::size_t>(size) > value.data->size() / count) return false;
        count *= static_cast<std::size_t>(size);
    }
    return count == value.data->size();
}

// Two rows and more of the same places, as the knots of splines (Liu et al. 2024, KAN).
bool same_places(const std::vector<double>& values, const Shape& dims) {
    const auto row = static_cast<std::size_t>(dims.empty() ? 0 : dims.back());
    if (row < fewest || values.size() < 2 * row || !arithmetic({values.begin(), values.begin() + dims.back()}))
        return false;
    for (std::size_t i = row; i < values.size(); ++i)
        if (values[i] != values[i - row]) return false;
    return true;
}

// One number but for rounding: the distances of places, which no network begins with.
bool distances(const std::vector<double>& values) {
    if (values.size() < fewest) return false;
    const auto [least, most] = std::ranges::minmax(values);
    return least < most && least > 0 && most - least <= close * least;
}

// Whether a comparison reads a tensor, or a part of it: that has no slope.
// NOLINTNEXTLINE(misc-no-recursion): no deeper than `steps`
bool is_compared(const onnx::GraphProto& graph, const std::string& name, int steps = 3) {
    constexpr std::array moves{"Slice", "Unsqueeze", "Identity", "Gather", "Reshape"};
    return std::ranges::any_of(graph.node(), [&](const onnx::NodeProto& node) {
        if (std::ranges::find(node.input(), name) == node.input().end()) return false;
        const std::string& type = node.op_type();
        if (type.starts_with("Greater") || type.starts_with("Less")) return true;
        const bool moved = std::ranges::find(moves, type) != moves.end() && node.output_size() > 0;
        return moved && steps > 0 && is_compared(graph, node.output(0), steps - 1);
    });
}

// Whole numbers, 2 and more among them, that differ.
bool whole(const std::vector<double>& values) {
    if (values.size() < fewest) return false;
    const auto [least, most] = std::ranges::minmax(values);
    return most >= 2 && least < most &&
           std::ranges::all_of(values, [](double each) { return each == std::round(each); });
}

// Nothing but 0 and one other number, which is 1 or hides in a softmax.
bool hides_or_lets_through(const std::vector<double>& values) {
    constexpr double hides = -100;
    const auto other = std::ranges::find_if(values, [](double each) { return each != 0; });
    if (values.size() < fewest || other == values.end() || (*other != 1 && !(*other <= hides))) return false;
    const auto zeros = std::ranges::count(values, 0.0), others = std::ranges::count(values, *other);
    return zeros > 0 && zeros + others == static_cast<std::ptrdiff_t>(values.size());
}

// Points of a lattice, `numbers` of each: every combination of values once, so that there are few along each axis (Swin
// v2's logarithms of distances, too).
// A number that all points have alike (the 1 of homogeneous coordinates) is none of the axes.
bool lattice(const std::vector<double>& values, std::size_t points, std::size_t numbers, bool points_first) {
    if (points < fewest * fewest || numbers < 2 || numbers > fewest) return false;
    std::size_t combinations = 1, axes = 0;
    for (std::size_t n = 0; n < numbers; ++n) {
        std::vector<double> along;
        for (std::size_t p = 0; p < points; ++p)
            along.push_back(values[points_first ? p * numbers + n : n * points + p]);
        std::ranges::sort(along);
        along.erase(std::unique(along.begin(), along.end(), near), along.end());
        if (along.size() == 1) continue;
        if (along.size() < fewest || points % along.size() != 0) return false;
        combinations *= along.size();
        ++axes;
    }
    return axes >= 2 && combinations == points;
}

// The same of a value of the graph: each point a row, or each number an image.
bool lattice(const Value& value) {
    Shape dims = *value.dims;
    std::erase(dims, 1);
    if (dims.size() < 2) return false;
    const auto count = value.data->size();
    const auto first = static_cast<std::size_t>(dims.front()), last = static_cast<std::size_t>(dims.back());
    return lattice(*value.data, count / last, last, true) || lattice(*value.data, count / first, first, false);
}

bool turns(const Value& value) {
    if (!value.dims || value.dims->empty() || !value.data || value.data->empty()) return false;
    // Sizes of 1 in front are there for samples and heads.
    Shape dims = *value.dims;
    std::erase(dims, 1);
    if (dims.size() == 1 && geometric(*value.data)) return true;
    if (!std::ranges::all_of(*value.data, [](double each) { return std::abs(each) <= 1 + close; })) return false;
    if (dims.size() < 2) return false;
    const auto row = static_cast<std::size_t>(dims.back());
    return pairs_of_angles(*value.data, row) || multiples_of_angles(*value.data, row);
}

std::string scope_of(const onnx::NodeProto& node) { return node.name().substr(0, node.name().rfind('/') + 1); }

// "/g_1/" of "/g/": a module that is called again, as PyTorch 1.13 and later name its nodes.
bool is_again(std::string again, std::string first) {
    if (first.size() < 2 || again.size() <= first.size()) return false;
    first.pop_back(), again.pop_back();
    if (!again.starts_with(first + "_")) return false;
    return std::ranges::all_of(again.substr(first.size() + 1), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

// Dropout alone is no proof: torchvision's Swin has it in inference, too. There products' weights are folded: they have
// no names.
bool OnnxGraph::folds_weights() const {
    return std::ranges::any_of(model_.graph().initializer(), [](const auto& tensor) {
        return tensor.name().starts_with("onnx::") && tensor.dims_size() > 1 && floating(tensor.data_type());
    });
}

// Statistics are made by training alone; before operator set 14 they are further outputs.
bool trains(const onnx::NodeProto& node) {
    const bool statistics = node.op_type() == "BatchNormalization" && node.output_size() > 1;
    return integer(node, "training_mode", 0) != 0 || node.op_type() == "Dropout" || statistics;
}

// Masks, places, sizes of anchors. Weights can begin so, too, as the bias of a gate that forgets little: what products,
// recurrent layers and norms read is no table, nor what is called a weight or bias. PyTorch alone is known to begin
// with numbers that are not whole.
bool OnnxGraph::is_ruled(const std::string& name, const Value& value) const {
    constexpr std::array readers{"Mul",      "Add",       "Sub",     "Where",          "Slice",      "Gather",
                                 "Div",      "Unsqueeze", "Reshape", "Expand",         "Equal",      "Squeeze",
                                 "Identity", "Greater",   "Less",    "GreaterOrEqual", "LessOrEqual"};
    if (model_.producer_name() != "pytorch" || !value.data || !value.dims || name.ends_with("bias") ||
        name.ends_with("weight"))
        return false;
    const bool line = std::ranges::count_if(*value.dims, [](std::int64_t size) { return size != 1; }) == 1;
    // Rows of the same places can be trained, too (S4D's angles, Gu et al. 2022): not where they are compared, or were
    // computed for an export.
    const bool computed = name.starts_with("onnx::");
    const bool knots =
        (computed && distances(*value.data)) ||
        (is_filled(value) && same_places(*value.data, *value.dims) && (computed || is_compared(model_.graph(), name)));
    if (!hides_or_lets_through(*value.data) && !whole(*value.data) && !(line && arithmetic(*value.data)) && !knots)
        return false;
    return std::ranges::all_of(model_.graph().node(), [&](const auto& node) {
        return std::ranges::find(node.input(), name) == node.input().end() ||
               std::ranges::find(readers, node.op_type()) != readers.end();
    });
}

// Vectors of spectral_norm (Miyato et al. 2018), by the names that PyTorch gives them, and tables of sines.
bool OnnxGraph::is_buffer(const std::string& name, const Value& value) const {
    const auto beside = [&](std::string_view own, std::string_view trained) {
        if (!name.ends_with(own)) return false;
        const std::string other = name.substr(0, name.size() - own.size()) + std::string{trained};
        return std::ranges::any_of(model_.graph().initializer(),
                                   [&](const auto& tensor) { return tensor.name() == other; });
    };
    return beside("_u", "_orig") || beside("_v", "_orig") || beside(".0._u", ".original") ||
           beside(".0._v", ".original") || turns(value) || is_ruled(name, value) ||
           (model_.producer_name() == "pytorch" && is_filled(value) && lattice(value));
}

// PyTorch's export for inference stores tensors that hold the same once, and says by an Identity that there is another:
// a layer that is an untrained copy, or the same tensor in another place. It is the same one where it has lost its
// name and its values are no constant's, or where the module is called again.
bool OnnxGraph::is_copy(const onnx::NodeProto& identity) const {
    const std::string &from = identity.input(0), &to = identity.output(0);
    constexpr std::string_view nameless = "onnx::";
    const Value& value = this->value(from);
    const bool constant = value.data && !value.data->empty() &&
                          std::ranges::all_of(*value.data, [&](double each) { return each == value.data->front(); });
    if (to.starts_with(nameless) && !from.starts_with(nameless) && !constant) return false;
    if (!to.starts_with(nameless)) return true;
    const auto scopes = [&](const std::string& tensor) {
        std::vector<std::string> found;
        for (const auto& node : model_.graph().node())
            if (&node != &identity && std::ranges::find(node.input(), tensor) != node.input().end())
                found.push_back(scope_of(node));
        return found;
    };
    const std::vector<std::string> first = scopes(from), again = scopes(to);
    return again.empty() || !std::ranges::all_of(again, [&](const std::string& each) {
               return std::ranges::any_of(first, [&](const std::string& other) { return is_again(each, other); });
           });
}

// Where copies have an Identity each, a tensor that several read is one.
bool OnnxGraph::tells_copies() const {
    return std::ranges::any_of(model_.graph().node(), [](const auto& node) {
        return node.op_type() != "Identity" && node.name().starts_with('/');
    });
}

}  // namespace rehearse::models
