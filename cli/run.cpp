// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/growth.hpp"
#include "cli/job.hpp"
#include "cli/learner_options.hpp"
#include "cli/run_report.hpp"
#include "cli/run_training.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "core/precision.hpp"
#include "run/limits.hpp"
#include "run/train.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

void check_growth(const RunOptions& options) {
    if (options.copy_layers && options.growth.empty())
        throw InputError("--copy-layers: of a network that --grow names");
    if (options.growth.empty()) return;
    growth_phases(options.job.model, options.growth, options.run.steps);
    if (options.run.save.empty()) {
        throw InputError("--grow: with --save FILE.h5, in which each network leaves its weights for the next one");
    }
    const bool others = !options.run.checkpoint.empty() || options.run.resume || options.most_learners > 0 ||
                        options.run.target_loss > 0 || !options.patience.empty() || !options.run.stop_file.empty();
    if (others) {
        throw InputError(
            "--grow: not with --checkpoint, --resume, --stop-file, --target-loss, --tune-learners or --patience, which "
            "are of one network");
    }
}

/// An option that changes nothing without what it belongs to.
struct Belonging {
    const char* option;
    const char* of;
    bool (*there)(const RunOptions& options);
};

bool has_moments_of_squares(const RunOptions& o) { return o.job.optimizer != Optimizer::sgd; }
bool reads_h5(const RunOptions& o) { return o.run.data.ends_with(".h5") || o.run.data.ends_with(".hdf5"); }
bool reads_file(const RunOptions& o) { return reads_h5(o) || o.run.data.starts_with("idx:"); }
bool tunes_learners(const RunOptions& o) { return o.most_learners > 0; }

constexpr Belonging belongings[] = {
    {"--beta2", "of --optimizer adam or lamb", has_moments_of_squares},
    {"--epsilon", "of --optimizer adam or lamb", has_moments_of_squares},
    {"--loss-scale", "of --precision fp16, mixed or autocast, which scale their losses",
     [](const RunOptions& o) { return scales_loss(o.job.precision); }},
    {"--target-samples", "of --target-loss", [](const RunOptions& o) { return o.run.target_loss > 0; }},
    {"--gain", "of --tune-learners", tunes_learners},
    {"--tuning-steps", "of --tune-learners", tunes_learners},
    {"--order", "of the samples of a file: --data idx:FOLDER or FILE.h5", reads_file},
    {"--ignore-label", "of --data FILE.h5", reads_h5},
    {"--checkpoint-every", "of --checkpoint", [](const RunOptions& o) { return !o.run.checkpoint.empty(); }},
};

void check_belongings(const CommandLine& app, const RunOptions& options) {
    for (const Belonging& each : belongings) {
        if (app.has(each.option) && !each.there(options)) throw InputError(fmt::format("{}: {}", each.option, each.of));
    }
}

void check(const RunOptions& options) {
    check_writable(options.trace, options.common);
    check_writable(options.common.output, options.common);
    if (!options.trace.empty()) trace::format_of(options.trace);
    if (options.most_learners < 0 || options.most_learners > 1000) {
        throw InputError(fmt::format("--tune-learners {}: from 1 to 1000", options.most_learners));
    }
    if (options.most_learners > 0 && share_or_infinity("--gain", options.gain) > 1) {
        throw InputError(fmt::format("--gain {}: from 0% to 100%", options.gain));
    }
    const int learners_of_plan = schedule::parse_plan(options.job.plan).methods.get<Averaging>().learners;
    if (options.most_learners > 0 && (options.job.global_batch || options.job.batch % learners_of_plan != 0)) {
        throw InputError(fmt::format(
            "--tune-learners: with --batch, of a rank, whose {} learners share it evenly, not --global-batch",
            learners_of_plan));
    }
    if (options.run.learners < 1) throw InputError(fmt::format("--learners {}: at least 1", options.run.learners));
    if (options.run.graphs && options.run.learners > 1) {
        throw InputError("--graphs: not with --learners, whose kernels are started in turn");
    }
    if (options.run.learners > 1 && !options.trace.empty()) {
        throw InputError("--learners: no --trace, as their kernels overlap");
    }
    const bool learners = options.most_learners > 0 || learners_of_plan > 1;
    if ((learners || options.run.unlocked > 0) && !options.trace.empty()) {
        throw InputError("--trace: not of several learners or --unlocked threads of a rank, as their kernels overlap");
    }
    check_growth(options);
    check_writable(options.run.save, options.common);
    check_writable(options.run.save_gradients, options.common);
    if (options.epsilon && !(*options.epsilon > 0))
        throw InputError(fmt::format("--epsilon {}: above 0", *options.epsilon));
    if (!(options.run.second_factor >= 0 && options.run.second_factor < 1))
        throw InputError(fmt::format("--beta2 {}: from 0 to below 1", options.run.second_factor));
    if (options.order != "shuffled" && options.order != "given")
        throw InputError(fmt::format("--order '{}': shuffled or given", options.order));
    if (!(options.run.momentum >= 0 && options.run.momentum < 1))
        throw InputError(fmt::format("--momentum {}: from 0 to below 1", options.run.momentum));
    if (options.run.steps < 1) throw InputError(fmt::format("--steps {}: at least 1", options.run.steps));
    if (!(options.run.loss_scale >= 1 && options.run.loss_scale <= 0x1p24F)) {
        throw InputError(fmt::format("--loss-scale {}: from 1 to 16777216", options.run.loss_scale));
    }
}

