// SPDX-License-Identifier: Apache-2.0
// What a file does not say of its tensors and PyTorch's exporter shows in other ways: which of them nobody trains, and
// which of those that hold the same are one.
#include <algorithm>
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

// From 1 down by one factor: how often each pair of a row turns, as of rotary embeddings and of time steps.
bool frequencies(const std::vector<double>& values) {
    if (values.size() < 4 || values.front() != 1 || !(values[1] > 0 && values[1] < 1)) return false;
    for (std::size_t i = 1; i < values.size(); ++i)
        if (!(std::abs(values[i] / values[i - 1] / values[1] - 1) <= close)) return false;
    return true;
}

bool turns(const Value& value) {
    if (!value.dims || value.dims->empty() || !value.data || value.data->empty()) return false;
    if (!std::ranges::all_of(*value.data, [](double each) { return std::abs(each) <= 1 + close; })) return false;
    // Sizes of 1 in front are there for samples and heads.
    Shape dims = *value.dims;
    std::erase(dims, 1);
    if (dims.size() == 1) return frequencies(*value.data);
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

// Statistics are made by training alone; before operator set 14 they are further outputs.
bool trains(const onnx::NodeProto& node) {
    const bool statistics = node.op_type() == "BatchNormalization" && node.output_size() > 1;
    return integer(node, "training_mode", 0) != 0 || node.op_type() == "Dropout" || statistics;
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
           beside(".0._v", ".original") || turns(value);
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
