// SPDX-License-Identifier: Apache-2.0
#include "validate/megatron_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "models/csv.hpp"
#include "models/kernel_files.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "prices/interval.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::validate {

namespace {

constexpr std::int64_t node = 8;  // GPUs of every machine here
/// The rows that the figures of the machine file vtrain-server were fitted on (docs/transformer_prices.md).
constexpr std::int64_t fitted_layers = 12;

bool is_fitted(const MegatronRow& row, const Machine& machine) {
    return machine.name == "vtrain-server" && row.devices <= node && row.pipe == 1 && row.layers == fitted_layers;
}

bool recomputes(const MegatronRow& row) { return row.devices > node; }

struct Predicted {
    Seconds middle, low, high;
};

Predicted predicted_step(const MegatronRow& row, const Machine& machine) {
    const predict::Job job{.network = models::load_network(network_of(row)),
                           .machine = machine,
                           .plan = schedule::parse_plan(plan_of(row)),
                           .batch = row.global_batch / row.data,
                           .precision = Precision::mixed,
                           .optimizer = Optimizer::adam,
                           .mode = sim::Mode::folded,
                           .bands = false};
    Timeline unused;
    const Summary summary = predict::point_of(job, predict::setup_of(job, row.devices), unused).figures.time;
    // Prices of kernels err together, and so do those of messages: no second simulation for the band.
    const double kernels = machine.classes.front().tiles == nullptr ? 0.5 : machine.classes.front().tiles->error;
    const Seconds error = kernels * (summary.compute + summary.bubble) + machine.across.error * summary.exposed_comm;
    const auto [low, high] = prices::around(summary.step, prices::reach(error / summary.step));
    return {summary.step, low, high};
}

using Series = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>;
Series series_of(const MegatronRow& row) {
    return {row.hidden, row.heads, row.sequence, row.micro_batch, row.tensor, recomputes(row)};
}

/// The header's first name would be taken for a comment.
std::string without_hash(std::string_view text) {
    constexpr std::string_view name = "# GPUs";
    std::string plain{text};
    if (const std::size_t at = plain.find(name); at != std::string::npos) plain.replace(at, name.size(), "GPUs");
    return plain;
}

}  // namespace

