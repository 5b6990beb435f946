// SPDX-License-Identifier: Apache-2.0
// What published recipes say of runs whose tables print a plan only: what is computed again, how rows reach their
// experts, what is hidden, what the host issues as graphs (calibrate/llm/recipes.csv).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/csv.hpp"
#include "predict/language_plan.hpp"

namespace rehearse::validate {

/// Which runs a recipe is of: part of a row's source, and its model, device, precision, stages, chunks and
/// ranks of experts.
struct RecipeKey {
    std::string source, model, device, precision, pipe, chunks, experts;
};

class LanguageRecipes {
public:
    /// Columns: those of calibrate/llm/recipes.csv. InputError with file and line.
    LanguageRecipes(std::string_view text, const std::string& origin);

    /// Changes `plan` as the first recipe that fits says; returns whether one does. `*` in a recipe fits all.
    bool apply(const RecipeKey& run, predict::LanguagePlan& plan) const;

private:
    struct Recipe {
        RecipeKey of;
        bool recompute_as_printed = true;
        predict::LanguagePlan plan;  // of which only what recipes say counts
    };
    std::vector<Recipe> recipes_;
};

const LanguageRecipes& shipped_recipes();

/// What tables of rows do not print of a model: calibrate/llm/models.csv.
class LanguageModels {
public:
    /// Columns: those of calibrate/llm/models.csv. InputError with file and line.
    LanguageModels(std::string_view text, const std::string& origin);

    /// Sets the sizes that the first line has which fits a row's source and model; without one they stay.
    void apply(const std::string& source, const std::string& model, predict::LanguageModel& sizes) const;

private:
    struct Line {
        std::string source, model;
        predict::LanguageModel sizes;  // of which only what lines say counts
    };
    std::vector<Line> lines_;
};

const LanguageModels& shipped_models();

}  // namespace rehearse::validate
