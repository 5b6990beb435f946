// SPDX-License-Identifier: Apache-2.0
#include "models/models.hpp"
#include "cli/json.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/models_compare.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

namespace {

struct Options {
    Common common;
    std::string name, other;
    bool check = false;
    models::ImportOptions import;
    int depth = 0;
    std::string fuse = "off";
};

Json summary_of(const Network& network) {
    return {{"name", network.name},
            {"parameters", parameters(network)},
            {"flops_forward", flops(network, Pass::forward).value},
            {"multiply_adds", multiply_adds_of(network)},
            {"multiply_adds_once", multiply_adds_once(network)},
            {"activation_bytes", activation_bytes(network, DataType::f32).value},
            {"layer_count", network.layers.size()}};
}

int list(const Options& options) {
    Report report{document("networks", Json::object()), {}, ""};
    Json rows = Json::array();
    for (const models::ModelName& model : models::zoo()) {
        Json row = summary_of(model.build());
        row["summary"] = model.summary;
        rows.push_back(row);
    }
    report.document["networks"] = rows;
    report.tables = {{"networks",
                      "",
                      {{"name", "name"},
                       {"parameters", "parameters", Show::count},
                       {"flops_forward", "forward", Show::flops},
                       {"activation_bytes", "activations f32", Show::bytes},
                       {"layer_count", "layers", Show::count},
                       {"summary", "  what it is"}}}};
    report.footer = "FLOP (2 a multiply-add) and bytes are of one sample.";
    print(report, options.common);
    return good;
}

// The first `depth` names of a module's path: "layer1.0" of "layer1.0.conv1".
std::string module_of(const std::string& name, int depth) {
    std::size_t end = 0;
    for (int i = 0; i < depth && end != std::string::npos; ++i) end = name.find('.', end == 0 ? 0 : end + 1);
    return name.substr(0, end);
}

// One row a module instead of a layer, in the order in which modules begin.
void group(Report& report, const Network& network, int depth) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<Layer>> modules;
    for (const Layer& layer : network.layers) {
        const std::string module = module_of(layer.name, depth);
        if (!modules.contains(module)) order.push_back(module);
        modules[module].push_back(layer);
    }
    Json rows = Json::array();
    for (const std::string& name : order) {
        const std::vector<Layer>& layers = modules[name];
        std::int64_t count = 0;
        double work = 0, products = 0;
        for (const Layer& layer : layers) {
            count += parameters(layer.op);
            products += multiply_adds(layer.op);
            work += flops(layer.op, Pass::forward).value;
        }
        rows.push_back({{"name", name},
                        {"layer_count", layers.size()},
                        {"parameters", count},
                        {"multiply_adds", products},
                        {"flops_forward", work}});
    }
    report.document["modules"] = rows;
    report.tables = {{"modules",
                      network.name,
                      {{"name", "module"},
                       {"layer_count", "layers", Show::count},
                       {"parameters", "parameters", Show::count},
                       {"multiply_adds", "multiply-adds", Show::count},
                       {"flops_forward", "forward", Show::flops}}}};
}

int show(const Options& options) {
    const Network network = load_network(options.name, options.fuse, options.import);
    Report report{document("network", {{"model", options.name}}), {}, ""};
    report.document.update(summary_of(network));
    report.document["input"] = network.layers.front().output;
    Json layers = Json::array();
    for (const Layer& layer : network.layers) {
        layers.push_back({{"name", layer.name},
                          {"op", to_string(layer.op)},
                          {"shape", to_string(layer.output)},
                          {"output", layer.output},
                          {"parameters", parameters(layer.op)},
                          {"multiply_adds", multiply_adds(layer.op)},
                          {"flops_forward", flops(layer.op, Pass::forward).value}});
    }
    report.document["layers"] = layers;
    report.tables = {{"layers",
                      network.name,
                      {{"name", "layer"},
                       {"op", "operator"},
                       {"shape", "output"},
                       {"parameters", "parameters", Show::count},
                       {"flops_forward", "forward", Show::flops}}}};
    const double guessed = guessed_share(network);
    report.document["guessed_share"] = guessed;
    report.document["notes"] = network.notes;
    report.footer = fmt::format("{} parameters, {} forward a sample{}", parameters(network),
                                to_string(flops(network, Pass::forward)),
                                guessed > 0 ? fmt::format(", {:.1f} % of its bytes guessed", 100 * guessed) : "");
    if (options.depth > 0) group(report, network, options.depth);
    print(report, options.common);
    return good;
}

int start(const Options& options) {
    if (options.name.empty()) return list(options);
    if (options.check && !options.other.empty())
        throw InputError("--check holds one file to what PyTorch counted; leave the second network out");
    if (!options.check && options.other.empty()) return show(options);
    const Network network = load_network(options.name, options.fuse, options.import);
    if (options.check) return check_counts(network, options.name, options.common);
    return compare_networks(network, load_network(options.other, options.fuse, options.import), options.common);
}

}  // namespace

Run add_models(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("NAME", options->name,
                   "a network's name, an .onnx file or a config.json; without it all are listed");
    app.add_option("OTHER", options->other, "a second network: what differs between the two");
    app.add_flag("--check", options->check,
                 "parameters and multiply-adds held to PyTorch's, which export_onnx.py writes into a file");
    add_import(app, options->import);
    app.add_option("--depth", options->depth,
                   "one row a module: so many names of the layers' paths, at least 1; 0: a row a layer")
        ->option_text("N")
        ->not_negative();
    add_fuse(app, options->fuse);
    add_common(app, options->common);
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
