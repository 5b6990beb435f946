// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint/saver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/methods/lag.hpp"
#include "kernels/comm/idle.hpp"

namespace rehearse::run {

namespace {

/// Holds the folder from now on. Returns the checkpoint to go on from, if there is one.
std::optional<std::filesystem::path> hold(std::optional<HeldFolder>& folder, const Options& options) {
    if (const auto why = why_no_checkpoints()) throw BackendError(fmt::format("--checkpoint: {}", *why));
    folder.emplace(options.checkpoint);
    auto file = newest(options.checkpoint);
    if (file && !options.resume) {
        throw InputError(fmt::format("--checkpoint {}: there is {} already; --resume goes on from it",
                                     options.checkpoint, file->filename().string()));
    }
    return file;
}

/// By what weights are updated, as users say it.
std::string hyperparameters(const Options& options) {
    return fmt::format("--learning-rate {} --momentum {} --weight-decay {} --beta2 {} --epsilon {}",
                       options.learning_rate, options.momentum, options.weight_decay, options.second_factor,
                       options.epsilon);
}

template <typename State>
State checked(State state, const Options& options, std::int64_t global_batch, const std::filesystem::path& file) {
    const std::string where = file.string();
    if (state.seed != options.seed) {
        throw InputError(fmt::format("{}: was trained with --seed {}, not {}", where, state.seed, options.seed));
    }
    if (state.global_batch != global_batch && !options.rebatch) {
        throw InputError(fmt::format(
            "{}: was trained with {} samples a step, not {}: its steps are others; --rebatch goes on with {}", where,
            state.global_batch, global_batch, global_batch));
    }
    if (state.steps >= options.steps) {
        throw InputError(fmt::format("{}: has {} steps already; ask for more with --steps", where, state.steps));
    }
    return state;
}

/// `counts`: how many numbers each rank has. InputError where the file has others.
void check_counts(const RankStates& states, const std::vector<double>& counts, const std::filesystem::path& file) {
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        const auto found = static_cast<double>(states.ranks[rank].size());
        if (found == counts[rank]) continue;
        throw InputError(fmt::format("{}: has {} numbers of rank {}, which has {}: it is of another network",
                                     file.string(), found, rank, counts[rank]));
    }
}

/// A reference of ranks with states of their own begins at the first step, and makes all of them alike.
void check_reference(const RankStates& states, const Options& options, const std::filesystem::path& file) {
    const std::string own = hyperparameters(options);
    if (!options.check_gradients || states.hyperparameters.empty() || states.hyperparameters == own) return;
    throw InputError(fmt::format(
        "{}: was trained with {}, not {}: --check-gradients compares with a training from the first step on that is "
        "alike in all",
        file.string(), states.hyperparameters, own));
}

bool saves_after(const Options& options, int step, bool last = false) {
    if (options.checkpoint.empty()) return false;
    return last || (step + 1) % options.checkpoint_every == 0 || step + 1 == options.steps;
}

}  // namespace

Beginning NetworkSaver::begin() {
    if (options_.checkpoint.empty()) return {};
    Checkpoint state = empty_checkpoint(schedule_);
    if (world_.rank() == 0) {
        if (const auto file = hold(folder_, options_))
            state = checked(load(*file, schedule_), options_, global_batch(schedule_), *file);
    }
    std::array begin{state.steps, state.samples};
    world_.broadcast(std::as_writable_bytes(std::span{begin}), 0, kernels::considerate());
    beginning_ = {begin[0], begin[1]};
    if (beginning_.step == 0) return beginning_;
    scatter(world_, schedule_, state, program_);
    Beginning all = beginning_;
    if (options_.check_gradients) all.checkpoint = std::make_shared<const Checkpoint>(std::move(state));
    return all;
}

void NetworkSaver::after(int step, bool last) {
    if (!saves_after(options_, step, last)) return;
    const std::vector<float> applied = floats_of(program_.tensors().applied());
    if (schedule_.methods.get<Lag>().steps > 0) {  // what the next step would do first
        program_.tensors().keep_gradients();
        executor_.sum_kept_gradients();
    }
    Checkpoint state = gather(world_, schedule_, program_);
    if (schedule_.methods.get<Lag>().steps > 0) assign(program_.tensors().applied(), applied);
    if (world_.rank() != 0) return;
    state.steps = step + 1;
    state.samples = beginning_.samples + (state.steps - beginning_.step) * global_batch(schedule_);
    state.seed = options_.seed;
    save(options_.checkpoint, state);
}

RankStates RankSaver::empty() const {
    const std::string threads = options_.unlocked > 0 ? fmt::format(" --unlocked {}", options_.unlocked) : "";
    return {.network = schedule_.network.name,
            .optimizer = std::string{to_string(schedule_.optimizer)},
            .plan = schedule_.plan + threads,
            .hyperparameters = hyperparameters(options_),
            .global_batch = global_batch(schedule_),
            .seed = options_.seed,
            .ranks = std::vector<std::vector<float>>(static_cast<std::size_t>(job_.size()))};
}

std::vector<float> RankSaver::own() const {
    std::vector<float> numbers;
    visit_([&](std::span<float> values) { numbers.insert(numbers.end(), values.begin(), values.end()); });
    return numbers;
}

Beginning RankSaver::begin() {
    if (options_.checkpoint.empty()) return {};
    RankStates states = empty();
    std::vector<float> numbers = own();
    const auto count = static_cast<double>(numbers.size());
    const std::vector<double> counts = job_.all_gather({&count, 1});
    if (job_.rank() == 0) {
        if (const auto file = hold(folder_, options_)) {
            states = checked(load(*file, empty()), options_, global_batch(schedule_), *file);
            check_counts(states, counts, *file);
            check_reference(states, options_, *file);
        }
    }
    job_.broadcast(std::as_writable_bytes(std::span{&states.steps, 1}), 0, kernels::considerate());
    if (states.steps == 0) return {};
    for (std::int64_t rank = 1; rank < job_.size(); ++rank) {
        if (job_.rank() == 0) job_.send(std::as_bytes(std::span{states.ranks[static_cast<std::size_t>(rank)]}), rank);
        if (job_.rank() == rank) job_.receive(std::as_writable_bytes(std::span{numbers}), 0);
    }
    if (job_.rank() == 0) numbers = states.ranks.front();
    std::size_t from = 0;
    visit_([&](std::span<float> values) {
        require(from + values.size() <= numbers.size(), "as many numbers as were saved of this rank");
        std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(from), values.size(), values.begin());
        from += values.size();
    });
    return {states.steps, states.steps * global_batch(schedule_)};
}

void RankSaver::after(int step, bool last) {
    if (!saves_after(options_, step, last)) return;
    const std::vector<float> numbers = own();
    const std::vector<std::vector<std::byte>> all = job_.gather(std::as_bytes(std::span{numbers}));
    if (job_.rank() != 0) return;
    RankStates states = empty();
    states.steps = step + 1;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        states.ranks[rank].resize(all[rank].size() / sizeof(float));
        if (!all[rank].empty()) std::memcpy(states.ranks[rank].data(), all[rank].data(), all[rank].size());
    }
    save(options_.checkpoint, states);
}

int RankSaver::steps_from(int step) const {
    int count = 1;
    while (step + count < options_.steps && !saves_after(options_, step + count - 1)) ++count;
    return count;
}

}  // namespace rehearse::run
