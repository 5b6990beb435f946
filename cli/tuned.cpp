// SPDX-License-Identifier: Apache-2.0
#include "cli/tuned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <sstream>

#include "cli/choice.hpp"
#include "cli/command_line.hpp"
#include "core/error.hpp"
#include "kernels/threads.hpp"
#include "models/models.hpp"
#if REHEARSE_HAS_MPI
#include "kernels/comm/communicator.hpp"
#include "kernels/comm/idle.hpp"
#endif

namespace rehearse::cli {

namespace {

using kernels::tuned::Winner;

#if REHEARSE_HAS_MPI
// The text of rank 0 on all ranks. Ranks may see different states of a file that another process writes to.
std::string from_rank_0(std::string text) {
    const kernels::Communicator world = kernels::Communicator::world();
    if (world.size() == 1) return text;
    auto size = static_cast<std::int64_t>(text.size());
    world.broadcast(std::as_writable_bytes(std::span{&size, 1}), 0, kernels::considerate());
    text.resize(static_cast<std::size_t>(size));
    world.broadcast(std::as_writable_bytes(std::span{text}), 0, kernels::considerate());
    return text;
}
bool is_rank_0() { return kernels::Communicator::world().rank() == 0; }
#else
std::string from_rank_0(std::string text) { return text; }
bool is_rank_0() { return true; }
#endif

// A line a choice; problems, names and algorithms have no spaces.
std::string to_text(const kernels::Choices& choices) {
    std::string text;
    for (const auto& [problem, choice] : choices) {
        const auto at = std::ranges::find(kernels::backends(), choice.backend) - kernels::backends().begin();
        text += fmt::format("{} {} {}\n", problem, at, choice.threads);
    }
    return text;
}

kernels::Choices from_text(const std::string& text) {
    kernels::Choices choices;
    std::istringstream lines{text};
    std::string problem;
    std::size_t backend = 0;
    int threads = 0;
    while (lines >> problem >> backend >> threads) choices[problem] = {kernels::backends()[backend], threads};
    return choices;
}

}  // namespace

void add_tune(CommandLine& app, Tune& tune, std::vector<std::pair<std::string_view, Tune>> words,
              const std::string& help) {
    add_choice<Tune>(app, "--tune", tune, std::move(words), help);
}

void add_scratch_limit(CommandLine& app, Bytes& limit) {
    const auto set = [&limit](const std::string& text) {
        const Bytes given = quantity_of<Bytes>("--scratch-limit", text);
        if (given < Bytes{}) throw InputError(fmt::format("--scratch-limit {}: at least 0B", text));
        limit = given;
    };
    app.add_option_function<std::string>("--scratch-limit", set,
                                         "most memory of a kernel beyond its tensors; who needs more is left out")
        ->option_text("SIZE")
        ->default_str(to_string(kernels::default_scratch_limit));
}

kernels::Choices tuned_for_all(Bytes scratch_limit, const Common& common) {
    if (!kernels::tuned::absent().empty()) {
        if (common.verbose > 0 && is_rank_0())
            talk(common, fmt::format("nothing is tuned: {}", kernels::tuned::absent()));
        return {};
    }
    std::string text;
    if (is_rank_0()) {
        const std::string fingerprint = kernels::tuned::fingerprint(kernels::threads_now());
        const std::vector<Winner> winners = kernels::tuned::load(models::tuned_path(), fingerprint);
        text = to_text(kernels::tuned::choices(winners, scratch_limit));
    }
    return from_text(from_rank_0(text));
}

void say_how_much_is_tuned(const Schedule& schedule, const kernels::Choices& tuned, Bytes scratch_limit,
                           const Common& common) {
    if (tuned.empty()) return;
    kernels::KernelSelection selection;
    selection.scratch_limit = scratch_limit;
    selection.tuned = tuned;
    int layers = 0, followed = 0;
    for (const Layer& layer : schedule.network.layers) {
        if (!has_pass(layer.op, Pass::forward)) continue;
        ++layers;
        const auto passes = kernels::choose_passes(layer.op, micro_batch_size(schedule), DataType::f32, selection);
        if (kernels::count_tuned(layer.op, micro_batch_size(schedule), DataType::f32, selection, passes) > 0)
            ++followed;
    }
    if (followed == 0) return;
    talk(common, fmt::format("{} of {} layers run kernels tuned for this host ({}; --tune off leaves them)", followed,
                             layers, models::tuned_path()));
}

}  // namespace rehearse::cli
