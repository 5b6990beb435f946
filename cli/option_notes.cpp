// SPDX-License-Identifier: Apache-2.0
#include "cli/option_notes.hpp"

#include <algorithm>
#include <array>

namespace rehearse::cli {

namespace {

constexpr std::optional<double> words{};  // the range is not that of a plain number

constexpr std::array notes{
    OptionNote{"", "batch", 1, "sample", {}, false, 1'000'000'000},
    OptionNote{"calibrate", "batch", 1, "sample"},
    OptionNote{"", "global-batch", 1, "sample", "--batch on each copy of the network", false, 1'000'000'000},
    OptionNote{"", "devices", 1, "device"},
    OptionNote{"schedule", "devices", 1, "device", "the product of the plan's axes"},
    OptionNote{"cluster", "devices", 1, "device", {}, false, 1'000'000},
    OptionNote{"predict", "steps", 1, "step", {}, false, 1'000'000'000},
    OptionNote{"run", "steps", 1, "step", {}, false, 1'000'000'000},
    OptionNote{"study", "steps", 1, "step", {}, false, 1'000'000'000},
    OptionNote{"study", "population", 2, "trials", {}, false, 100'000},
    OptionNote{"study", "rounds", 1, "round", {}, false, 10'000},
    OptionNote{"study", "devices", 0, "devices", "0: the trials are trained", false, 1'000'000},
    OptionNote{"study", "space", words, "", "needed"},
    OptionNote{"study", "machine", words, "", "nothing is predicted"},
    OptionNote{"", "grow", words, "", "one network"},
    OptionNote{"", "baseline", 1, "device", "the smallest point"},
    OptionNote{"", "dataset", 1, "sample", "no whole training"},
    OptionNote{"", "epochs", 1, "epoch"},
    OptionNote{"", "critical-batch", 0, "samples", "as many epochs at every batch", true},
    OptionNote{"", "noise", words, "0 to 1, or 0% to 100%", "none"},
    OptionNote{"predict", "pilot", words, "devices at least 1, rates and times above 0", "none: from prices alone"},
    OptionNote{"predict", "samples", 1, "step", {}, false, 100'000},
    OptionNote{"", "seed", 0, ""},
    OptionNote{"", "slow", words, "NODE from 0, TIMES above 0", "none is slower"},
    OptionNote{"", "degrade", words, "SHARE from 0 to 1, or 0% to 100%", "none"},
    OptionNote{"", "quorum", words, "above 0 to 1, or to 100%", "for all of them"},
    OptionNote{"", "backup", words, "from 0 to one less than --devices"},
    OptionNote{"", "input", words, "", "reading takes no time"},
    OptionNote{"", "sample", words, "a size with its unit, above 0B", "the network's input as numbers"},
    OptionNote{"", "loader", words, "rates above 0GBps", "ahead"},
    OptionNote{"", "stage", words, "", "it is not copied"},
    OptionNote{"", "keep", 1, "sample", "its share of the data set"},
    OptionNote{"", "reading", words, "files from 0, all others above 0", "the tier's own rates"},
    OptionNote{"", "file-system", words, "", "what the machine mounts as --input"},
    OptionNote{"", "data-servers", 1, "node", "none", false, 1'000'000},
    OptionNote{"", "cache", words, "a size with its unit, above 0B", "needed with --data-servers"},
    OptionNote{"", "checkpoint", words, "", "none are written"},
    OptionNote{"predict", "checkpoint-every", 1, "step", "needed with --checkpoint"},
    OptionNote{"run", "checkpoint-every", 1, "step"},
    OptionNote{"", "learner-paces", words, "each from 1 to 1000", "all are equally fast"},
    OptionNote{"search", "global-batch", 1, "sample", "--batch for each device", false, 1'000'000'000},
    OptionNote{"", "top", 1, "plan", {}, false, 10'000},
    OptionNote{"", "memory-limit", words, "a size with its unit, above 0B", "all that the machine says"},
    OptionNote{"", "deadline", words, "a time with its unit, above 0s", "none"},
    OptionNote{"", "node-hours", 0, "node-hours", "any number", true},
    OptionNote{"", "node-power", 0, "W", "no energy is given", true},
    OptionNote{"", "max-tensor", 1, "rank", {}, false, 65'536},
    OptionNote{"", "max-pipe", 1, "stage", {}, false, 65'536},
    OptionNote{"", "max-expert", 1, "rank", {}, false, 65'536},
    OptionNote{"", "max-chunks", 1, "chunk", {}, false, 1'024},
    OptionNote{"", "most-batch", 1, "sample"},
    OptionNote{"", "workload", words, "", "needed, or --jobs"},
    OptionNote{"", "interval", words, "a time with its unit, from 0s"},
    OptionNote{"", "restart", words, "a time with its unit, from 0s"},
    OptionNote{"cluster", "start", words, "a time with its unit, from 0s"},
    OptionNote{"cluster", "pilot", 0, "steps, 0: speeds are predicted", {}, false, 1'000'000},
    OptionNote{"cluster", "run-options", words, "", "none"},
    OptionNote{"", "end", words, "a time with its unit, above 0s", "when the last job is complete"},
    OptionNote{"run", "machine", words, "", "stages are balanced by operations alone"},
    OptionNote{"schedule", "machine", words, "", "by operations alone"},
    OptionNote{"calibrate", "machine", words, "", "needed with --samples and --trace"},
    OptionNote{"validate", "machine", words, "", "those that the tables are from"},
    OptionNote{"run", "learners", 1, "learner", {}, false, 1'000},
    OptionNote{"run", "tune-learners", 0, "learners, 0: they stay as many", {}, false, 1'000},
    OptionNote{"run", "tuning-steps", 1, "step", {}, false, 1'000'000},
    OptionNote{"run", "target-loss", 0, "", "0: all --steps are made"},
    OptionNote{"run", "target-samples", 1, "sample"},
    OptionNote{"run", "patience", words, "a time with its unit, above 0s", "all ranks live to the end"},
    OptionNote{"learners", "batches", 1, "sample"},
    OptionNote{"learners", "most", 1, "learner", {}, false, 1'000},
    OptionNote{"", "gain", words, "from 0 to 1, or 0% to 100%"},
    OptionNote{"", "unlocked", words, "from 0, which is none, to the plan's local=N threads"},
    OptionNote{"", "backend", words, "", "all that this build has; run and calibrate: the fastest of each"},
    OptionNote{"", "algorithm", words, "", "all; run and calibrate: the fastest of each"},
    OptionNote{"", "accumulate", words, "", "any"},
    OptionNote{"", "learning-rate", 0, "", "SGD 0.05, Adam 0.001, LAMB 0.01", true},
    OptionNote{"", "momentum", words, "from 0 to less than 1"},
    OptionNote{"", "weight-decay", 0, ""},
    OptionNote{"", "loss-scale", 0, "", "", true},
    OptionNote{"", "draw", words, "", "no drawing; without a file: as text"},
    OptionNote{"", "ticks", words, "each from 1 to 100"},
    OptionNote{"compare", "fail-over", words, "a share from 0, as 20% or 0.2", "any error is good"},
    OptionNote{"validate", "fail-over", words, "a share from 0, as 15% or 0.15", "any error is good"},
    OptionNote{"", "suite", words, "", "the problems that are given"},
    OptionNote{"", "filter", words, "", "all"},
    OptionNote{"", "threads", 1, "thread", "1, and all that the host has", false, 1'024},
    OptionNote{"", "rounds", 1, "round", {}, false, 1'000'000},
    OptionNote{"", "budget", words, "seconds, above 0"},
    OptionNote{"", "scratch-limit", words, "a size with its unit, from 0B"},
    OptionNote{"", "min", words, "a size with its unit, from 1B"},
    OptionNote{"", "max", words, "a size with its unit, from --min"},
    OptionNote{"", "factor", 1, "", "", true},
    OptionNote{"", "iterations", 0, "runs, 0: by the budget", {}, false, 1'000'000'000},
    OptionNote{"", "warmup", 0, "runs", {}, false, 1'000'000'000},
    OptionNote{"explain", "device", words, "", "the class of the first device"},
    OptionNote{"explain", "step", words, "", "needed, or a PROBLEM"},
    OptionNote{"calibrate", "model", words, "", "those of the quick set"},
    OptionNote{"calibrate", "plan", words, "", "data"},
    OptionNote{"calibrate", "trace", words, "", "measured here"},
    OptionNote{"compare", "model", words, "", "that of the prediction's title"},
    OptionNote{"compare", "batch", 1, "sample", "that of the prediction"},
    OptionNote{"calibrate", "ranks", 2, "ranks", "needed for OSU's collectives"},
    OptionNote{"calibrate", "nodes", 1, "node", "as the files tell, needed where several numbers would do"},
    OptionNote{"calibrate", "between", words, "", "as the files tell, needed where they do not"},
};

}  // namespace

const OptionNote* note_of(std::string_view command, std::string_view option) {
    const OptionNote* of_all = nullptr;
    for (const OptionNote& note : notes) {
        if (note.option != option) continue;
        if (note.command == command) return &note;
        if (note.command.empty()) of_all = &note;
    }
    return of_all;
}

}  // namespace rehearse::cli
