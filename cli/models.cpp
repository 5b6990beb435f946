// SPDX-License-Identifier: Apache-2.0
#include "models/models.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/command.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    Common common;
    std::string name;
    bool allow_unknown = false;
    std::string fuse = "off";
};

Json summary_of(const Network& network) {
    return {{"name", network.name},
            {"parameters", parameters(network)},
            {"flops_forward", flops(network, Pass::forward).value},
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

int show(const Options& options) {
    const Network network = load_network(options.name, options.fuse, options.allow_unknown);
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
    report.footer = fmt::format("{} parameters, {} forward a sample", parameters(network),
                                to_string(flops(network, Pass::forward)));
    print(report, options.common);
    return good;
}

}  // namespace

Run add_models(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("NAME", options->name, "a network's name or an .onnx file; without it all are listed");
    app.add_flag("--allow-unknown", options->allow_unknown, "let operators in that are not known");
    add_fuse(app, options->fuse);
    add_common(app, options->common);
    return [options] { return options->name.empty() ? list(*options) : show(*options); };
}

}  // namespace rehearse::cli
