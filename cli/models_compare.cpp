// SPDX-License-Identifier: Apache-2.0
#include "cli/models_compare.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "models/difference.hpp"
#include "models/onnx/counts.hpp"

namespace rehearse::cli {

namespace {

constexpr double same_work = 1e-3;  // relative: PyTorch counts at what it dispatches, biases and all

Json total(const char* what, double a, double b) { return {{"what", what}, {"a", a}, {"b", b}, {"difference", b - a}}; }

std::string text_of(const Network& network, int layer) {
    if (layer < 0) return "";
    return to_string(network.layers[static_cast<std::size_t>(layer)].op);
}

std::string name_of(const Network& network, int layer) {
    return layer < 0 ? "" : network.layers[static_cast<std::size_t>(layer)].name;
}

}  // namespace

double multiply_adds_of(const Network& network, std::int64_t samples) {
    double sum = 0;
    for (const Layer& layer : network.layers) sum += multiply_adds(layer.op);
    const double once = multiply_adds_once(network);
    return sum - once + once / static_cast<double>(samples);
}

int compare_networks(const Network& a, const Network& b, const Common& common) {
    Report report{document("difference", {{"a", a.name}, {"b", b.name}}), {}, ""};
    report.document["totals"] = {
        total("parameters", static_cast<double>(parameters(a)), static_cast<double>(parameters(b))),
        total("multiply-adds of a sample", multiply_adds_of(a), multiply_adds_of(b)),
        total("operations forward", flops(a, Pass::forward).value, flops(b, Pass::forward).value),
        total("activations f32, bytes", activation_bytes(a, DataType::f32).value,
              activation_bytes(b, DataType::f32).value),
        total("layers", static_cast<double>(a.layers.size()), static_cast<double>(b.layers.size()))};
    Json rows = Json::array();
    int same = 0;
    for (const models::Match& match : models::matched(a, b)) {
        if (models::alike(a, b, match)) {
            ++same;
            continue;
        }
        rows.push_back({{"how", match.a < 0   ? "only in b"
                                : match.b < 0 ? "only in a"
                                              : "differs"},
                        {"layer_a", name_of(a, match.a)},
                        {"op_a", text_of(a, match.a)},
                        {"layer_b", name_of(b, match.b)},
                        {"op_b", text_of(b, match.b)}});
    }
    report.document["layers"] = rows;
    report.document["same_layers"] = same;
    report.tables = {{"totals",
                      fmt::format("a: {}, b: {}", a.name, b.name),
                      {{"what", "of the networks"},
                       {"a", "a", Show::count},
                       {"b", "b", Show::count},
                       {"difference", "difference", Show::count}}}};
    if (!rows.empty()) {
        report.tables.push_back({"layers",
                                 "layers that differ",
                                 {{"how", "how"},
                                  {"layer_a", "layer of a"},
                                  {"op_a", "operator of a"},
                                  {"layer_b", "layer of b", Show::text, true},
                                  {"op_b", "operator of b"}}});
    }
    report.footer = fmt::format(
        "{} layers compute the same, {} differ; precision is no part of a network (--precision)", same, rows.size());
    print(report, common);
    return good;
}

int check_counts(const Network& network, const std::string& path, const Common& common) {
    if (!path.ends_with(".onnx")) {
        throw InputError(fmt::format("--check: '{}' is no .onnx file; only these say what PyTorch counted", path));
    }
    const models::Counts counts = models::counts_in(path);
    if (!counts.parameters && !counts.multiply_adds) {
        throw InputError(
            fmt::format("--check: {} does not say what PyTorch counted: export it with export_onnx.py, which writes "
                        "rehearse.parameters and rehearse.multiply_adds into its metadata",
                        path));
    }
    Report report{document("check", {{"model", path}}), {}, ""};
    Json rows = Json::array();
    bool all = true;
    const auto hold = [&](const char* what, double ours, double theirs, double tolerance) {
        const bool equal = std::abs(ours - theirs) <= tolerance * std::abs(theirs);
        all = all && equal;
        rows.push_back({{"what", what}, {"ours", ours}, {"pytorch", theirs}, {"equal", equal ? "yes" : "no"}});
    };
    if (counts.parameters)
        hold("parameters", static_cast<double>(parameters(network)), static_cast<double>(*counts.parameters), 0);
    if (counts.multiply_adds)
        hold("multiply-adds of a sample", multiply_adds_of(network, counts.samples), *counts.multiply_adds, same_work);
    report.document["counts"] = rows;
    report.tables = {
        {"counts",
         network.name,
         {{"what", "count"}, {"ours", "here", Show::count}, {"pytorch", "PyTorch", Show::count}, {"equal", "equal"}}}};
    report.footer = "parameters must be equal, multiply-adds within 0.1 %";
    print(report, common);
    return all ? good : check_failed;
}

}  // namespace rehearse::cli
