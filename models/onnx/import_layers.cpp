// SPDX-License-Identifier: Apache-2.0
// Layers of an import under way: where values lie and how they are seen, whose weights they are, what they are called.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "core/once.hpp"
#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

// "/layer1/layer1.0/conv1/Conv" as "layer1.0.conv1": modules that say their parent's name again, and the operator where
// the module does not say what it is.
std::string module_path(const std::string& name, const std::string& op_type) {
    if (name.find('/') == std::string::npos) return name;
    std::vector<std::string> parts;
    std::string part;
    for (const char c : name + "/") {
        if (c != '/') {
            part += c;
            continue;
        }
        if (part.empty()) continue;
        if (!parts.empty() && part.starts_with(parts.back() + ".")) parts.pop_back();
        parts.push_back(std::exchange(part, {}));
    }
    if (parts.size() > 1 && parts.back().starts_with(op_type)) {
        const auto lower = [](std::string text) {
            std::ranges::transform(text, text.begin(),
                                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            return text;
        };
        if (lower(parts[parts.size() - 2]).find(lower(op_type)) != std::string::npos) parts.pop_back();
    }
    std::string path;
    for (const std::string& each : parts) path += (path.empty() ? "" : ".") + each;
    return path;
}

}  // namespace

void Import::mixed(const onnx::NodeProto& node, const std::string& what) const {
    try {
        graph.fail(node, what);
    } catch (const InputError& error) {
        throw MixedSamples(error.what());
    }
}

Shape Import::sample(const onnx::NodeProto& node, const std::string& value) const {
    const auto found = graph.sample(value);
    if (const auto brought_in = places.find(value); graph.constant(value) && brought_in != places.end()) {
        const Shape& lies = builder.shape(brought_in->second.layer);
        const bool seen_anew = !brought_in->second.via.empty() && found && elements(*found) == elements(lies);
        return seen_anew ? *found : lies;
    }
    if (!found) graph.fail(node, fmt::format("the shape of '{}' cannot be inferred", value));
    return *found;
}

int Import::layer_of(const onnx::NodeProto& node, const std::string& value, const Shape& shape) {
    auto found = places.find(value);
    if (found == places.end() && graph.side(value)) {
        feed(node, value);
        found = places.find(value);
    }
    if (found == places.end() && losses.contains(value)) {
        put_losses(*this, value);
        found = places.find(value);
    }
    if (found == places.end() && graph.constant(value)) {
        bring(node, value);
        found = places.find(value);
    }
    if (found == places.end()) graph.fail(node, fmt::format("it reads '{}', which no layer before it makes", value));
    if (found->second.turned) found->second = {straightened(found->second.layer), found->second.via};
    const int layer = found->second.layer;
    const Shape& has = builder.shape(layer);
    if (has == shape) return layer;
    if (elements(has) != elements(shape))
        mixed(node, fmt::format("it reads {} as {}: a network that mixes its samples, or a bug", to_string(has),
                                to_string(shape)));
    // A view of a view is a view of what lies there.
    const Layer& made = builder.at(layer);
    const int base = std::holds_alternative<Flatten>(made.op) ? made.inputs.front() : layer;
    if (builder.shape(base) == shape) return base;
    int& view = views[{base, shape}];
    if (view == 0) {
        onnx::NodeProto named;
        named.set_name(found->second.via.empty() ? builder.at(base).name + ".view" : found->second.via);
        view =
            builder.layer(name_for(named), Flatten{builder.shape(base), shape.size() == 1 ? Shape{} : shape}, {base});
    }
    return view;
}

namespace {

Shape swapped(Shape shape) {
    std::swap(shape[0], shape[1]);
    return shape;
}

int put_swapped(Import& import, int from, std::string_view what) {
    const Shape shape = import.builder.shape(from);
    std::vector<std::int64_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[1]);
    onnx::NodeProto named;
    named.set_name(fmt::format("{}.{}", import.builder.at(from).name, what));
    return import.builder.layer(import.name_for(named), Rearrangement{"transpose", {shape}, swapped(shape), order},
                                {from});
}

}  // namespace

