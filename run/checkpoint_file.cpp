// SPDX-License-Identifier: Apache-2.0
// Checkpoints as HDF5 files: one group a layer, in it one data set of each kind of numbers.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "run/checkpoint.hpp"
#include "run/hdf5.hpp"

namespace rehearse::run {

namespace {

constexpr const char* schema = "rehearse.checkpoint/1";
constexpr const char* schema_of_ranks = "rehearse.checkpoint-of-ranks/1";
constexpr std::size_t kept = 2;

struct Kind {
    const char* name;
    std::vector<float> LayerState::*numbers;
};
constexpr Kind kinds[] = {{"weights", &LayerState::weights},
                          {"momentum", &LayerState::momentum},
                          {"second_moment", &LayerState::second_moment},
                          {"lagged_gradients", &LayerState::lagged},
                          {"statistics", &LayerState::statistics}};

std::string group_name(std::size_t layer) { return fmt::format("layer{:04}", layer); }

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
    throw BackendError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

/// What is in a file, or in a folder's list of files, is on the disk.
void flush(const std::filesystem::path& path) {
    const int file = open(path.c_str(), O_RDONLY);
    if (file < 0) fail(path, "cannot be opened");
    const bool done = fsync(file) == 0;
    close(file);
    if (!done) fail(path, "cannot be flushed to the disk");
}

template <typename State>
void write_header(const H5& file, const char* which, const State& state) {
    write_attribute(file, "schema", std::string{which});
    write_attribute(file, "network", state.network);
    write_attribute(file, "optimizer", state.optimizer);
    write_attribute(file, "steps", state.steps);
    write_attribute(file, "global_batch", state.global_batch);
    write_attribute(file, "seed", static_cast<std::int64_t>(state.seed));
}

std::string rank_name(std::size_t rank) { return fmt::format("rank{:06}", rank); }

void write_file(const std::filesystem::path& path, const RankStates& states) {
    const H5 file = make_file(path);
    write_header(file, schema_of_ranks, states);
    write_attribute(file, "plan", states.plan);
    write_attribute(file, "ranks", static_cast<std::int64_t>(states.ranks.size()));
    for (std::size_t rank = 0; rank < states.ranks.size(); ++rank) {
        if (!states.ranks[rank].empty()) write(file, rank_name(rank), states.ranks[rank]);
    }
}

void write_file(const std::filesystem::path& path, const Checkpoint& checkpoint) {
    const H5 file = make_file(path);
    write_header(file, schema, checkpoint);
    write_attribute(file, "loss_scale", static_cast<double>(checkpoint.program.loss_scale));
    write_attribute(file, "good_steps", checkpoint.program.good_steps);
    write_attribute(file, "updates", checkpoint.program.updates);
    write_attribute(file, "steps_begun", checkpoint.program.begun);
    write_attribute(file, "lagged_scale", static_cast<double>(checkpoint.program.made_scale));
    for (std::size_t i = 0; i < checkpoint.layers.size(); ++i) {
        const H5 group = make_group(file, group_name(i));
        for (const Kind& kind : kinds) {
            const std::vector<float>& numbers = checkpoint.layers[i].*kind.numbers;
            if (!numbers.empty()) write(group, kind.name, numbers);
        }
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

void expect(const H5& file, const std::string& where, const char* name, const std::string& right) {
    const std::string found = text_attribute(file, name, where);
    if (found != right) throw InputError(fmt::format("{}: is of {} '{}', not of '{}'", where, name, found, right));
}

template <typename State>
void save_file(const std::filesystem::path& folder, const State& state) {
    const std::filesystem::path file = folder / fmt::format("step-{:06}.h5", state.steps);
    const std::filesystem::path unfinished = folder / "unfinished.tmp";
    write_file(unfinished, state);
    flush(unfinished);
    if (std::rename(unfinished.c_str(), file.c_str()) != 0) fail(file, "cannot be renamed to");
    flush(folder);
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

Checkpoint load(const std::filesystem::path& path, const Schedule& schedule) {
    const std::string where = path.string();
    const H5 file = open_file(path);
    if (text_attribute(file, "schema", where) == schema_of_ranks) {
        throw InputError(fmt::format(
            "{}: has the states of the ranks of plan '{}', who go their own ways: only that plan goes on from "
            "it, not '{}'",
            where, text_attribute(file, "plan", where), schedule.plan));
    }
    expect(file, where, "schema", schema);
    Checkpoint checkpoint = empty_checkpoint(schedule);
    expect(file, where, "network", checkpoint.network);
    expect(file, where, "optimizer", checkpoint.optimizer);
    checkpoint.steps = integer_attribute(file, "steps", where);
    checkpoint.global_batch = integer_attribute(file, "global_batch", where);
    checkpoint.seed = static_cast<std::uint64_t>(integer_attribute(file, "seed", where));
    checkpoint.program.loss_scale = static_cast<float>(number_attribute(file, "loss_scale", where));
    checkpoint.program.good_steps = integer_attribute(file, "good_steps", where);
    checkpoint.program.updates = integer_attribute(file, "updates", where);
    checkpoint.program.begun = integer_attribute(file, "steps_begun", where);
    checkpoint.program.made_scale = static_cast<float>(number_attribute(file, "lagged_scale", where));
    for (std::size_t i = 0; i < checkpoint.layers.size(); ++i) {
        const H5 group = find(file, group_name(i));
        if (!group) throw InputError(fmt::format("{}: has no layer {}", where, i));
        for (const Kind& kind : kinds) {
            std::vector<float>& numbers = checkpoint.layers[i].*kind.numbers;
            const H5 stored = find(group, kind.name);
            const std::vector<float> read = stored ? floats_in(stored, where) : std::vector<float>{};
            if (read.size() != numbers.size()) {
                throw InputError(fmt::format("{}: layer {} has {} numbers as {}, but '{}' of the network has {}", where,
                                             i, read.size(), kind.name, schedule.network.layers[i].name,
                                             numbers.size()));
            }
            numbers = read;
        }
    }
    return checkpoint;
}

RankStates load(const std::filesystem::path& path, const RankStates& like) {
    const std::string where = path.string();
    const H5 file = open_file(path);
    if (text_attribute(file, "schema", where) == schema) {
        throw InputError(
            fmt::format("{}: has one network's state, but the ranks of plan '{}' go their own ways and need "
                        "their own: it goes on from checkpoints of that plan only",
                        where, like.plan));
    }
    expect(file, where, "schema", schema_of_ranks);
    expect(file, where, "network", like.network);
    expect(file, where, "optimizer", like.optimizer);
    expect(file, where, "plan", like.plan);
    RankStates states = like;
    states.steps = integer_attribute(file, "steps", where);
    states.global_batch = integer_attribute(file, "global_batch", where);
    states.seed = static_cast<std::uint64_t>(integer_attribute(file, "seed", where));
    if (integer_attribute(file, "ranks", where) != static_cast<std::int64_t>(like.ranks.size())) {
        throw InputError(fmt::format("{}: is of another number of ranks than {}", where, like.ranks.size()));
    }
    for (std::size_t rank = 0; rank < states.ranks.size(); ++rank) {
        const H5 stored = find(file, rank_name(rank));
        states.ranks[rank] = stored ? floats_in(stored, where) : std::vector<float>{};
    }
    return states;
}

}  // namespace rehearse::run
