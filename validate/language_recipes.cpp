// SPDX-License-Identifier: Apache-2.0
#include "validate/language_recipes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "validate/published_files.hpp"
#include "validate/words.hpp"

namespace rehearse::validate {

namespace {

using models::Csv;
using predict::ExpertRows;
using predict::HostGraphs;

// Parts joined by +.
predict::RecomputedParts parts_of(const Csv& table, std::size_t row) {
    predict::RecomputedParts parts;
    const std::string& text = table.text(row, "recompute");
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('+', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        begin = end + 1;
        if (part == "up") {
            parts.up_projections = true;
        } else if (part == "mlp") {
            parts.feed_forward = true;
        } else if (part == "act") {
            parts.activations = true;
        } else if (part == "norms") {
            parts.norms = true;
        } else {
            table.fail(row,
                       fmt::format("recompute has '{}': -, none, or some of act, mlp, norms, up joined by +", part));
        }
    }
    return parts;
}

bool fits(const std::string& recipe, const std::string& run) { return recipe == "*" || recipe == run; }

std::string_view shipped(std::string_view name) {
    const auto files = language_files();
    const auto file = std::ranges::find(files, name, &PublishedFile::name);
    require(file != files.end(), "the tables are built in");
    return file->text;
}

}  // namespace

LanguageRecipes::LanguageRecipes(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    for (std::size_t i = 0; i < table.size(); ++i) {
        Recipe recipe;
        recipe.of = {table.text(i, "source"),    table.text(i, "model"), table.text(i, "device"),
                     table.text(i, "precision"), table.text(i, "pipe"),  table.text(i, "chunks"),
                     table.text(i, "experts")};
        const std::string& again = table.text(i, "recompute");
        recipe.recompute_as_printed = again == "-";
        if (again != "-" && again != "none") recipe.plan.again = parts_of(table, i);
        recipe.plan.expert_rows =
            chosen<ExpertRows>(table, i, "rows", {{"each", ExpertRows::each}, {"once", ExpertRows::once}});
        recipe.plan.nodes_of_row = table.whole(i, "nodes", 0);
        recipe.plan.experts_beside = chosen<bool>(table, i, "beside", {{"yes", true}, {"no", false}});
        recipe.plan.graphs = chosen<HostGraphs>(
            table, i, "graphs", {{"none", HostGraphs::none}, {"parts", HostGraphs::parts}, {"step", HostGraphs::step}});
        recipe.plan.async_tensor = chosen<bool>(table, i, "tensor", {{"yes", true}, {"no", false}});
        recipe.plan.weights_kept = chosen<bool>(table, i, "kept", {{"yes", true}, {"no", false}});
        recipe.plan.half_sums = chosen<bool>(table, i, "sums", {{"16", true}, {"32", false}});
        recipe.plan.fused_experts = chosen<bool>(table, i, "fused", {{"yes", true}, {"no", false}});
        const std::string& attention = table.text(i, "attention");
        recipe.plan.library_attention =
            chosen<bool>(table, i, "attention", {{"own", false}, {"library", true}, {"library8", true}});
        recipe.plan.attention_8bit = attention == "library8";
        recipe.plan.library_norms = chosen<bool>(table, i, "norms", {{"own", false}, {"library", true}});
        recipes_.push_back(std::move(recipe));
    }
}

bool LanguageRecipes::apply(const RecipeKey& run, predict::LanguagePlan& plan) const {
    const auto found = std::ranges::find_if(recipes_, [&](const Recipe& each) {
        return run.source.find(each.of.source) != std::string::npos && fits(each.of.model, run.model) &&
               fits(each.of.device, run.device) && fits(each.of.precision, run.precision) &&
               fits(each.of.pipe, run.pipe) && fits(each.of.chunks, run.chunks) && fits(each.of.experts, run.experts);
    });
    if (found == recipes_.end()) return false;
    if (!found->recompute_as_printed) {
        plan.recompute = predict::Recomputation::none;
        plan.again = found->plan.again;
    }
    plan.expert_rows = found->plan.expert_rows;
    plan.nodes_of_row = found->plan.nodes_of_row;
    plan.experts_beside = found->plan.experts_beside;
    plan.graphs = found->plan.graphs;
    plan.weights_kept = found->plan.weights_kept && plan.zero == 3;
    plan.half_sums = found->plan.half_sums;
    plan.async_tensor = found->plan.async_tensor && plan.tensor > 1;
    plan.fused_experts = found->plan.fused_experts && plan.type == DataType::fp8;
    plan.library_attention = found->plan.library_attention;
    plan.attention_8bit = found->plan.attention_8bit;
    plan.library_norms = found->plan.library_norms;
    plan.overlap = true;
    return true;
}

const LanguageRecipes& shipped_recipes() {
    static const LanguageRecipes recipes{shipped("recipes"), "calibrate/llm/recipes.csv"};
    return recipes;
}

LanguageModels::LanguageModels(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto yes = [&](std::string_view column) {
            return chosen<bool>(table, i, column, {{"yes", true}, {"no", false}});
        };
        Line line{table.text(i, "source"), table.text(i, "model"), {}};
        line.sizes.window = table.whole(i, "window", 0);
        line.sizes.biases = yes("biases");
        line.sizes.clamped = yes("clamped");
        line.sizes.scaled_rotation = yes("scaled");
        line.sizes.extra_tokens = table.whole(i, "extra", 0);
        lines_.push_back(std::move(line));
    }
}

void LanguageModels::apply(const std::string& source, const std::string& model, predict::LanguageModel& sizes) const {
    const auto found = std::ranges::find_if(lines_, [&](const Line& each) {
        return (each.source == "*" || source.find(each.source) != std::string::npos) && fits(each.model, model);
    });
    if (found == lines_.end()) return;
    sizes.window = found->sizes.window;
    sizes.biases = found->sizes.biases;
    sizes.clamped = found->sizes.clamped;
    sizes.scaled_rotation = found->sizes.scaled_rotation;
    sizes.extra_tokens = found->sizes.extra_tokens;
}

const LanguageModels& shipped_models() {
    static const LanguageModels models{shipped("models"), "calibrate/llm/models.csv"};
    return models;
}

}  // namespace rehearse::validate
