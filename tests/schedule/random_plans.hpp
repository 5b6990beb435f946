// SPDX-License-Identifier: Apache-2.0
// Random training jobs for property tests: a network, a plan of random axes and options, a batch; and, of a job that
// fails a property, the smaller jobs that may fail it too.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "schedule/plan.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::test {

/// Of an environment variable.
inline std::int64_t number(const char* variable, std::int64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::atoll(text);
}

struct RandomAxis {
    std::string name;
    std::int64_t size = 1;
    std::vector<std::string> options{};
};

struct RandomJob {
    int network = 0;  // an index of networks()
    std::vector<RandomAxis> axes;
    std::int64_t batch = 1;  // of one copy
    Precision precision = Precision::fp32;
    Optimizer optimizer = Optimizer::sgd;

    std::string plan() const {
        std::string text;
        for (const RandomAxis& axis : axes) {
            text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
            for (const std::string& option : axis.options) text += ":" + option;
        }
        return text;
    }
    std::int64_t devices() const {
        std::int64_t product = 1;
        for (const RandomAxis& axis : axes) product *= axis.size;
        return product;
    }
    std::string text() const;
};

/// Eight dense layers of 16: there is something for each stage and each rank.
inline Network eight_dense() {
    Network n{.name = "eight-dense", .layers = {}};
    int at = add(n, "input", Input{{16}}, {});
    for (int i = 0; i < 8; ++i) at = add(n, fmt::format("dense{}", i), MatMul{.m = 1, .n = 16, .k = 16}, {at});
    add(n, "loss", SoftmaxLoss{16}, {at});
    return n;
}

/// The smallest first: what fails on a small network is tried on no larger one.
inline const std::vector<Network>& random_networks() {
    static const std::vector<Network> all{eight_dense(),
                                          dropping(),
                                          tiny_dlrm(),
                                          branches(),
                                          images(),
                                          encoder_decoder(),
                                          volumes(),
                                          small_unet(),
                                          tiny_transformer(models::TransformerKind::decoder),
                                          tiny_transformer(models::TransformerKind::encoder)};
    return all;
}

inline std::string RandomJob::text() const {
    return fmt::format("{} --plan {} --batch {} --precision {} --optimizer {}",
                       random_networks()[static_cast<std::size_t>(network)].name, plan(), batch, to_string(precision),
                       to_string(optimizer));
}

class RandomJobs {
public:
    explicit RandomJobs(std::uint64_t seed) : random_(seed) {}

    /// On this many ranks; 0: 1 to 16.
    RandomJob draw(std::int64_t ranks = 0) {
        if (ranks == 0) ranks = of<std::int64_t>({1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16});
        RandomJob job;
        job.network = static_cast<int>(below(static_cast<std::int64_t>(random_networks().size())));
        job.batch = of<std::int64_t>({1, 2, 4, 4, 8, 12});
        job.optimizer = of<Optimizer>({Optimizer::sgd, Optimizer::sgd, Optimizer::adam, Optimizer::lamb});
        job.precision = of<Precision>({Precision::fp32, Precision::fp32, Precision::mixed, Precision::bf16});
        std::vector<std::string> names{"data", "tensor", "pipe", "spatial", "expert", "groups"};
        std::ranges::shuffle(names, random_);
        std::ranges::rotate(names, chance(0.7) ? std::ranges::find(names, "data") : names.begin());
        const std::int64_t axes = std::min<std::int64_t>(1 + below(3), static_cast<std::int64_t>(names.size()));
        for (std::int64_t i = 0; i < axes; ++i) {
            const std::int64_t size = i + 1 == axes ? ranks : divisor(ranks);
            ranks /= size;
            job.axes.push_back({names[static_cast<std::size_t>(i)], size, options(names[static_cast<std::size_t>(i)])});
            RandomAxis& axis = job.axes.back();
            if (axis.name == "pipe" && size > 2 && job.batch == 4)  // two of six batches
                axis.options.push_back(fmt::format("copies={}", size == 3 ? "2+1" : fmt::format("2+{}x1", size - 2)));
        }
        return job;
    }

private:
    std::int64_t below(std::int64_t end) { return std::uniform_int_distribution<std::int64_t>{0, end - 1}(random_); }
    bool chance(double share) { return std::bernoulli_distribution{share}(random_); }
    template <class T>
    T of(std::vector<T> values) {
        return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
    }

    std::int64_t divisor(std::int64_t whole) {
        std::vector<std::int64_t> all;
        for (std::int64_t d = 1; d <= whole; ++d) {
            if (whole % d == 0) all.push_back(d);
        }
        return of(all);
    }

