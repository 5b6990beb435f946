// SPDX-License-Identifier: Apache-2.0
#include "cluster/workloads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::cluster {

namespace {

constexpr std::array kinds{
    WorkloadWord{"poisson", "", "jobs that arrive at random"},
    WorkloadWord{"search", "", "hyper-parameter search: random trials, successive halving"},
    WorkloadWord{"population", "", "population-based training"},
};

constexpr std::array options{
    WorkloadWord{"model", "NAME[+NAME...]", "what is trained; needed"},
    WorkloadWord{"jobs", "N", "jobs, trials or members (40)"},
    WorkloadWord{"minutes", "T", "a job takes so long on one device, in the mean (30); of a search, the first rung"},
    WorkloadWord{"batch", "LEAST-MOST", "batches with which a job gets as good (what one device to `most` hold)"},
    WorkloadWord{"most", "N", "devices that a job uses at most (8)"},
    WorkloadWord{"hourly", "R", "poisson: jobs that arrive an hour, in the mean (20)"},
    WorkloadWord{"eta", "E", "search: one of E trials goes on, to E times as many samples (3); 1: all run to the end"},
    WorkloadWord{"rounds", "N", "population: generations (10)"},
    WorkloadWord{"together", "on|off", "population: a generation waits for all of the last one (off)"},
};

std::string_view known(std::span<const WorkloadWord> words, std::string_view name, std::string_view what) {
    std::vector<std::string_view> names;
    for (const WorkloadWord& word : words) {
        if (word.name == name) return word.name;
        names.push_back(word.name);
    }
    throw InputError(
        fmt::format("workload: unknown {} '{}'{}; there are {}", what, name, did_you_mean(name, names), join(names)));
}

double at_least(std::string_view name, std::string_view text, double least) {
    const double value = parse_number(text, fmt::format("workload: {}", name));
    if (value >= least && value <= 1e6) return value;
    throw InputError(fmt::format("workload: {}={}: from {} to 1e6", name, text, least));
}

std::int64_t whole(std::string_view name, std::string_view text) {
    const std::int64_t value = parse_int(text, fmt::format("workload: {}", name));
    if (value >= 1 && value <= 1'000'000) return value;
    throw InputError(fmt::format("workload: {}={}: from 1 to 1e6", name, text));
}

BatchRange range(std::string_view text) {
    const std::size_t dash = text.find('-');
    const BatchRange batches{whole("batch", text.substr(0, dash)),
                             whole("batch", dash == std::string_view::npos ? text : text.substr(dash + 1))};
    if (batches.least <= batches.most) return batches;
    throw InputError(fmt::format("workload: batch={}: the smaller one first, as 64-1024", text));
}

void set(Workload& workload, std::string_view name, std::string_view value) {
    known(options, name, "option");
    if (name == "model") {
        for (const std::string_view model : split(value, '+')) workload.models.emplace_back(model);
    } else if (name == "jobs") {
        workload.jobs = whole(name, value);
    } else if (name == "minutes") {
        workload.minutes = at_least(name, value, 1e-3);
    } else if (name == "batch") {
        workload.batches = range(value);
    } else if (name == "most") {
        workload.most = whole(name, value);
    } else if (name == "hourly") {
        workload.hourly = at_least(name, value, 1e-3);
    } else if (name == "eta") {
        workload.eta = at_least(name, value, 1);
    } else if (name == "rounds") {
        workload.rounds = whole(name, value);
    } else {
        if (value != "on" && value != "off") throw InputError(fmt::format("workload: together={}: on or off", value));
        workload.together = value == "on";
    }
}

class Maker {
public:
    Maker(const Workload& workload, const SpeedTable& speeds, std::int64_t devices, std::uint64_t seed)
        : workload_(workload), speeds_(speeds), most_(std::min(workload.most, devices)), bits_(seed) {}

    std::vector<Job> poisson() {
        std::vector<Job> jobs;
        double now = 0;
        for (std::int64_t i = 0; i < workload_.jobs; ++i) {
            const auto model = static_cast<std::size_t>(uniform() * static_cast<double>(workload_.models.size()));
            Job& job = jobs.emplace_back(job_of(workload_.models[model], fmt::format("job{}", i)));
            ask(job, uniform());
            job.arrival = Seconds{now};
            job.samples *= 0.5 + uniform();
            now -= std::log(1 - uniform()) * 3600 / workload_.hourly;
        }
        return jobs;
    }