int Import::straightened(int volume) {
    const auto [found, made] = straight.try_emplace(volume, 0);
    if (!made) return found->second;
    const int layer = put_swapped(*this, volume, "images");
    straight[volume] = layer;
    volumes[layer] = volume;
    return layer;
}

bool Import::turned(const onnx::NodeProto& node, int input) const {
    const auto found = places.find(node.input(input));
    return found != places.end() && found->second.turned;
}

int Import::volume_of(const onnx::NodeProto& node, int input) {
    if (turned(node, input)) return places.at(node.input(input)).layer;
    const int from = source(node, input);
    const auto [found, made] = volumes.try_emplace(from, 0);
    if (made) volumes[from] = put_swapped(*this, from, "volume");
    return volumes[from];
}

int Import::source(const onnx::NodeProto& node, int input) {
    if (input >= node.input_size()) graph.fail(node, fmt::format("it has no input {}", input));
    if (graph.constant(node.input(input))) bring(node, node.input(input));
    return layer_of(node, node.input(input), sample(node, node.input(input)));
}

int Import::source(const onnx::NodeProto& node, int input, const Shape& shape) {
    if (input >= node.input_size()) graph.fail(node, fmt::format("it has no input {}", input));
    return layer_of(node, node.input(input), shape);
}

// Whether the one reader of a product adds the bias that the dense layer `owner` has.
bool Import::adds_bias_of(const onnx::NodeProto& node, int owner) {
    const auto* theirs = std::get_if<MatMul>(&builder.at(owner).op);
    if (theirs == nullptr || !theirs->bias || node.op_type() != "MatMul" || graph.readers(node.output(0)) != 1)
        return false;
    const auto& readers = graph.readers_of(node.output(0));
    if (readers.size() != 1 || readers.front()->op_type() != "Add") return false;
    return std::ranges::any_of(readers.front()->input(), [&](const std::string& input) {
        const auto& behind = graph.value(input).weights;
        const auto found = behind.empty() ? owners.end() : owners.find(behind.front());
        return input != node.output(0) && found != owners.end() && found->second == owner;
    });
}

bool Import::is_made_once(int layer) {
    const auto [found, fresh] = once.try_emplace(layer, false);
    if (fresh) once[layer] = made_once(builder.at(layer), [this](int input) { return is_made_once(input); });
    return once[layer];
}

// PyTorch multiplies it as often as there are samples; what it computes of weights alone it makes once.
void Import::repeat_for_each(const onnx::NodeProto& node, const Op& op, std::vector<int>& inputs) {
    const bool constant = node.output_size() == 0 || graph.value(node.output(0)).kind != Value::Kind::activation;
    if (constant || inputs.empty() || multiply_adds(op) == 0) return;
    if (!std::ranges::all_of(inputs, [this](int input) { return is_made_once(input); })) return;
    const Shape shape = builder.shape(inputs.front());
    onnx::NodeProto named;
    named.set_name(builder.at(inputs.front()).name + ".copies");
    inputs.front() = builder.layer(name_for(named), Elementwise{"copy", shape, {shape}}, {inputs.front()});
}

