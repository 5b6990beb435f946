// SPDX-License-Identifier: Apache-2.0
// Threads of a rank that compute parts of its batch at the same time, each with memory of its own: Crossbow's learners,
// each of which trains a model, or Project Adam's threads, which update one model without locks.
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/schedule.hpp"
#include "run/data/prefetch.hpp"
#include "run/program.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// `shared` += factor x by, element by element while others do the same: each element is read and written by relaxed
/// atomic operations, and nothing holds them together. So an addition that comes between another one's read and write
/// is lost (Chilimbi et al. 2014, section 3.2; Recht et al. 2011): of n threads at most the n - 1 others' under way.
/// Where no two meet in an element all are there.
void add_unlocked(std::span<float> shared, std::span<const float> by, float factor);
/// Copies values that others are adding to, element by element.
void read_unlocked(std::span<float> shared, std::span<float> to);

class WorkerThreads {
public:
    struct Learner {
        std::unique_ptr<Program> program;
        std::vector<float> apart;    // from the average model, when the step began; empty: nothing pulls
        std::vector<double> added;   // unlocked: the sum of its updates of this step
        bool pulled = false;         // it has given up its share of `apart`
        bool has_inverses = false;   // of this step (K-FAC)
        double pace = 1, share = 0;  // share: of `apart`
        double loss = 0;             // of this step's samples
        double end = 0;              // of its last part, by clock's now()
    };

    /// One thread and program for each learner of a rank, or for each of options.unlocked; for one part of the rank's
    /// batch, all at the first weights. `schedule` and `options` outlive the threads.
    WorkerThreads(const Schedule& schedule, const Options& options, const KernelSelection& selection,
                  const Hyperparameters& hyperparameters, std::uint64_t weights_seed);
    ~WorkerThreads();
    WorkerThreads(const WorkerThreads&) = delete;
    WorkerThreads& operator=(const WorkerThreads&) = delete;

    std::span<Learner> learners() { return learners_; }
    /// The parts of a rank's batch that the next step takes.
    std::span<Batch> parts() { return parts_; }
    /// By part of the last step: the learner that took it.
    std::span<const int> taken() const { return taken_; }
    /// The one model of threads without locks; else empty.
    std::span<float> model() { return model_; }

    /// The threads take all parts: each as many, one after the other; or whoever is idle first the next one. Between
    /// begin and end nothing above may be touched.
    void begin(std::uint64_t dropout_seed, std::int64_t first_sample);
    void end();

private:
    void work(std::size_t learner);
    void take_parts(std::size_t learner);
    void train(Learner& learner, int part);
    void update(Learner& learner);

    const Options& options_;
    Schedule one_part_;  // on one rank
    std::vector<Learner> learners_;
    std::vector<Batch> parts_;
    std::vector<int> taken_;
    std::vector<float> model_;
    float learning_rate_;
    struct Task {
        std::uint64_t dropout_seed = 0;
        std::int64_t first_sample = 0;
    };
    Task task_;  // of this step
    std::atomic<int> next_ = 0;
    bool running_ = false, stop_ = false;
    std::mutex mutex_;  // of failure_
    std::exception_ptr failure_;
    std::barrier<> gate_;  // passed at each step's beginning and end
    std::vector<std::jthread> threads_;
};

}  // namespace rehearse::run
