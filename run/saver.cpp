// SPDX-License-Identifier: Apache-2.0
#include "run/saver.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "core/error.hpp"
#include "kernels/comm/idle.hpp"

namespace rehearse::run {

namespace {

void check_folder(const Options& options) {
    const std::filesystem::path folder = options.checkpoint;
    if (const auto why = why_no_checkpoints()) throw BackendError(fmt::format("--checkpoint: {}", *why));
    if (std::filesystem::exists(folder) && !std::filesystem::is_directory(folder)) {
        throw InputError(fmt::format("--checkpoint {}: is a file, not a folder", options.checkpoint));
    }
    std::error_code failed;
    std::filesystem::create_directory(folder, failed);
    if (!std::filesystem::is_directory(folder) || access(folder.c_str(), W_OK) != 0) {
        throw InputError(fmt::format("--checkpoint {}: no folder that can be written to", options.checkpoint));
    }
    const auto file = newest(folder);
    if (file && !options.resume) {
        throw InputError(fmt::format("--checkpoint {}: there is {} already; --resume goes on from it",
                                     options.checkpoint, file->filename().string()));
    }
}

}  // namespace

int Saver::begin() {
    if (options_.checkpoint.empty()) return 0;
    Checkpoint state = empty_checkpoint(schedule_);
    if (world_.rank() == 0) {
        check_folder(options_);
        const auto file = options_.resume ? newest(options_.checkpoint) : std::nullopt;
        if (file) state = checked(load(*file, schedule_), *file);
    }
    double steps = static_cast<double>(state.steps);
    world_.broadcast(std::as_writable_bytes(std::span{&steps, 1}), 0, kernels::considerate());
    if (steps > 0) scatter(world_, schedule_, state, program_);
    return static_cast<int>(steps);
}

Checkpoint Saver::checked(Checkpoint state, const std::filesystem::path& file) const {
    const std::string where = file.string();
    if (state.seed != options_.seed) {
        throw InputError(fmt::format("{}: was trained with --seed {}, not {}", where, state.seed, options_.seed));
    }
    if (state.global_batch != global_batch(schedule_)) {
        throw InputError(fmt::format("{}: was trained with {} samples a step, not {}: its steps are others", where,
                                     state.global_batch, global_batch(schedule_)));
    }
    if (state.steps >= options_.steps) {
        throw InputError(fmt::format("{}: has {} steps already; ask for more with --steps", where, state.steps));
    }
    return state;
}

void Saver::after(int step) {
    if (options_.checkpoint.empty()) return;
    if ((step + 1) % options_.checkpoint_every != 0 && step + 1 < options_.steps) return;
    const std::vector<float> applied = floats_of(program_.tensors().applied());
    if (schedule_.lag > 0) {  // what the next step would do first
        program_.tensors().keep_gradients();
        executor_.sum_kept_gradients();
    }
    Checkpoint state = gather(world_, schedule_, program_);
    if (schedule_.lag > 0) assign(program_.tensors().applied(), applied);
    if (world_.rank() != 0) return;
    state.steps = step + 1;
    state.seed = options_.seed;
    save(options_.checkpoint, state);
}

}  // namespace rehearse::run