int Import::put(const onnx::NodeProto& node, Op op, std::vector<int> inputs, std::vector<std::string> tensors,
                int output) {
    int owner = -1;
    bool all = !tensors.empty();
    const std::string name = name_for(node, tensors);
    std::vector<std::string> own;
    for (const std::string& tensor : tensors)
        if (!graph.uniform(tensor)) own.push_back(tensor);
    all = !own.empty();
    for (const std::string& tensor : own) {
        const auto found = owners.find(tensor);
        const int of = found == owners.end() ? -1 : found->second;
        all = all && of >= 0 && (owner < 0 || owner == of);
        if (of >= 0) owner = of;
    }
    bool shared = false;
    std::string trained_elsewhere;
    if (owner >= 0) {
        const std::vector<WeightTensor> theirs = rehearse::weights(builder.at(owner).op);
        auto* dense = std::get_if<MatMul>(&op);
        if (all && dense != nullptr && adds_bias_of(node, owner)) dense->bias = true;
        if (all && theirs == rehearse::weights(op)) {
            op = Shared{std::make_shared<const SharedOp>(SharedOp{std::move(op)})};
            shared = true;
        } else if (all && dense != nullptr && !dense->bias && !theirs.empty() &&
                   theirs.front().shape == Shape{dense->n, dense->k}) {
            dense->tied = shared = true;
        } else if (const auto* picks = std::get_if<Gather>(&op); picks != nullptr && picks->trained && all) {
            trained_elsewhere = tensors.front();
            op = Elementwise{"copy", Shape{picks->output}, {}, {}, {Shape{picks->table}}};
        } else if (auto* each = std::get_if<Elementwise>(&op)) {
            for (std::size_t i = tensors.size(); i-- > 0;) {
                if (!owners.contains(tensors[i]) || graph.uniform(tensors[i]) || i >= each->weights.size()) continue;
                trained_elsewhere = tensors[i];
                each->constants.push_back(each->weights[i]);
                each->weights.erase(each->weights.begin() + static_cast<std::ptrdiff_t>(i));
            }
        } else {
            ++notes["some weights are used by several layers in different ways: they are counted once a layer"];
        }
    }
    int layer = 0;
    try {
        static_cast<void>(output_shape(op));  // which checks its sizes, before anything counts them
        repeat_for_each(node, op, inputs);
        layer = builder.layer(name, std::move(op), std::move(inputs));
    } catch (const InputError& error) {
        graph.fail(node, error.what());
    }
    if (shared) builder.at(layer).weights_of = owner;
    if (!trained_elsewhere.empty())
        not_run(layer, fmt::format("its weights '{}' are another layer's, too, in another form", trained_elsewhere));
    if (!shared && !tensors.empty())
        for (const std::string& tensor : tensors) starts[layer].push_back({tensor});
    for (const std::string& tensor : own) owners.emplace(tensor, layer);
    const auto expected = graph.sample(node.output(output));
    if (expected && elements(*expected) != elements(builder.shape(layer)))
        mixed(node, fmt::format("it should make {}, we make {}: a bug, or a network that mixes its samples",
                                to_string(*expected), to_string(builder.shape(layer))));
    if (!node.output(output).empty()) places[node.output(output)] = {layer, ""};
    return layer;
}

void Import::alias(const onnx::NodeProto& node, const std::string& value, const std::string& from) {
    const auto found = places.find(from);
    if (found == places.end()) {
        layer_of(node, from, sample(node, from));
        alias(node, value, from);
        return;
    }
    if (found->second.turned && graph.sample(value) != graph.sample(from))
        found->second = {straightened(found->second.layer), found->second.via};
    places[value] = {found->second.layer, node.name().empty() ? value : module_path(node.name(), node.op_type()),
                     found->second.turned};
}

std::string Import::name_for(const onnx::NodeProto& node, const std::vector<std::string>& tensors) {
    std::string name = node.name().empty() ? node.output_size() > 0 ? node.output(0) : "layer"
                                           : module_path(node.name(), node.op_type());
    constexpr std::string_view weight = ".weight";
    if (!tensors.empty() && tensors.front().ends_with(weight) && !tensors.front().starts_with("onnx::"))
        name = tensors.front().substr(0, tensors.front().size() - weight.size());
    // Weights that an export for inference has turned or folded lost their names: those of the module are the node's.
    const std::size_t scope = node.name().rfind('/');
    if (!tensors.empty() && tensors.front().starts_with("onnx::") && multiplies(node) && scope != std::string::npos &&
        scope > 0)
        name = module_path(node.name().substr(0, scope), node.op_type());
    for (char& c : name)
        if (c == ':' || c == ',' || static_cast<unsigned char>(c) <= ' ') c = '_';  // a step is "layer:pass"
    const int before = names[name]++;
    return before == 0 && name != "input" && name != "loss" ? name : fmt::format("{}#{}", name, before + 1);
}

}  // namespace rehearse::models
