// SPDX-License-Identifier: Apache-2.0
// Checkpoints as HDF5 files: one group a layer, in it one data set of each kind of numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/data/hdf5.hpp"

namespace rehearse::run {

namespace {

// Version 2 has checksums; files of version 1, which have none, are read as well. Version 3 names groups by layers;
// those before, whose groups are numbered, are read as well.
constexpr std::string_view schema = "rehearse.checkpoint/";
constexpr std::string_view schema_of_ranks = "rehearse.checkpoint-of-ranks/";
constexpr int version = 3;
constexpr std::size_t kept = 2;
constexpr const char* unfinished = ".part";

// On the group of a layer of which the optimizer keeps nothing. A plan that keeps moments of it begins with zeros.
constexpr const char* without_moments = "without_moments";

struct Kind {
    const char* name;
    std::vector<float> LayerState::*numbers;
    bool moment = false;
};
constexpr Kind kinds[] = {{"weights", &LayerState::weights},
                          {"momentum", &LayerState::momentum, true},
                          {"second_moment", &LayerState::second_moment, true},
                          {"lagged_gradients", &LayerState::lagged},
                          {"statistics", &LayerState::statistics}};

std::string numbered_group(std::size_t layer) { return fmt::format("layer{:04}", layer); }

template <typename State>
void write_header(const H5& file, std::string_view which, const State& state) {
    write_attribute(file, "schema", fmt::format("{}{}", which, version));
    write_attribute(file, "network", state.network);
    write_attribute(file, "optimizer", state.optimizer);
    write_attribute(file, "steps", state.steps);
    write_attribute(file, "global_batch", state.global_batch);
    write_attribute(file, "seed", static_cast<std::int64_t>(state.seed));
}

std::string rank_name(std::size_t rank) { return fmt::format("rank{:06}", rank); }

void write(const H5& file, const RankStates& states) {
    write_header(file, schema_of_ranks, states);
    write_attribute(file, "plan", states.plan);
    write_attribute(file, "hyperparameters", states.hyperparameters);
    write_attribute(file, "ranks", static_cast<std::int64_t>(states.ranks.size()));
    for (std::size_t rank = 0; rank < states.ranks.size(); ++rank) {
        if (!states.ranks[rank].empty()) write(file, rank_name(rank), states.ranks[rank]);
    }
}

void write(const H5& file, const Checkpoint& checkpoint) {
    write_header(file, schema, checkpoint);
    write_attribute(file, "samples", checkpoint.samples);
    write_attribute(file, "loss_scale", static_cast<double>(checkpoint.program.loss_scale));
    write_attribute(file, "scale_found", std::int64_t{checkpoint.program.scale_found});
    write_attribute(file, "good_steps", checkpoint.program.good_steps);
    write_attribute(file, "updates", checkpoint.program.updates);
    write_attribute(file, "steps_begun", checkpoint.program.begun);
    write_attribute(file, "lagged_scale", static_cast<double>(checkpoint.program.made_scale));
    for (std::size_t i = 0; i < checkpoint.layers.size(); ++i) {
        const H5 group = make_group(file, group_name(checkpoint.names.at(i)));
        for (const Kind& kind : kinds) {
            const std::vector<float>& numbers = checkpoint.layers[i].*kind.numbers;
            if (!numbers.empty()) write(group, kind.name, numbers);
        }
        const LayerState& layer = checkpoint.layers[i];
        if (!layer.weights.empty() && layer.momentum.empty()) write_attribute(group, without_moments, std::int64_t{1});
    }
}

/// The number of steps in "step-000012.h5"; nothing for other names.
std::optional<std::int64_t> steps_of(const std::filesystem::path& file) {
    const std::string name = file.filename().string();
    if (!name.starts_with("step-") || !name.ends_with(".h5")) return {};
    const std::string digits = name.substr(5, name.size() - 8);
    const bool number = !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    if (!number || digits.size() > 18) return {};
    return std::stoll(digits);
}

/// Newest first.
std::vector<std::filesystem::path> checkpoints(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> all;
    if (!std::filesystem::is_directory(folder)) return all;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) {
        if (steps_of(entry.path())) all.push_back(entry.path());
    }
    std::ranges::sort(all, [](const auto& a, const auto& b) { return *steps_of(a) > *steps_of(b); });
    return all;
}

/// Whether the file is of this kind. InputError where a later program has written it.
bool is_of(const H5& file, const std::string& where, std::string_view kind) {
    const std::string found = text_attribute(file, "schema", where);
    if (!found.starts_with(kind)) return false;
    for (int known = 1; known <= version; ++known) {
        if (found == fmt::format("{}{}", kind, known)) return true;
    }
    throw InputError(fmt::format("{}: is of schema '{}', which this version does not know: it reads up to {}{}", where,
                                 found, kind, version));
}

void expect_kind(const H5& file, const std::string& where, std::string_view kind) {
    if (is_of(file, where, kind)) return;
    throw InputError(fmt::format("{}: is of schema '{}', not of '{}{}'", where, text_attribute(file, "schema", where),
                                 kind, version));
}

void expect(const H5& file, const std::string& where, const char* name, const std::string& right) {
    const std::string found = text_attribute(file, name, where);
    if (found != right) throw InputError(fmt::format("{}: is of {} '{}', not of '{}'", where, name, found, right));
}

/// What a job that was killed while it wrote has left.
void remove_unfinished(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> left;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("step-") && name.ends_with(unfinished)) left.push_back(entry.path());
    }
    for (const std::filesystem::path& file : left) std::filesystem::remove(file);
}