    std::vector<std::string> options(const std::string& axis) {
        using Words = std::vector<std::string>;
        static const Words batches{"microbatches=2", "microbatches=4",   "microbatch=1",        "microbatch=2",
                                   "recompute=on",   "recompute=blocks", "recompute=attention", "attention=fused"};
        static const Words data{"allreduce=ring",
                                "allreduce=doubling",
                                "allreduce=halving",
                                "allreduce=tree",
                                "allreduce=hierarchical(ring,halving)",
                                "allreduce=hierarchical(tree,ring)",
                                "allreduce=doubletree",
                                "allreduce=rings",
                                "allreduce=direct",
                                "allreduce=torus",
                                "allreduce=adasum",
                                "allreduce=auto",
                                "allreduce=own",
                                "bucket=1B",
                                "bucket=600B",
                                "bucket=2kB:first=1B",
                                "overlap=off",
                                "zero=1",
                                "zero=2",
                                "zero=3",
                                "control=star",
                                "control=tree(2)",
                                "zero=2:variables=whole",
                                "lag=1",
                                "compress=fp16",
                                "compress=bf16",
                                "compress=1bit",
                                "compress=top(0.1)",
                                "signs=vote",
                                "local=2",
                                "local=3",
                                "local=2:elastic=0.3",
                                "local=2:learners=2",
                                "local=2:elastic=0.2:average_momentum=0.9",
                                "kfac=1",
                                "kfac=2",
                                "kfac=1:damping=0.1",
                                "shares=balanced",
                                "dense=shared",
                                "tables=shared",
                                "tables=shared:bottom=one"};
        static const Words pipe{"schedule=gpipe",     "schedule=interleaved", "schedule=interleaved:chunks=3",
                                "schedule=pipedream", "cut=blocks",           "microbatches=8",
                                "scatter=on"};
        static const Words tensor{"split=filters",  "split=channels",     "sequence=on",     "async=on",
                                  "allreduce=ring", "allreduce=doubling", "allreduce=direct"};
        static const Words groups{"server=1",
                                  "server=2",
                                  "server=1:place=beside",
                                  "server=2:copies=2",
                                  "server=1:quorum=0.75",
                                  "server=1:dense=vectors"};
        Words from = axis == "data" ? data : axis == "pipe" ? pipe : axis == "tensor" ? tensor : Words{};
        if (axis == "groups") from = groups;
        if (axis != "spatial" && axis != "groups") from.insert(from.end(), batches.begin(), batches.end());
        std::ranges::shuffle(from, random_);
        from.resize(std::min<std::size_t>(from.size(), static_cast<std::size_t>(below(4))));
        return from;
    }

    std::mt19937_64 random_;
};

/// The same job with one thing less.
inline std::vector<RandomJob> smaller(const RandomJob& job) {
    std::vector<RandomJob> all;
    const auto with = [&](auto change) {
        RandomJob less = job;
        change(less);
        all.push_back(std::move(less));
    };
    for (std::size_t a = 0; a < job.axes.size(); ++a) {
        if (job.axes.size() > 1) with([&](RandomJob& j) { j.axes.erase(j.axes.begin() + static_cast<long>(a)); });
        for (std::size_t o = 0; o < job.axes[a].options.size(); ++o) {
            with([&](RandomJob& j) { j.axes[a].options.erase(j.axes[a].options.begin() + static_cast<long>(o)); });
        }
        for (std::int64_t size = 1; size < job.axes[a].size; ++size) with([&](RandomJob& j) { j.axes[a].size = size; });
    }
    for (int network = 0; network < job.network; ++network) with([&](RandomJob& j) { j.network = network; });
    for (std::int64_t batch = 1; batch < job.batch; ++batch) with([&](RandomJob& j) { j.batch = batch; });
    if (job.precision != Precision::fp32) with([](RandomJob& j) { j.precision = Precision::fp32; });
    if (job.optimizer != Optimizer::sgd) with([](RandomJob& j) { j.optimizer = Optimizer::sgd; });
    return all;
}

/// A least job that fails: nothing less of it does. `why` says of a failing job what is wrong.
inline RandomJob least(RandomJob job, const std::function<std::optional<std::string>(const RandomJob&)>& why) {
    for (bool found = true; found;) {
        found = false;
        for (RandomJob& less : smaller(job)) {
            if (!why(less)) continue;
            job = std::move(less);
            found = true;
            break;
        }
    }
    return job;
}

}  // namespace rehearse::test