int train(const run::Session& session, const RunOptions& options) {
    std::vector<GrownPhase> phases;
    const Trained made =
        options.growth.empty() ? train_network(session, options) : train_growing(session, options, phases);
    const int code = session.rank() == made.result.speaker ? tell(options, made, phases) : good;
    if (!made.result.lost.empty()) session.leave(code);
    return code;
}

// What a plan can say, and which of it run does not execute.
void print_plan_help() {
    std::cout << plan_help() << "Predicted, not run, in this version:\n";
    for (const run::Limit& limit : run::limits()) std::cout << fmt::format("  {}: {}\n", limit.what, limit.why);
}

int start(const CommandLine& app, const RunOptions& options) {
    if (options.job.plan == "help") {
        print_plan_help();
        return good;
    }
    check_belongings(app, options);
    check(options);
    int argc = 0;
    char** argv = nullptr;
    const run::Session session{argc, argv};
    return session.run("rehearse", [&] { return train(session, options); });
}

}  // namespace

Run add_run(CommandLine& app) {
    const auto options = std::make_shared<RunOptions>();
    options->job.model = "resnet32";
    add_job(app, options->job);
    app.add_option("--machine", options->machine, "the machine file whose prices balance stages, as predict takes it")
        ->option_text("NAME|FILE.toml");
    app.add_option("--steps", options->run.steps, "training steps")->capture_default_str()->option_text("N");
    app.add_option("--backend", options->run.backend, "use only this one (onednn, cpu, reference)")
        ->option_text("NAME");
    app.add_option("--device", options->run.device, "cuda: on this host's GPU; several ranks may share one")
        ->capture_default_str()
        ->option_text("cpu|cuda");
    app.add_flag(
        "--graphs", options->run.graphs,
        "with --device cuda: from the second step on kernels are started as graphs, a call for all between two "
        "waits of the host");
    app.add_option("--learners", options->run.learners, "on one GPU, a stream and --batch samples each")
        ->capture_default_str()
        ->option_text("N");
    add_learner_options(app, options->run.first_idle, options->run.learner_paces);
    app.add_option("--tune-learners", options->most_learners,
                   "with data:learners=N: add and remove learners, up to so many, by the samples a second that they "
                   "come to (Crossbow); each keeps its batch")
        ->option_text("MOST");
    app.add_option("--gain", options->gain, "of --tune-learners: a learner is added as long as it gains so much")
        ->option_text("SHARE")
        ->capture_default_str();
    app.add_option("--tuning-steps", options->run.tuning_steps, "of --tune-learners: steps of a measurement")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--target-loss", options->run.target_loss,
                   "end once the mean loss of the last --target-samples, each before it was learnt, is so low")
        ->option_text("X");
    app.add_option("--target-samples", options->run.target_samples, "see --target-loss")
        ->option_text("N")
        ->capture_default_str();
    app.add_option(
           "--patience", options->patience,
           "with servers: a worker of which nothing is heard for so long has died, and the others go on (mpirun "
           "--enable-recovery); with quorum=X in the plan, who is slow is not waited for")
        ->option_text("TIME");
    app.add_option("--unlocked", options->run.unlocked,
                   "so many threads make the updates of local=N on a rank's one model at the same time, without locks "
                   "(Project Adam)")
        ->option_text("N");
    app.add_option("--algorithm", options->run.algorithm, "where it applies: direct, im2col, winograd, fft, ...")
        ->option_text("NAME");
    add_growth(app, options->growth);
    app.add_flag("--copy-layers", options->copy_layers,
                 "of --grow: layers that are new begin as the layer of the same name with a lower number, modulo how "
                 "many there were (progressive stacking), not at random");
    add_tune(app, options->tune, {{"on", Tune::on}, {"off", Tune::off}},
             "follow what calibrate or bench --tune found to be fastest on this host");
    add_scratch_limit(app, options->run.scratch_limit);
    app.add_option("--seed", options->run.seed, "of weights and data")->capture_default_str()->option_text("N");
    app.add_option("--learning-rate", options->learning_rate, "default: SGD 0.05, Adam 0.001, LAMB 0.01")
        ->option_text("X");
    app.add_option("--momentum", options->run.momentum, "of SGD; beta 1 of Adam and LAMB")
        ->capture_default_str()
        ->option_text("X");
    app.add_option("--beta2", options->run.second_factor, "of Adam and LAMB")->capture_default_str()->option_text("X");
    app.add_option("--epsilon", options->epsilon, "what keeps their divisors from 0; default: Adam 1e-8, LAMB 1e-6")
        ->option_text("X");
    app.add_option("--weight-decay", options->run.weight_decay,
                   "SGD adds it to the gradient, Adam and LAMB to the step")
        ->capture_default_str()
        ->option_text("X");
    app.add_option("--loss-scale", options->run.loss_scale,
                   "of --precision fp16, mixed and autocast, at the start: halved when gradients overflow")
        ->capture_default_str()
        ->option_text("X");
    app.add_option(
           "--data", options->run.data,
           "synthetic, climate (16-channel weather maps for deeplabv3plus-small, tiramisu-small, climatenet-small), "
           "graphs (communities for gcn-small and gcn-cora, molecules for schnet), idx:FOLDER "
           "(MNIST's files), or an HDF5 file with data sets 'data' and 'labels', of networks that read integers "
           "'tokens'")
        ->capture_default_str()
        ->option_text("synthetic|climate|graphs|idx:FOLDER|FILE.h5");
    app.add_option(
           "--ignore-label", options->run.ignored_label,
           "a label of FILE.h5, from -2147483648 to 2147483647, that asks for nothing: the loss is the mean over "
           "the others")
        ->capture_default_str()
        ->option_text("N");
    app.add_option("--order", options->order, "of the samples of files: shuffled anew each epoch, or as they lie")
        ->capture_default_str()
        ->option_text("shuffled|given");
    app.add_option(
           "--weights", options->weights,
           "begin with these, by the layers' names: of an .onnx file, or one that --save or --checkpoint wrote; "
           "without it, with those that --model's file has, else at random")
        ->option_text("FILE.onnx|FILE.h5");
    app.add_option("--save", options->run.save, "write the trained weights, a group a layer, a data set a tensor")
        ->option_text("FILE.h5");
    app.add_option("--save-gradients", options->run.save_gradients, "likewise the gradients of the last step")
        ->option_text("FILE.h5");
    app.add_option("--checkpoint", options->run.checkpoint, "save the state of the training to this folder")
        ->option_text("DIR");
    app.add_option("--checkpoint-every", options->run.checkpoint_every, "steps between two of them")
        ->capture_default_str()
        ->option_text("N");
    app.add_flag("--resume", options->run.resume,
                 "go on from the newest checkpoint of the folder, under this plan or another; --steps counts all");
    app.add_flag("--rebatch", options->run.rebatch,
                 "with --resume: the checkpoint may be of another batch; goes on at the sample it had come to");
    app.add_option("--stop-file", options->run.stop_file,
                   "once this file is there, the step under way is the last: saved, and told as any end")
        ->option_text("FILE");
    app.add_flag("--check-gradients", options->run.check_gradients,
                 "compare the gradients with those of one rank; exit 1 when they differ");
    app.add_option("--trace", options->trace,
                   "write the measured timeline, of the last 1000 steps (.pftrace, .json or .csv)")
        ->option_text("FILE");
    add_common(app, options->common);
    return [options, &app] { return start(app, *options); };
}

}  // namespace rehearse::cli