template <typename State>
void save_file(const std::filesystem::path& folder, const State& state) {
    const std::filesystem::path file = folder / fmt::format("step-{:06}.h5", state.steps);
    write_file(file, [&](const H5& to) { write(to, state); });
    remove_unfinished(folder);
    const std::vector<std::filesystem::path> all = checkpoints(folder);
    for (std::size_t i = kept; i < all.size(); ++i) std::filesystem::remove(all[i]);
}

}  // namespace

std::optional<std::string> why_no_checkpoints() { return {}; }

void save(const std::filesystem::path& folder, const Checkpoint& checkpoint) { save_file(folder, checkpoint); }
void save(const std::filesystem::path& folder, const RankStates& states) { save_file(folder, states); }

std::optional<std::filesystem::path> newest(const std::filesystem::path& folder) {
    const std::vector<std::filesystem::path> all = checkpoints(folder);
    if (all.empty()) return {};
    return all.front();
}

namespace {

/// What both kinds of checkpoints say of themselves first.
template <typename State>
void read_header(const H5& file, const std::string& where, State& state) {
    expect(file, where, "network", state.network);
    expect(file, where, "optimizer", state.optimizer);
    state.steps = integer_attribute(file, "steps", where);
    state.global_batch = integer_attribute(file, "global_batch", where);
    state.seed = static_cast<std::uint64_t>(integer_attribute(file, "seed", where));
    if (state.steps < 0) throw InputError(fmt::format("{}: says that {} steps were done", where, state.steps));
}

void read_program(const H5& file, const std::string& where, ProgramState& program) {
    program.loss_scale = static_cast<float>(number_attribute(file, "loss_scale", where));
    program.good_steps = integer_attribute(file, "good_steps", where);
    // Files of before it was written: a scale comes down to 1 seldom, and a run that scales nothing leaves these two.
    program.scale_found = has_attribute(file, "scale_found") ? integer_attribute(file, "scale_found", where) != 0
                                                             : program.loss_scale != 1 || program.good_steps != 0;
    program.updates = integer_attribute(file, "updates", where);
    program.begun = integer_attribute(file, "steps_begun", where);
    program.made_scale = static_cast<float>(number_attribute(file, "lagged_scale", where));
    const auto is_scale = [](float scale) { return std::isfinite(scale) && scale > 0; };
    if (!is_scale(program.loss_scale) || !is_scale(program.made_scale)) {
        throw InputError(fmt::format("{}: scales its losses by {} and {}: both are above 0", where, program.loss_scale,
                                     program.made_scale));
    }
    const bool counts = program.good_steps >= 0 && program.good_steps <= std::numeric_limits<int>::max() &&
                        program.updates >= 0 && program.begun >= 0;
    if (!counts) throw InputError(fmt::format("{}: its counts of steps and updates are none", where));
}

void read_layer(const H5& group, const std::string& where, std::string_view layer, LayerState& state) {
    const bool moments = !state.momentum.empty() && !has_attribute(group, without_moments);
    for (const Kind& kind : kinds) {
        if (kind.moment && !moments) continue;
        std::vector<float>& numbers = state.*kind.numbers;
        const H5 stored = find(group, kind.name);
        const std::int64_t found = stored ? elements(shape_of(stored)) : 0;
        if (found != static_cast<std::int64_t>(numbers.size())) {
            throw InputError(fmt::format("{}: has {} numbers as {} of '{}', which has {}", where, found, kind.name,
                                         layer, numbers.size()));
        }
        if (stored) numbers = floats_in(stored, fmt::format("{}: {} of '{}'", where, kind.name, layer));
    }
}

}  // namespace

