// SPDX-License-Identifier: Apache-2.0
// Networks and machines by name, file or text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/frameworks.hpp"
#include "models/fuse.hpp"
#include "models/models.hpp"
#include "python/bindings.hpp"
#include "schedule/remarks.hpp"

namespace rehearse::python {

namespace {

Network load(const std::filesystem::path& name_or_file, const std::string& fuse, bool allow_unknown, bool unfold,
             const std::map<std::string, std::int64_t>& sizes) {
    const models::Fusions fusions = models::parse_fusions(fuse);
    const py::gil_scoped_release unlocked;
    return models::fuse(models::load_network(name_or_file.string(), {allow_unknown, unfold, sizes}), fusions);
}

py::dict described(const Network& network, const Layer& layer) {
    py::list inputs;
    for (const int input : layer.inputs) inputs.append(network.layers[static_cast<std::size_t>(input)].name);
    py::dict row;
    row["name"] = layer.name;
    row["operator"] = to_string(layer.op);
    row["inputs"] = inputs;
    if (layer.weights_of >= 0) row["weights_of"] = network.layers[static_cast<std::size_t>(layer.weights_of)].name;
    row["shape"] = py::tuple(py::cast(layer.output));
    row["parameters"] = layer.weights_of >= 0 ? 0 : parameters(layer.op);
    row["forward_flops"] = flops(layer.op, Pass::forward, 1).value;
    return row;
}

int layer_called(const Network& network, const std::string& name, const std::string& reader) {
    const std::optional<int> found = find_layer(network, name);
    if (!found) throw InputError("layer '" + reader + "': there is no layer '" + name + "' before it");
    return *found;
}

/// "conv2d:c3h32w32k6r5s5:pad0:stride1" as an operator: a problem without batch, type and pass.
Op operator_of(const std::string& text, const std::string& name) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string rest = text.substr(std::min(colon + 1, text.size()));
    const bool lettered = !rest.empty() && rest[0] >= 'a' && rest[0] <= 'z';
    try {
        return parse_problem(text.substr(0, colon) + ":n1" + (lettered ? "" : ":") + rest + ":f32:forward").op;
    } catch (const InputError& error) {
        throw InputError("layer '" + name + "': operator '" + text + "': " + error.what());
    }
}

/// What a layer of `from_layers` may say. The last three follow from the others, and are there as `described` gives
/// them.
constexpr std::array<std::string_view, 7> layer_keys{"name",  "operator",   "inputs",       "weights_of",
                                                     "shape", "parameters", "forward_flops"};

/// A value of a layer's dict; InputError where it is not `wanted`.
template <typename T>
T value_of(const py::dict& row, const char* key, const std::string& layer, std::string_view wanted) {
    try {
        return row[key].cast<T>();
    } catch (const py::cast_error&) {
        throw InputError(
            fmt::format("{}: {}: {} is needed, not {}", layer, key, wanted, py::repr(row[key]).cast<std::string>()));
    }
}

void check_keys(const py::dict& row, const std::string& layer) {
    for (const auto& [key, value] : row) {
        const auto word = py::str(key).cast<std::string>();
        if (std::ranges::find(layer_keys, word) != layer_keys.end()) continue;
        throw InputError(fmt::format("{}: unknown key '{}'{}: it has {}", layer, word, did_you_mean(word, layer_keys),
                                     join(layer_keys)));
    }
}

/// A layer as `described` describes it, after those of `before`; without `inputs` it reads the last of them.
Layer layer_of(const py::dict& row, const Network& before) {
    std::string place = fmt::format("layer {}", before.layers.size());
    if (!row.contains("name") || !row.contains("operator"))
        throw InputError(place + ": it needs a name and an operator");
    Layer layer;
    layer.name = value_of<std::string>(row, "name", place, "a text");
    place = fmt::format("layer '{}'", layer.name);
    check_keys(row, place);
    layer.op = operator_of(value_of<std::string>(row, "operator", place, "a text"), layer.name);
    if (row.contains("inputs")) {
        for (const auto& input : value_of<std::vector<std::string>>(row, "inputs", place, "a list of names"))
            layer.inputs.push_back(layer_called(before, input, layer.name));
    } else if (!before.layers.empty()) {
        layer.inputs = {static_cast<int>(before.layers.size()) - 1};
    }
    if (row.contains("weights_of"))
        layer.weights_of = layer_called(before, value_of<std::string>(row, "weights_of", place, "a name"), layer.name);
    std::vector<Shape> shapes;
    for (const int input : layer.inputs) shapes.push_back(before.layers[static_cast<std::size_t>(input)].output);
    try {
        layer.output = output_shape(layer.op, shapes);
    } catch (const InputError& error) {
        throw InputError(fmt::format("{}: {}", place, error.what()));
    }
    layer.block = block_called(before, layer.name);
    return layer;
}

Network of_layers(const std::string& name, const py::object& rows, const std::vector<std::string>& notes) {
    const auto text_of = [](const py::handle value) { return py::repr(value).cast<std::string>(); };
    if (!py::isinstance<py::iterable>(rows))
        throw InputError("layers: a list of dicts is needed, not " + text_of(rows));
    Network network;
    network.name = name;
    network.notes = notes;
    for (const py::handle row : rows) {
        if (!py::isinstance<py::dict>(row))
            throw InputError(fmt::format("layer {}: a dict is needed, not {}", network.layers.size(), text_of(row)));
        Layer layer = layer_of(row.cast<py::dict>(), network);
        if (const auto* norm = std::get_if<BatchNorm>(&layer.op)) network.state += 2 * norm->channels;
        network.layers.push_back(std::move(layer));
    }
    check(network);
    return network;
}

py::list names_of(auto&& each) {
    py::list names;
    for (const auto& entry : each) names.append(py::make_tuple(std::string{entry.name}, std::string{entry.summary}));
    return names;
}

}  // namespace