    std::vector<Job> search() {
        std::vector<Job> jobs;
        std::vector<int> last;
        double before = 0, length = 1;
        std::int64_t trials = workload_.jobs;
        for (int rung = 0; trials > 0; ++rung) {
            std::vector<int> now;
            for (std::int64_t t = 0; t < trials; ++t) {
                // Who goes on is for the training to say; any of them costs the same.
                Job& job = jobs.emplace_back(job_of(workload_.models.front(), fmt::format("rung{}.{}", rung, t)));
                job.samples *= length - before;
                job.after = last;
                now.push_back(static_cast<int>(jobs.size()) - 1);
            }
            if (workload_.eta == 1) break;
            last = std::move(now);
            before = length;
            length *= workload_.eta;
            trials = static_cast<std::int64_t>(std::floor(static_cast<double>(trials) / workload_.eta));
        }
        return jobs;
    }

    std::vector<Job> population() {
        std::vector<Job> jobs;
        const auto members = static_cast<int>(workload_.jobs);
        for (int generation = 0; generation < workload_.rounds; ++generation) {
            for (int member = 0; member < members; ++member) {
                Job& job =
                    jobs.emplace_back(job_of(workload_.models.front(), fmt::format("member{}.{}", member, generation)));
                if (generation == 0) continue;
                const int before = (generation - 1) * members;
                for (int m = 0; m < members; ++m) {
                    if (workload_.together || m == member) job.after.push_back(before + m);
                }
            }
        }
        return jobs;
    }

private:
    double uniform() { return static_cast<double>(bits_() >> 11U) * 0x1p-53; }

    BatchRange batches_of(const std::string& model) const {
        if (workload_.batches.least > 0) return workload_.batches;
        const std::int64_t one = speeds_.at(model).most_per_device(1);
        return {std::max<std::int64_t>(1, one), std::max<std::int64_t>(1, one * most_)};
    }

    // Of the mean length, asking for the smallest batch.
    Job job_of(const std::string& model, std::string name) {
        const auto found = speeds_.find(model);
        if (found == speeds_.end()) throw InputError(fmt::format("workload: no speeds of model '{}'", model));
        Job job{.name = std::move(name), .model = model};
        job.batches = batches_of(model);
        job.most_devices = most_;
        ask(job, 0);
        double one = 0;
        for (std::int64_t k = 1; k <= most_ && one == 0; ++k) {
            one = found->second.best(k, job.batches).samples_per_s / static_cast<double>(k);
        }
        if (one == 0) {
            throw InputError(fmt::format("workload: {} cannot be trained with a batch from {} to {} on 1 to {} devices",
                                         model, job.batches.least, job.batches.most, most_));
        }
        job.samples = one * 60 * workload_.minutes;
        return job;
    }

    // A batch of the range, `share` of its logarithm up, and as few devices as hold it.
    void ask(Job& job, double share) const {
        const auto least = static_cast<double>(job.batches.least);
        const double ratio = static_cast<double>(job.batches.most) / least;
        job.batch = std::clamp(std::llround(least * std::pow(ratio, share)), static_cast<long long>(job.batches.least),
                               static_cast<long long>(job.batches.most));
        const Speeds& speeds = speeds_.at(job.model);
        for (job.devices = 1; job.devices < most_ && speeds.samples_per_s(job.devices, job.batch) == 0;) {
            job.devices = std::min(most_, 2 * job.devices);
        }
    }

    const Workload& workload_;
    const SpeedTable& speeds_;
    std::int64_t most_;
    std::mt19937_64 bits_;
};

}  // namespace

std::span<const WorkloadWord> workload_kinds() { return kinds; }
std::span<const WorkloadWord> workload_options() { return options; }

Workload parse_workload(std::string_view text) {
    Workload workload{.text = std::string{text}};
    const std::vector<std::string_view> words = split(text, ':');
    workload.kind = known(kinds, words.front(), "kind");
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        if (equals == std::string_view::npos) {
            known(options, words[i], "option");
            throw InputError(fmt::format("workload: '{0}' has no value: write {0}=...", words[i]));
        }
        set(workload, words[i].substr(0, equals), words[i].substr(equals + 1));
    }
    if (workload.models.empty())
        throw InputError("workload: say what is trained: model=resnet50, or model=resnet50+vgg16");
    return workload;
}

std::vector<Job> make_jobs(const Workload& workload, const SpeedTable& speeds, std::int64_t devices,
                           std::uint64_t seed) {
    Maker maker(workload, speeds, devices, seed);
    if (workload.kind == "poisson") return maker.poisson();
    return workload.kind == "search" ? maker.search() : maker.population();
}

}  // namespace rehearse::cluster
