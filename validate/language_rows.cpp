// SPDX-License-Identifier: Apache-2.0
#include "validate/language_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/csv.hpp"
#include "models/models.hpp"
#include "validate/language_recipes.hpp"
#include "validate/published_files.hpp"
#include "validate/words.hpp"

namespace rehearse::validate {

namespace {

using models::Csv;

std::string_view shipped(std::string_view name) {
    const auto files = language_files();
    const auto file = std::ranges::find(files, name, &PublishedFile::name);
    require(file != files.end(), "the tables are built in");
    return file->text;
}

bool yes(const Csv& table, std::size_t row, std::string_view column) {
    const std::string& word = table.text(row, column);
    if (word != "yes" && word != "no") table.fail(row, fmt::format("{} is '{}': yes or no", column, word));
    return word == "yes";
}

predict::LanguageModel sizes_of(const Csv& table, std::size_t row) {
    const auto one = [&](std::string_view column) { return table.whole(row, column, 1); };
    const auto some = [&](std::string_view column) { return table.whole(row, column, 0); };
    predict::LanguageModel m;
    m.layers = one("layers");
    m.hidden = one("hidden");
    m.heads = one("heads");
    m.key_heads = some("kv_heads");
    m.head_size = one("head_size");
    m.ffn = one("ffn");
    m.vocabulary = one("vocabulary");
    m.sequence = one("sequence");
    m.experts = some("experts");
    m.top = some("top_k");
    m.expert_ffn = some("expert_ffn");
    m.shared_experts = some("shared_experts");
    m.dense_ffn = some("dense_ffn");
    m.dense_layers = some("dense_layers");
    m.latent = {some("query_rank"), some("key_rank"), some("rope"), some("value_size")};
    m.gated = yes(table, row, "gated");
    return m;
}

bool has_word(const Csv& table, std::size_t row, std::string_view column, std::string_view word) {
    return table.has(column) && table.text(row, column).find(word) != std::string::npos;
}

// The recipe of the software: columns that a table may lack. Without them weights that are gathered (ZeRO 3) are
// PyTorch's, or llm-foundry's with Triton's attention, scores that are kept Megatron-DeepSpeed's, all else Megatron's;
// a column `extra` of free text may say torch.compile and AsyncTP, `precision` how 8-bit operands are scaled.
void add_recipe(const Csv& table, std::size_t row, predict::LanguagePlan& p) {
    using predict::Float8Scaling;
    using predict::LanguageSoftware;
    const bool sharded = p.zero == 3, kept = p.attention == predict::AttentionKernel::kept;
    const bool foundry = sharded && has_word(table, row, "source", "llm-foundry");
    const bool pytorch = sharded && !foundry;
    p.software = table.has("software")
                     ? chosen<LanguageSoftware>(table, row, "software",
                                                {{"megatron", LanguageSoftware::megatron},
                                                 {"megatron-deepspeed", LanguageSoftware::megatron_deepspeed},
                                                 {"pytorch", LanguageSoftware::pytorch},
                                                 {"composer", LanguageSoftware::composer}})
                 : pytorch ? LanguageSoftware::pytorch
                 : foundry ? LanguageSoftware::composer
                 : kept    ? LanguageSoftware::megatron_deepspeed
                           : LanguageSoftware::megatron;
    if (foundry && !table.has("software") && !kept) p.attention = predict::AttentionKernel::triton;
    p.compiled = table.has("compiled") ? yes(table, row, "compiled")
                 : table.has("extra")  ? has_word(table, row, "extra", "torch.compile")
                                       : pytorch;
    p.async_tensor =
        table.has("async_tensor") ? yes(table, row, "async_tensor") : has_word(table, row, "extra", "AsyncTP");
    p.overlap = table.has("overlap") ? yes(table, row, "overlap") : sharded;
    p.float8 = has_word(table, row, "precision", "rowwise") ? Float8Scaling::rowwise
               : pytorch                                    ? Float8Scaling::tensorwise
                                                            : Float8Scaling::delayed;
    if (!table.has("float8")) return;
    const std::map<std::string, Float8Scaling, std::less<>> scalings{{"delayed", Float8Scaling::delayed},
                                                                     {"tensorwise", Float8Scaling::tensorwise},
                                                                     {"rowwise", Float8Scaling::rowwise}};
    if (p.type == DataType::fp8) {
        p.float8 = chosen<Float8Scaling>(table, row, "float8", scalings);
    } else if (table.text(row, "float8") != "none") {
        table.fail(row, fmt::format("float8 is '{}' where precision is '{}': none was expected",
                                    table.text(row, "float8"), table.text(row, "precision")));
    }
}

predict::LanguagePlan plan_of(const Csv& table, std::size_t row) {
    using predict::Recomputation;
    const auto one = [&](std::string_view column) { return table.whole(row, column, 1); };
    predict::LanguagePlan p;
    p.tensor = one("tensor");
    p.pipe = one("pipe");
    p.chunks = one("chunks");
    p.data = one("data");
    p.context = one("context");
    p.experts = one("expert_parallel");
    p.zero = static_cast<int>(table.whole(row, "zero", 0));
    p.sequence_parallel = yes(table, row, "sequence_parallel");
    p.attention = chosen<predict::AttentionKernel>(table, row, "attention",
                                                   {{"fused", predict::AttentionKernel::fused},
                                                    {"kept", predict::AttentionKernel::kept},
                                                    {"triton", predict::AttentionKernel::triton}});
    p.recompute = chosen<Recomputation>(table, row, "recompute",
                                        {{"none", Recomputation::none},
                                         {"recipe", Recomputation::none},
                                         {"selective", Recomputation::selective},
                                         {"full", Recomputation::full}});
    p.microbatch = one("microbatch");
    p.microbatches = one("microbatches");
    p.type = chosen<DataType>(table, row, "precision",
                              {{"bf16", DataType::bf16},
                               {"fp8", DataType::fp8},
                               {"fp8 tensorwise", DataType::fp8},
                               {"fp8 rowwise", DataType::fp8},
                               {"tf32", DataType::tf32},
                               {"fp32", DataType::f32}});
    add_recipe(table, row, p);
    return p;
}

// What is assumed of a row gives way to what its recipe says, and so does all of a row whose table does not tell what
// is assumed: the sources of recipes print none of it.
void follow_recipe(const Csv& table, std::size_t i, LanguageRow& row) {
    const bool asked = table.text(i, "recompute") == "recipe";
    if (!asked && table.has("assumed") && row.assumed.empty()) return;
    const std::string precision = row.plan.type == DataType::fp8 ? "fp8" : table.text(i, "precision");
    const RecipeKey run{row.source,
                        row.model,
                        row.device,
                        precision,
                        table.text(i, "pipe"),
                        table.text(i, "chunks"),
                        table.text(i, "expert_parallel")};
    if (shipped_recipes().apply(run, row.plan) || !asked) return;
    table.fail(i, fmt::format("recompute is 'recipe', and calibrate/llm/recipes.csv has none of {} by {}", row.model,
                              row.source));
}

// What nodes.csv says of a device, and the device itself.
struct Node {
    DeviceClass device;
    predict::LanguageNode node;
};

predict::LanguageBoard board_of(const Csv& nodes, std::size_t row) {
    const auto share = [&](std::string_view column) {
        return nodes.text(row, column).empty() ? 0 : nodes.positive(row, column);
    };
    predict::LanguageBoard board;
    board.products = share("products");
    board.products_8bit = share("products_fp8");
    board.memory = share("memory");
    board.flash = {nodes.positive(row, "flash"), nodes.positive(row, "flash_backward")};
    board.library = {nodes.positive(row, "library"), nodes.positive(row, "library_backward")};
    board.wide = nodes.positive(row, "wide");
    board.exponentials = nodes.positive(row, "exponentials");
    board.measured_exponentials = nodes.positive(row, "measured_exponentials");
    board.cards = nodes.whole(row, "cards", 1);
    board.issue = parse_quantity<Seconds>(nodes.text(row, "issue"));
    return board;
}

Node node_of(const Csv& nodes, std::size_t row) {
    const std::string text = fmt::format(
        "name = \"node\"\n[[device]]\nname = \"gpu\"\nlike = \"{}\"\nmemory_bandwidth = {{ value = \"{}\", source = "
        "\"data "
        "sheet\" }}\n[[node]]\nname = \"n\"\ndevices = [{{ class = \"gpu\", name = \"gpu\" }}]\n",
        nodes.text(row, "like"), nodes.text(row, "memory_bandwidth"));
    Node result;
    result.device = models::parse_machine(text, "calibrate/llm/nodes.csv").classes.at(0);
    result.node = {nodes.whole(row, "node_devices", 1),
                   parse_quantity<Bandwidth>(nodes.text(row, "node")),
                   parse_quantity<Bandwidth>(nodes.text(row, "network")),
                   nodes.whole(row, "half", 1),
                   nodes.positive(row, "across"),
                   nodes.positive(row, "all_to_all"),
                   yes(nodes, row, "shared"),
                   nodes.positive(row, "several"),
                   nodes.positive(row, "to_all"),
                   board_of(nodes, row)};
    return result;
}

// Nobody measured how fast the hosts of these nodes issue operators. What is known of PyTorch's and Megatron's hosts is
// 18, 23, 37 and 38 us (models/software.toml, nodes.csv): a standard deviation of their logarithms of 0.37.
constexpr double host_deviation = 0.37;

double of_host(const LanguageRow& row, Node node, const predict::LanguageTime& time) {
    node.node.board.issue = node.node.board.issue * std::exp(host_deviation);
    const predict::LanguageTime slower = predict::language_time(row.sizes, row.plan, node.device, node.node);
    return std::log(predict::total(slower) / predict::total(time));
}

bool of_one_set(const LanguageRow& a, const LanguageRow& b) {
    return a.source == b.source && a.device == b.device && a.model == b.model;
}

// Each other row of the set in turn is the one that was measured.
void anchor(std::vector<LanguageAnswer>& answers) {
    for (LanguageAnswer& each : answers) {
        double sum = 0;
        int count = 0;
        for (const LanguageAnswer& pilot : answers) {
            if (&pilot == &each || !of_one_set(pilot.row, each.row)) continue;
            const Seconds time = predict::total(each.time) * (pilot.row.measured / predict::total(pilot.time));
            if (!each.anchored) {
                each.anchored = time;
                each.anchored_host = each.host - pilot.host;
            }
            sum += std::abs(time / each.row.measured - 1);
            ++count;
        }
        if (count > 0) each.with_pilot = sum / count;
    }
}

}  // namespace

std::vector<LanguageRow> read_language_rows(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    std::vector<LanguageRow> rows;
    for (std::size_t i = 0; i < table.size(); ++i) {
        LanguageRow row;
        row.id = table.text(i, "id");
        row.source = table.text(i, "source");
        row.device = table.text(i, "device");
        row.model = table.text(i, "model");
        row.sizes = sizes_of(table, i);
        shipped_models().apply(row.source, row.model, row.sizes);
        row.plan = plan_of(table, i);
        row.devices = table.whole(i, "n_devices", 1);
        row.batch = table.whole(i, "global_batch", 1);
        row.measured = Seconds{table.positive(i, "step_time_s")};
        if (!table.text(i, "memory_GiB").empty())
            row.memory = Bytes{table.positive(i, "memory_GiB") * 1024 * 1024 * 1024};
        if (table.has("assumed")) row.assumed = table.text(i, "assumed");
        follow_recipe(table, i, row);
        const predict::LanguagePlan& p = row.plan;
        if (p.tensor * p.pipe * p.data * p.context != row.devices) {
            table.fail(i, fmt::format("tensor {} x pipe {} x data {} x context {} are not {} devices", p.tensor, p.pipe,
                                      p.data, p.context, row.devices));
        }
        if (p.data * p.microbatch * p.microbatches != row.batch) {
            table.fail(i, fmt::format("{} replicas' {} micro-batches of {} are not a batch of {}", p.data,
                                      p.microbatches, p.microbatch, row.batch));
        }
        rows.push_back(std::move(row));
    }
    if (rows.empty()) throw InputError(origin + ": no row");
    return rows;
}

std::vector<LanguageRow> shipped_language_rows() {
    return read_language_rows(shipped("results"), "calibrate/llm/results.csv");
}

std::vector<LanguageAnswer> answer(const std::vector<LanguageRow>& rows) {
    const Csv nodes{shipped("nodes"), "calibrate/llm/nodes.csv"};
    std::map<std::string, Node> known;
    for (std::size_t i = 0; i < nodes.size(); ++i) known.emplace(nodes.text(i, "device"), node_of(nodes, i));
    std::vector<LanguageAnswer> answers;
    for (const LanguageRow& row : rows) {
        const auto node = known.find(row.device);
        if (node == known.end()) {
            std::vector<std::string_view> names;
            for (const auto& [name, each] : known) names.emplace_back(name);
            throw InputError(fmt::format("{}: unknown device '{}'{}; one of {}", row.id, row.device,
                                         did_you_mean(row.device, names), join(names)));
        }
        const predict::LanguageTime time =
            predict::language_time(row.sizes, row.plan, node->second.device, node->second.node);
        answers.push_back({row, time, predict::language_memory(row.sizes, row.plan), {}, {}});
        answers.back().host = of_host(row, node->second, time);
    }
    anchor(answers);
    return answers;
}

std::optional<double> rank_correlation(const std::vector<LanguageAnswer>& answers) {
    constexpr double apart = 0.02;
    int pairs = 0, agree = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const LanguageRow& a = answers[i].row;
            const LanguageRow& b = answers[j].row;
            if (!of_one_set(a, b) || a.devices != b.devices || a.sizes.sequence != b.sizes.sequence) continue;
            const auto per_sample = [](const LanguageRow& row, Seconds step) {
                return std::log(step.value / static_cast<double>(row.batch));
            };
            const double measured = per_sample(a, a.measured) - per_sample(b, b.measured);
            if (std::abs(measured) < apart) continue;
            const double predicted =
                per_sample(a, predict::total(answers[i].time)) - per_sample(b, predict::total(answers[j].time));
            ++pairs;
            if (predicted != 0) agree += measured * predicted > 0 ? 1 : -1;
        }
    }
    if (pairs == 0) return std::nullopt;
    return static_cast<double>(agree) / pairs;
}

}  // namespace rehearse::validate