void bind_networks(py::module_& module) {
    py::class_<Network>(module, "Network", "Named layers in topological order.")
        .def(py::init(&load), py::arg("name_or_file"), py::kw_only(), py::arg("fuse") = "off",
             py::arg("allow_unknown") = false, py::arg("unfold") = false,
             py::arg("sizes") = std::map<std::string, std::int64_t>{},
             "A network of the zoo by name, or an .onnx file by path. `fuse` joins operators as compilers do: 'on', "
             "'off' or names joined by commas. `allow_unknown` prices unknown operators by the bytes they touch, "
             "`unfold` "
             "puts batch normalizations back that an export folded, `sizes` says how large open axes of a file are.")
        .def_static(
            "from_layers", &of_layers, py::arg("name"), py::arg("layers"),
            py::arg("notes") = std::vector<std::string>{},
            "A network of dicts as `layers` gives them: name, operator ('conv2d:c3h32w32k6r5s5:pad0:stride1', as "
            "`rehearse models NAME --format json` prints them), inputs by name (without: the layer before), "
            "weights_of for tied weights; shape, parameters and forward_flops follow from these and are not read, any "
            "other key is refused. The first is an input: 'input:3x32x32'.")
        .def_readonly("name", &Network::name)
        .def_property_readonly("parameters", [](const Network& network) { return parameters(network); })
        .def_property_readonly(
            "forward_flops", [](const Network& network) { return flops(network, Pass::forward).value; },
            "Operations of one sample's forward pass; a multiply-add is two.")
        .def_property_readonly(
            "layers",
            [](const Network& network) {
                py::list rows;
                for (const Layer& layer : network.layers) rows.append(described(network, layer));
                return rows;
            },
            "A dict a layer: name, operator, inputs, shape of one sample's output, parameters, forward_flops.")
        .def_readonly("notes", &Network::notes, "What a reader of its figures must know: how it was imported.")
        .def_property_readonly("guessed_share", &guessed_share,
                               "Of the bytes that cross memory, those of unknown operators, whose time is guessed.")
        .def_property_readonly("warnings", &schedule::guess_warnings)
        .def("__len__", [](const Network& network) { return network.layers.size(); })
        .def("__copy__", [](const Network& network) { return network; })
        .def("__deepcopy__", [](const Network& network, const py::dict&) { return network; })
        .def("__repr__", [](const Network& network) {
            return "<rehearse.Network " + network.name + ", " + std::to_string(network.layers.size()) + " layers, " +
                   std::to_string(parameters(network)) + " parameters>";
        });

    py::class_<Machine>(module, "Machine", "Nodes, devices, links and storage, each figure with its source.")
        .def(py::init([](const std::filesystem::path& name_or_file) {
                 const py::gil_scoped_release unlocked;
                 return models::load_machine(name_or_file.string());
             }),
             py::arg("name_or_file"), "A machine that ships with Rehearse by name, 'this-host', or a .toml file.")
        .def_static("from_toml", &models::parse_machine, py::arg("text"), py::arg("origin") = "machine",
                    "Reads the machine format (docs/machines.md); errors name `origin` and the line.")
        .def("to_toml", &models::to_toml, "The text that from_toml reads as the same machine.")
        .def(py::pickle(&models::to_toml,
                        [](const std::string& toml) { return models::parse_machine(toml, "machine"); }))
        .def_readonly("name", &Machine::name)
        .def_readonly("summary", &Machine::summary)
        .def_property_readonly("nodes", [](const Machine& machine) { return node_count(machine); })
        .def_property_readonly("devices", [](const Machine& machine) { return device_count(machine); })
        .def("__repr__", [](const Machine& machine) {
            return "<rehearse.Machine " + machine.name + ", " + std::to_string(node_count(machine)) + " nodes, " +
                   std::to_string(device_count(machine)) + " devices>";
        });

    module.def(
        "networks", [] { return names_of(models::zoo()); }, "(name, summary) of each network of the zoo.");
    module.def(
        "machines", [] { return names_of(models::machines()); }, "(name, summary) of each machine that is built in.");
    module.def(
        "frameworks", [] { return names_of(models::frameworks()); }, "(name, summary) of each framework profile.");
}

}  // namespace rehearse::python
