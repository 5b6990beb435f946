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

}  // namespace

LanguageRecipes::LanguageRecipes(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    for (std::size_t i = 0; i < table.size(); ++i) {
        Recipe recipe;
        recipe.of = {table.text(i, "source"),    table.text(i, "model"), table.text(i, "device"),
                     table.text(i, "precision"), table.text(i, "pipe"),  table.text(i, "experts")};
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
        recipes_.push_back(std::move(recipe));
    }
}

bool LanguageRecipes::apply(const RecipeKey& run, predict::LanguagePlan& plan) const {
    const auto found = std::ranges::find_if(recipes_, [&](const Recipe& each) {
        return run.source.find(each.of.source) != std::string::npos && fits(each.of.model, run.model) &&
               fits(each.of.device, run.device) && fits(each.of.precision, run.precision) &&
               fits(each.of.pipe, run.pipe) && fits(each.of.experts, run.experts);
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
    plan.overlap = true;
    return true;
}

const LanguageRecipes& shipped_recipes() {
    static const LanguageRecipes recipes = [] {
        const auto files = language_files();
        const auto file = std::ranges::find(files, "recipes", &PublishedFile::name);
        require(file != files.end(), "the tables are built in");
        return LanguageRecipes{file->text, "calibrate/llm/recipes.csv"};
    }();
    return recipes;
}

}  // namespace rehearse::validate
