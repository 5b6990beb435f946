// SPDX-License-Identifier: Apache-2.0
// (Schedule, kernels) in, trained weights and measured Timeline out. Every MPI rank calls train with the same Schedule.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "kernels/choices.hpp"

namespace rehearse::run {

/// MPI from its start to its end; the one object that main holds. Without mpirun it is a job of one rank. Sets how many
/// OpenMP threads the kernels of this rank use: one, or OMP_NUM_THREADS (of the calling thread: train on the same one).
class Session {
public:
    Session(int& argc, char**& argv);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    RankIndex rank() const;
    std::int64_t size() const;
    std::int64_t local_size() const;  // ranks on this host
    int threads() const;              // of each rank's kernels: 1, or OMP_NUM_THREADS
    /// Ends this rank, by itself: MPI's own end would wait for ranks that have died.
    [[noreturn]] void leave(int exit_code) const;
    /// Ends the whole job: what a rank calls when it cannot go on, so that the others do not wait for it.
    [[noreturn]] void abort(int exit_code) const;
    /// What main does in a job: runs `body` and returns its exit code. When `body` throws, "program: rank 1: why" goes
    /// to stderr and the whole job ends, with 2 for an InputError, 4 for an InfeasibleError and 3 for everything else;
    /// nobody waits for the rank that failed. An InputError that strikes all ranks alike is said once and returned.
    int run(std::string_view program, const std::function<int()>& body) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Of a longer training the timeline has its last steps: memory does not grow with how long one trains.
inline constexpr int most_steps_in_timeline = 1000;

/// Large: one member an option of the command line.
struct Options {
    int steps = 5;                       // in all, those before the checkpoint that it goes on from included
    std::int64_t first_sample = 0;       // that the first step begins at, of the training's samples
    std::string backend{}, algorithm{};  // empty: the best of each layer
    std::string device = "cpu";          // or "cuda"
    bool graphs = false;                 // its kernels are started as graphs: run/step_graphs.hpp
    int learners = 1;                    // of one rank, on one device: run/methods/learners.hpp
    /// Of a rank's learners (Averaging::learners): whether the next part of its batch goes to who is idle first, or
    /// each takes as many; and how many times as long each takes for its parts (it sleeps the rest). Empty: no longer.
    bool first_idle = false;
    std::vector<double> learner_paces{};
    /// Of 1, 2, ... learners a rank, each with as large a part of the batch, what they do; the schedule is one of
    /// these, and learners are added and removed by what they come to (run/methods/learner_tuner). Empty: they stay.
    std::vector<std::shared_ptr<const Schedule>> by_learners{};
    double learner_gain = 0.05;  // of samples a second, that another learner has to bring
    int tuning_steps = 10;       // from which samples a second are measured, after one that is not
    /// With servers, above 0: of whom nothing is heard for so long has died, and is not waited for; then a plan's
    /// quorum ends the training, too. 0: all ranks live to the end.
    Seconds patience{};
    int unlocked = 0;  // threads of a rank that update its one model without locks, with local=N; 0: one at a time
    Bytes scratch_limit = kernels::default_scratch_limit;
    kernels::Choices tuned{};  // followed where no backend and no algorithm is asked for; the same on all ranks
    std::uint64_t seed = 1;
    float learning_rate = 0.05F, momentum = 0.9F, weight_decay = 0;
    float second_factor = 0.999F;  // beta 2 of Adam and LAMB
    float epsilon = 0;             // what keeps their divisors from 0; 0: default_epsilon
    float loss_scale = 65536;      // of fp16 and mixed, at the start; halved when gradients overflow
    int growth_interval = 2000;    // and doubled after so many steps without
    /// Ends the training once the loss, as a mean over the last so many samples before each of them was learnt, is so
    /// low; 0: after `steps`.
    double target_loss = 0;
    std::int64_t target_samples = 1024;
    bool check_gradients = false;       // compare with the same global batch on one rank; the result's gradient_error
    bool results = true;                // weights and gradients into the result
    bool record = true;                 // events into the timeline
    bool keep_steps = true;             // all into the result; else the last alone: `report` is told each
    std::string data = "synthetic";     // or "climate", "idx:FOLDER", "FILE.h5"
    std::int64_t ignored_label = -100;  // asks for nothing, in a file (PyTorch's default of ignore_index)
    bool shuffle = true;                // samples of files, anew each epoch; else they come as they lie
    std::string save{}, save_gradients{};  // HDF5 files for the trained weights, the last step's gradients; or empty
    std::string checkpoint{};              // the folder to save to; empty: nothing is saved
    int checkpoint_every = 1;              // steps
    bool resume = false;                   // go on from the newest checkpoint there, if there is one
    bool rebatch = false;     // which may have been trained with other samples a step: goes on at its next sample
    std::string stop_file{};  // once it is there: the step under way is the last; what is asked for at the end is saved
    /// What check_gradients compares with where the plan cuts the network or computes in 16 bits: the whole of it on
    /// one rank in fp32, a step being one micro-batch.
    std::shared_ptr<const Schedule> single_rank{};
    /// Called once by each rank that trains, when its weights have their first values: who gave them (Layer::given) may
    /// let go of those of layers that were given nothing else. Empty: nothing is called.
    std::function<void()> begun{};
};

/// What a file that --save or --checkpoint wrote has for the network's layers, by their names, is what they begin with
/// (Layer::given). InputError where it lacks a layer, or has one of another size; BackendError without HDF5.
void give_weights(Network& network, const std::filesystem::path& file);

/// Layers with weights of a network that has grown: as they were, as others were, and drawn anew.
struct Grown {
    int kept = 0, copied = 0, fresh = 0;
};
/// As give_weights, of the layers that the file has; other ones are drawn anew or, with `copies`, begin as the file's
/// layer of the same name with a lower number does, number modulo how many the file has (progressive stacking: Gong et
/// al. 2019). InputError where the file has no layer of the network, or one of another size.
Grown grow_weights(Network& network, const std::filesystem::path& file, bool copies);

/// 0.05 for SGD, 1e-3 for Adam, 1e-2 for LAMB: what small networks learn with.
float default_learning_rate(Optimizer optimizer);
/// 1e-8 for Adam (Kingma and Ba 2015), 1e-6 for LAMB (You et al. 2020).
float default_epsilon(Optimizer optimizer);

struct StepReport {
    double loss = 0;                // mean over the global batch, before the step's update
    Seconds seconds, exposed_comm;  // of the rank that took longest
    double samples_per_s = 0;
    Seconds input_wait;    // for the samples, before the step, of the rank that waited longest
    double mean_iou = -1;  // intersection over union, mean over the classes that occur; -1: labels are not of pixels
    float loss_scale = 1;  // of the gradients made in this step
    bool skipped = false;  // nothing was updated: gradients had overflowed
};

/// Some steps with as many learners a rank.
struct TuningPhase {
    int learners = 1, steps = 0;
    double samples_per_s = 0;    // of the median step, the first one left out
    std::string_view then = "";  // "add", "remove" or "stay"; empty: the training ended
};

/// What a training has come to that ends at a mean loss.
struct TargetLoss {
    double mean = 0;           // of the last samples before they were learnt
    std::int64_t samples = 0;  // so many
    bool reached = false;
};

struct Result {
    Timeline timeline;  // of the last steps; on rank 0: of all ranks, clocks aligned; elsewhere: of this rank
    std::vector<StepReport> steps;  // or, without Options::keep_steps, the last; with servers all
    int first_step = 0;             // of steps: more than 0 where it went on from a checkpoint
    std::int64_t samples = 0;       // that the weights were trained on, those before the checkpoint included
    std::vector<float> weights;     // of all buckets, one after the other; empty without Options::results
    std::vector<float> gradients;   // of the last step, likewise
    std::vector<TuningPhase> phases{};
    std::vector<std::int64_t> lost{};  // workers that died
    std::vector<std::int64_t> cut{};   // workers that were told to stop as a quorum was through
    std::int64_t speaker = 0;          // the first rank of the job that is left
    TargetLoss target{};               // where one was asked for
    /// With servers: how many updates were by gradients at weights that 0, 1, 2, ... other updates had come after.
    std::vector<std::int64_t> staleness{};
    std::string left_to_host{};      // of a device: "1 of 12 layers: matmul", or empty
    double gradient_error = -1;      // see run/reference/gradient_check.hpp; -1: not asked for
    double gradient_tolerance = -1;  // derived there; an error above it is a failed check
};

/// Trains on the data that the options name. `report` is called on rank 0 after each step.
/// InputError: the schedule is for another number of ranks, or holds what run cannot execute.
Result train(const Session& session, const Schedule& schedule, const Options& options,
             const std::function<void(int step, const StepReport&)>& report = {});
/// What each rank of a schedule computes, all at the same time, with nothing sent, received or waited for: numbers of
/// no meaning take the place of what would come. Goes on for so long, and for three training steps at least. The
/// timeline has the compute steps of this rank (of a server: of some rank).
Timeline time_compute_only(const Session& session, const Schedule& schedule, const Options& options, Seconds time);

}  // namespace rehearse::run
