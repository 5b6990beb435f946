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

/// Which runs a recipe is of: part of a row's source, and its model, device, precision, stages and ranks of experts.
struct RecipeKey {
    std::string source, model, device, precision, pipe, experts;
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

}  // namespace rehearse::validate
