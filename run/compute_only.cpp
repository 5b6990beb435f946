// SPDX-License-Identifier: Apache-2.0
// What ranks compute of a schedule, timed without what they send each other.
#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "kernels/comm/idle.hpp"
#include "run/clock.hpp"
#include "run/data/feed.hpp"
#include "run/job_check.hpp"
#include "run/program.hpp"
#include "run/random.hpp"
#include "run/trainer.hpp"

namespace rehearse::run {

namespace {

// What would come from other ranks: of the size of activations, as zeros are multiplied faster by some kernels.
void fill_received(Program& program) {
    Uniform random{1};
    for (ReadyStep& ready : program.steps()) {
        const auto* collective = std::get_if<Communicate>(&ready.step->action);
        const bool of_layer = collective != nullptr && !collective->of_bucket();
        if (!of_layer && !std::holds_alternative<Recv>(ready.step->action)) continue;
        std::vector<float> values(ready.data.size());
        for (float& value : values) value = static_cast<float>(random.next() - 0.5);
        assign(ready.data, values);
    }
}

class ComputeOnly {
public:
    ComputeOnly(const Schedule& schedule, RankIndex rank, const Options& options)
        : seed_(options.seed),
          first_sample_(first_sample(schedule, shard_of(schedule.mesh, rank))),
          program_(schedule, rank, selection_of(options, nullptr), key(options.seed, weights_of),
                   hyperparameters_of(options)),
          feed_(schedule, key(options.seed, data_of), "synthetic", true, options.ignored_label, first_sample_) {
        fill_received(program_);
    }

    void train_step() {
        feed_.take(iteration_, program_);
        program_.begin_step();
        for (ReadyStep& ready : program_.steps()) {
            if (ready.step->stream != Stream::compute) continue;
            Event event;
            event.iteration = iteration_;
            event.stream = Stream::compute;
            event.step = ready.step->name;
            event.start = Seconds{now()};
            program_.compute(ready, seed_, first_sample_);
            event.end = Seconds{now()};
            timeline_.events.push_back(std::move(event));
        }
        program_.end_step();
        ++iteration_;
    }

    int iterations() const { return iteration_; }
    Timeline take() { return std::move(timeline_); }

private:
    std::uint64_t seed_;
    std::int64_t first_sample_;
    Program program_;
    Feed feed_;
    int iteration_ = 0;
    Timeline timeline_;
};

}  // namespace

Timeline time_compute_only_on(const kernels::Communicator& all, const Schedule& schedule, RankIndex rank,
                              const Options& options, Seconds time) {
    rehearse::check(schedule);
    check_program(schedule);
    ComputeOnly own{schedule, RankIndex{rank % ranks(schedule.mesh)}, options};
    all.barrier(kernels::attentive());
    const double start = now();
    own.train_step();
    const double first = now() - start;
    const std::vector<double> firsts = all.all_gather({&first, 1});
    const double until = now() + std::max(time.value, 2 * std::ranges::max(firsts));
    while (now() < until || own.iterations() < 3) own.train_step();
    all.barrier(kernels::attentive());
    Timeline timeline = own.take();
    timeline.measured = true;
    timeline.ranks = 1;
    return timeline;
}

Timeline time_compute_only(const Session& session, const Schedule& schedule, const Options& options, Seconds time) {
    const kernels::Communicator all = kernels::Communicator::world();
    require(all.size() == session.size(), "a session is the whole job");
    return time_compute_only_on(all, schedule, RankIndex{all.rank()}, options, time);
}

}  // namespace rehearse::run