std::vector<MegatronRow> read_megatron(std::string_view text, const std::string& origin, const std::string& set) {
    const models::Csv csv{without_hash(text), origin};
    std::vector<MegatronRow> rows;
    for (std::size_t i = 0; i < csv.size(); ++i) {
        const auto whole = [&](std::string_view column) { return csv.whole(i, column, 1); };
        MegatronRow row{.id = fmt::format("{} row {}", set, i + 1), .set = set};
        row.devices = whole("GPUs");
        row.global_batch = whole("global batch");
        row.micro_batch = whole("micro batch");
        row.hidden = whole("hidden size");
        row.heads = whole("attention heads");
        row.layers = whole("# layers");
        row.sequence = whole("sequence length");
        row.tensor = whole("tensor parallelism");
        row.data = whole("data parallelism");
        row.pipe = whole("pipeline parallelism");
        row.published = Seconds{1e-3 * csv.positive(i, "iteration time (ms)")};
        if (row.devices % row.tensor != 0 || row.data * row.pipe != row.devices / row.tensor) {
            csv.fail(i, fmt::format("tensor {} x data {} x pipeline {} are not {} GPUs", row.tensor, row.data, row.pipe,
                                    row.devices));
        }
        if (row.global_batch % (row.data * row.micro_batch) != 0) {
            csv.fail(i, fmt::format("a batch of {} is not {} ranks' micro-batches of {}", row.global_batch, row.data,
                                    row.micro_batch));
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<MegatronRow> shipped_megatron() {
    std::vector<MegatronRow> rows;
    for (const models::KernelFile& file : models::kernel_files()) {
        if (!file.name.starts_with("vtrain_")) continue;
        const std::vector<MegatronRow> more =
            read_megatron(file.text, fmt::format("calibrate/megatron/{}.csv", file.name), std::string{file.name});
        rows.insert(rows.end(), more.begin(), more.end());
    }
    require(!rows.empty(), "vTrain's tables are built in");
    return rows;
}

std::string plan_of(const MegatronRow& row) {
    const std::int64_t micro_batches = row.global_batch / row.data / row.micro_batch;
    const std::string recompute = recomputes(row) ? ":recompute=blocks" : "";
    // Megatron-LM's and DeepSpeed's pipelines hand on a piece of each tensor rank (pipe_partitioned of DeepSpeed's
    // engine).
    const std::string scatter = row.pipe > 1 && row.tensor > 1 ? ":scatter=on" : "";
    return fmt::format("pipe={}:microbatches={}{}{}{},data={}:overlap=off:bucket=1TB:first=1TB,tensor={}", row.pipe,
                       micro_batches, row.pipe > 1 ? ":cut=blocks" : "", scatter, recompute, row.data, row.tensor);
}

std::string network_of(const MegatronRow& row) {
    constexpr std::int64_t words = 50257;
    const std::int64_t unit = 128 * row.tensor;
    // Megatron-LM pads them whoever shares them (megatron/tokenizer/tokenizer.py); on one node, those of one tensor
    // rank take as long as if they were not padded (docs/transformer_prices.md).
    const bool whole = row.tensor == 1 && row.devices <= node;
    const std::int64_t padded = whole ? words : (words + unit - 1) / unit * unit;
    return fmt::format("gpt-h{}-a{}-l{}-v{}@{}", row.hidden, row.heads, row.layers, padded, row.sequence);
}

double error_of(const MegatronRow& row, Seconds predicted) { return predicted / row.published - 1; }

std::vector<MegatronAnswer> answer_megatron(const std::vector<MegatronRow>& rows, const std::string& machine,
                                            const Progress& progress) {
    std::map<std::string, Machine> machines;
    const auto machine_of = [&](const MegatronRow& row) -> const Machine& {
        const std::string usual = row.devices > node ? "vtrain-a100" : "vtrain-server";
        const std::string& name = machine.empty() ? usual : machine;
        const auto known = machines.find(name);
        return known != machines.end() ? known->second
                                       : machines.emplace(name, models::load_machine(name)).first->second;
    };
    std::vector<MegatronAnswer> answers;
    std::map<Series, std::size_t> anchors;
    const auto size_of = [&](std::size_t i) {
        const MegatronRow& row = answers[i].row;
        return std::tuple{row.layers, row.pipe, row.devices, row.global_batch};
    };
    for (const MegatronRow& row : rows) {
        answers.push_back({.row = row});
        MegatronAnswer& answer = answers.back();
        answer.fitted = is_fitted(row, machine_of(row));
        try {
            const Predicted predicted = predicted_step(row, machine_of(row));
            answer.cold = predicted.middle;
            answer.low = predicted.low;
            answer.high = predicted.high;
            const auto [entry, fresh] = anchors.try_emplace(series_of(row), answers.size() - 1);
            if (!fresh && size_of(answers.size() - 1) < size_of(entry->second)) entry->second = answers.size() - 1;
        } catch (const InputError& error) {
            answer.skipped = error.what();
        }
        if (!goes_on(progress, std::ssize(answers), std::ssize(rows))) break;
    }
    for (std::size_t i = 0; i < answers.size(); ++i) {
        if (!answers[i].skipped.empty()) continue;
        const MegatronAnswer& anchor = answers[anchors.at(series_of(answers[i].row))];
        if (&anchor == &answers[i]) continue;
        answers[i].anchor = anchor.row.id;
        answers[i].anchored = (anchor.row.published.value / anchor.cold.value) * answers[i].cold;
    }
    return answers;
}

}  // namespace rehearse::validate