Checkpoint load(const std::filesystem::path& path, const Schedule& schedule) {
    const std::string where = path.string();
    return reading(where, [&] {
        const H5 file = open_file(path);
        if (is_of(file, where, schema_of_ranks)) {
            throw InputError(
                fmt::format("{}: has the states of the ranks of plan '{}', which have states of their own: only that "
                            "plan goes on from "
                            "it, not '{}'",
                            where, text_attribute(file, "plan", where), schedule.plan));
        }
        expect_kind(file, where, schema);
        Checkpoint checkpoint = empty_checkpoint(schedule);
        read_header(file, where, checkpoint);
        // Before batches could change, each step had as many.
        checkpoint.samples = has_attribute(file, "samples") ? integer_attribute(file, "samples", where)
                                                            : checkpoint.steps * checkpoint.global_batch;
        if (checkpoint.samples < 0) {
            throw InputError(fmt::format("{}: says that its steps had {} samples", where, checkpoint.samples));
        }
        read_program(file, where, checkpoint.program);
        for (std::size_t i = 0; i < checkpoint.layers.size(); ++i) {
            const std::string& name = schedule.network.layers[i].name;
            H5 group = find(file, group_name(name));
            if (!group) group = find(file, numbered_group(i));
            if (!group) throw InputError(fmt::format("{}: has no layer '{}'", where, name));
            read_layer(group, where, name, checkpoint.layers[i]);
        }
        return checkpoint;
    });
}

RankStates load(const std::filesystem::path& path, const RankStates& like) {
    const std::string where = path.string();
    return reading(where, [&] {
        const H5 file = open_file(path);
        if (is_of(file, where, schema)) {
            throw InputError(
                fmt::format("{}: has one network's state, but the ranks of plan '{}' have states of their own and need "
                            "their own: it goes on from checkpoints of that plan only",
                            where, like.plan));
        }
        expect_kind(file, where, schema_of_ranks);
        RankStates states = like;
        read_header(file, where, states);
        expect(file, where, "plan", like.plan);
        const bool says = has_attribute(file, "hyperparameters");
        states.hyperparameters = says ? text_attribute(file, "hyperparameters", where) : "";
        if (integer_attribute(file, "ranks", where) != static_cast<std::int64_t>(like.ranks.size())) {
            throw InputError(fmt::format("{}: is of another number of ranks than {}", where, like.ranks.size()));
        }
        for (std::size_t rank = 0; rank < states.ranks.size(); ++rank) {
            const H5 stored = find(file, rank_name(rank));
            states.ranks[rank] = stored ? floats_in(stored, where) : std::vector<float>{};
        }
        return states;
    });
}

}  // namespace rehearse::run
