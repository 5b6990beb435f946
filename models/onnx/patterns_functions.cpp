// SPDX-License-Identifier: Apache-2.0
// Functions of one value that exporters spell out in several operators: GELU (three spellings), SiLU, HardSwish, Mish.
//
//   x --+-- Div -- Erf -- Add --+
//       |                       Mul -- Mul -- y        one operator: y = GELU(x)
//       +-----------------------+
//
// A set of elementwise nodes with one input and constants is one function of it; which, its values at some points say.
// So every spelling is found, whatever the order of its factors.
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

using Known = double (*)(double);
struct Function {
    std::string_view name;
    Known value;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
constexpr double sqrt_2_over_pi = 0.7978845608028654;
const std::array known{
    Function{"gelu", [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }},
    Function{"gelutanh",
             [](double x) { return 0.5 * x * (1 + std::tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x))); }},
    Function{"silu", [](double x) { return x * sigmoid(x); }},
    Function{"quickgelu", [](double x) { return x * sigmoid(1.702 * x); }},
    Function{"hardswish", [](double x) { return x * std::fmin(std::fmax(x + 3, 0.0), 6.0) / 6; }},
    Function{"hardsigmoid", [](double x) { return std::fmin(std::fmax(x + 3, 0.0), 6.0) / 6; }},
    Function{"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
};

// Far out, too: a bound behind a function (the clamp of transformers' gelu_10) is a part of what is computed.
constexpr std::array points{-1e6, -1e3, -30.0, -4.5, -2.75, -1.5, -0.6, -0.1, 0.0,
                            0.2,  0.7,  1.3,   2.4,  3.7,   5.0,  30.0, 1e3,  1e6};
constexpr int most_steps = 12;  // nodes of a function: the tanh form of GELU has 8 to 10

// The value of a node, given those of its inputs; nothing for operators that are no such functions.
std::optional<double> value_of(const onnx::NodeProto& node, const std::vector<double>& in) {
    const std::string& type = node.op_type();
    if (in.size() == 2) {
        if (type == "Add") return in[0] + in[1];
        if (type == "Sub") return in[0] - in[1];
        if (type == "Mul") return in[0] * in[1];
        if (type == "Div") return in[0] / in[1];
        if (type == "Pow") return std::pow(in[0], in[1]);
    }
    if (in.empty()) return std::nullopt;
    const double x = in[0];
    if (type == "Erf") return std::erf(x);
    if (type == "Tanh") return std::tanh(x);
    if (type == "Sigmoid") return sigmoid(x);
    if (type == "Exp") return std::exp(x);
    if (type == "Neg") return -x;
    if (type == "Softplus") return std::log1p(std::exp(x));
    if (type == "Relu") return std::fmax(x, 0.0);
    if (type == "HardSigmoid")
        return std::fmin(std::fmax(number(node, "alpha", 0.2) * x + number(node, "beta", 0.5), 0.0), 1.0);
    if (type == "Clip") {
        const double low = in.size() > 1 ? in[1] : number(node, "min", -1e30),
                     high = in.size() > 2 ? in[2] : number(node, "max", 1e30);
        return std::fmin(std::fmax(x, low), high);
    }
    return std::nullopt;
}

bool computable(const onnx::NodeProto& node) {
    return node.output_size() == 1 && (node.domain().empty() || node.domain() == "ai.onnx") &&
           value_of(node, std::vector<double>(static_cast<std::size_t>(node.input_size()), 1.0)).has_value();
}

class Finder {
public:
    explicit Finder(const OnnxGraph& graph) : graph_(graph) {
        int i = 0;
        for (const onnx::NodeProto* node : graph.nodes()) order_[node] = i++;
    }

    void find(const onnx::NodeProto& last, Patterns& patterns) {
        if (!computable(last) || patterns.at.contains(&last) || patterns.inside.contains(&last) ||
            !graph_.activation(last.output(0)))
            return;
        std::set<const onnx::NodeProto*> region{&last};
        std::set<std::string> open;
        if (!extend(last, open)) return;
        for (int i = 0; i < most_steps && !open.empty(); ++i) {
            const std::string_view name = open.size() == 1 && region.size() > 1 ? function_of(last, *open.begin()) : "";
            if (!name.empty() && graph_.dims(*open.begin()) == graph_.dims(last.output(0)))
                return take(last, region, *open.begin(), name, patterns);
            const onnx::NodeProto* next = nullptr;  // the latest: those that read it are in the region then
            for (const std::string& value : open) {
                const onnx::NodeProto* maker = graph_.value(value).maker;
                if (maker != nullptr && (next == nullptr || order_[maker] > order_[next])) next = maker;
            }
            if (next == nullptr || !computable(*next) || patterns.at.contains(next) || patterns.inside.contains(next))
                return;
            for (const onnx::NodeProto* reader : graph_.readers_of(next->output(0)))
                if (!region.contains(reader)) return;
            if (graph_.readers(next->output(0)) > static_cast<int>(graph_.readers_of(next->output(0)).size())) return;
            region.insert(next);
            open.erase(next->output(0));
            if (!extend(*next, open)) return;
        }
    }

private:
    static constexpr int most_evaluated = 1000;  // nodes: a damaged file's node may read what it makes

    bool extend(const onnx::NodeProto& node, std::set<std::string>& open) const {
        for (const std::string& input : node.input()) {
            if (input.empty()) continue;
            if (graph_.activation(input)) {
                open.insert(input);
            } else if (!graph_.scalar(input)) {
                return false;
            }
        }
        return true;
    }

    // NOLINTNEXTLINE(misc-no-recursion): as deep as the region
    double evaluate(const std::string& value, const std::string& input, double x, int& left) const {
        if (value == input) return x;
        if (const auto number = graph_.scalar(value)) return *number;
        const onnx::NodeProto* const node = graph_.value(value).maker;
        if (node == nullptr || --left < 0) return std::nan("");  // another input: no function of one
        std::vector<double> operands;
        for (const std::string& each : node->input())
            if (!each.empty()) operands.push_back(evaluate(each, input, x, left));
        return value_of(*node, operands).value_or(0);
    }

    std::string_view function_of(const onnx::NodeProto& last, const std::string& input) const {
        for (const Function& function : known) {
            bool same = true;
            for (const double x : points) {  // constants of files are f32
                int left = most_evaluated;
                const double made = evaluate(last.output(0), input, x, left);
                const double right = function.value(x);
                same = same && std::abs(made - right) < 1e-5 * (1 + std::abs(right));
            }
            if (same) return function.name;
        }
        return "";
    }

    static void take(const onnx::NodeProto& last, const std::set<const onnx::NodeProto*>& region,
                     const std::string& input, std::string_view name, Patterns& patterns) {
        for (const onnx::NodeProto* node : region)
            if (node != &last) patterns.inside.insert(node);
        patterns.at[&last] = [&last, input, name](Import& import) {
            const int from = import.layer_of(last, input, import.sample(last, input));
            const Shape shape = import.builder.shape(from);
            Elementwise function{std::string{name}, shape, {shape}};
            if (name == "hardsigmoid") function.numbers = hardsigmoid_numbers;
            Op op = std::move(function);
            if (name == "gelu") op = Activation{Nonlinearity::gelu, shape};
            import.put(last, std::move(op), {from});
        };
    }

    const OnnxGraph& graph_;
    std::unordered_map<const onnx::NodeProto*, int> order_;
};

}  // namespace

void find_functions(const OnnxGraph& graph, Patterns& patterns) {
    Finder finder{graph};
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) finder.find(**node, patterns);
}

}  // namespace rehearse::models
