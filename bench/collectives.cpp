// SPDX-License-Identifier: Apache-2.0
#include "bench/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "bench/messages.hpp"
#include "bench/traffic_check.hpp"
#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "kernels/comm/by_mpi.hpp"

namespace rehearse::bench {

namespace {

bool cuts(const Traffic& traffic) {
    using enum CollectiveKind;
    return traffic.kind && *traffic.kind != all_reduce && *traffic.kind != broadcast;
}

std::int64_t unit_of(const Traffic& traffic) { return static_cast<std::int64_t>(size_of(traffic.type).value); }

// Whole elements, in equal parts where the data is cut; at least one each.
std::int64_t elements_of(const Traffic& traffic, Bytes size, std::int64_t ranks) {
    const std::int64_t all = static_cast<std::int64_t>(size.value) / unit_of(traffic);
    const std::int64_t part = cuts(traffic) ? ranks : 1;
    return std::max<std::int64_t>(all / part, 1) * part;
}

// Which algorithm `auto` stands for; "mpi" and the others for themselves.
std::string resolved(const std::string& name, const kernels::AlgorithmChoice& choice, Bytes size) {
    return name == "auto" ? to_string(choice.best(size)) : name;
}

void check_algorithms(const TrafficOptions& options) {
    for (const std::string& name : options.algorithms) {
        if (name == "mpi") {
            if (!options.traffic.kind) continue;
            const std::string_view why = kernels::refusal_of_mpi(*options.traffic.kind, options.traffic.type);
            if (!why.empty()) throw InputError(fmt::format("--algorithm mpi: {}; leave it out", why));
        } else if (!options.traffic.kind) {
            if (name == "direct") continue;
            throw InputError(fmt::format("--algorithm '{}': p2p has direct and mpi", name));
        } else if (name != "auto") {
            parse_algorithm(name, *options.traffic.kind);
        }
    }
}

// One size on one algorithm. Buffers belong to all.
struct Work {
    Collective collective;
    kernels::RankProgram program;
    bool by_mpi = false, shift = false;
    std::int64_t elements = 0;
    std::string algorithm, chosen;
};

// A shift is the last round of a ring all-gather of n times as much: data from a rank's own chunk to the next one's.
Collective shift_of(std::int64_t ranks, std::int64_t elements) {
    return {CollectiveKind::all_gather, {}, {ranks, ranks}, ranks * elements};
}

Work make_work(const kernels::Communicator& communicator, const Traffic& traffic, std::int64_t elements,
               const std::string& algorithm, const std::string& chosen, std::int64_t per_node) {
    const std::int64_t n = communicator.size();
    const bool shift = !traffic.kind, mpi = chosen == "mpi";
    Collective collective =
        shift ? shift_of(n, elements)
              : Collective{*traffic.kind,
                           mpi ? parse_algorithm(algorithms(*traffic.kind).front().name, *traffic.kind)
                               : parse_algorithm(chosen, *traffic.kind),
                           {n, per_node},
                           elements};
    kernels::RankProgram program{collective, communicator.rank()};
    if (shift) program.rounds.resize(1);  // the first: each its own chunk
    return {collective, program, mpi, shift, elements, algorithm, chosen};
}

void run(kernels::Communicator& communicator, const Work& work, const kernels::Operand& operand) {
    if (!work.by_mpi) return communicator.run(work.program, operand);
    if (!work.shift) return kernels::run_by_mpi(communicator, work.collective, operand);
    const std::int64_t n = communicator.size(), rank = communicator.rank();
    const std::size_t bytes = operand.data.size() / static_cast<std::size_t>(n);
    kernels::shift_by_mpi(communicator, operand.data.subspan(static_cast<std::size_t>(rank) * bytes, bytes),
                          operand.data.subspan(static_cast<std::size_t>((rank + n - 1) % n) * bytes, bytes));
}

// Memory for the largest, random numbers in [-1, 1): a sum of zeros or denormal numbers would take another time.
class Buffers {
public:
    Buffers(const Traffic& traffic, std::int64_t most_elements, std::uint64_t seed) : traffic_(traffic) {
        const auto bytes = static_cast<std::size_t>(most_elements * unit_of(traffic));
        std::mt19937 random{static_cast<std::mt19937::result_type>(seed)};
        numbers_.resize(1 << 16);
        for (float& number : numbers_) number = static_cast<float>(random()) * 0x1p-31F - 1;
        data_.resize(bytes);
        received_.resize(traffic.kind == CollectiveKind::all_to_all ? bytes : 0);
    }
    void fill(std::int64_t elements) {
        for (std::int64_t i = 0; i < elements; ++i) {
            store(traffic_.type, data_.data(), i, numbers_[static_cast<std::size_t>(i) % numbers_.size()]);
        }
    }
    kernels::Operand operand(const Work& work) {
        const auto unit = static_cast<std::size_t>(unit_of(traffic_));
        const auto data = static_cast<std::size_t>(work.program.elements) * unit;
        const auto slots = static_cast<std::size_t>(work.program.slots) * unit;
        return {traffic_.type, std::span{data_}.first(data), std::span{received_}.first(slots)};
    }

private:
    Traffic traffic_;
    std::vector<float> numbers_;
    std::vector<std::byte> data_, received_;
};

std::vector<Work> all_work(kernels::Communicator& communicator, const TrafficOptions& options) {
    kernels::AlgorithmChoice choice = options.choice;
    if (choice.empty() && std::ranges::find(options.algorithms, "auto") != options.algorithms.end()) {
        choice = kernels::measure_choice(communicator, *options.traffic.kind, std::ranges::max(options.sizes));
    }
    const std::int64_t per_node = communicator.node().size();
    std::vector<Work> all;
    for (const Bytes size : options.sizes) {
        const std::int64_t elements = elements_of(options.traffic, size, communicator.size());
        if (!all.empty() && all.back().elements == elements) continue;  // both rounded to the same
        for (const std::string& name : options.algorithms) {
            all.push_back(
                make_work(communicator, options.traffic, elements, name, resolved(name, choice, size), per_node));
        }
    }
    return all;
}

Bytes bytes_of(const Traffic& traffic, const Work& work) {
    return size_of(traffic.type) * static_cast<double>(work.elements);
}

std::string benchmark_name(const Traffic& traffic, const Work& work, std::int64_t ranks) {
    return fmt::format("{}:n{}:{:.0f}B:{}/{}", name_of(traffic), ranks, bytes_of(traffic, work).value,
                       to_string(traffic.type), work.by_mpi ? "mpi/default" : "comm/" + work.algorithm);
}

TrafficSample sample_of(const Traffic& traffic, const Work& work, const std::vector<double>& seconds,
                        std::int64_t ranks) {
    TrafficSample sample;
    sample.size = bytes_of(traffic, work);
    sample.count = cuts(traffic) ? work.elements / ranks : work.elements;
    sample.algorithm = work.algorithm;
    sample.chosen = work.chosen;
    const double median = calibrate::median(seconds);
    sample.median = Seconds{median};
    sample.error = calibrate::robust_deviation(seconds) / median;
    sample.samples = static_cast<std::int64_t>(seconds.size());
    sample.algorithm_bandwidth = sample.size / sample.median;
    sample.bus_bandwidth = Bandwidth{sample.algorithm_bandwidth.value * bus_factor(traffic, ranks)};
    return sample;
}

}  // namespace

std::string_view name_of(const Traffic& traffic) { return traffic.kind ? pass_of(*traffic.kind) : "p2p"; }

double bus_factor(const Traffic& traffic, std::int64_t ranks) {
    const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
    if (!cuts(traffic)) return traffic.kind == CollectiveKind::all_reduce ? 2 * others : 1;
    return others;
}

TrafficMeasurement measure_traffic(kernels::Communicator& communicator, const TrafficOptions& options) {
    require(!options.sizes.empty() && !options.algorithms.empty(), "something to time");
    if (communicator.size() < 2) throw InputError("bench: messages need two ranks: start it with mpirun -n 2");
    check_algorithms(options);
    const std::vector<Work> works = all_work(communicator, options);
    const std::int64_t most =
        std::ranges::max(works, {}, [](const Work& w) { return w.program.elements; }).program.elements;
    Buffers buffers{options.traffic, most, options.seed + static_cast<std::uint64_t>(communicator.rank())};
    std::vector<std::int64_t> wrong;
    std::vector<Case> cases;
    for (const Work& work : works) {
        const kernels::Operand operand = buffers.operand(work);
        const auto go = [&communicator, &work, operand] { run(communicator, work, operand); };
        const TrafficCase what{work.collective, work.shift, work.by_mpi};
        wrong.push_back(options.check ? count_wrong(communicator, what, operand, go) : -1);
        const auto warm = [&buffers, &options, &work, go] {
            buffers.fill(work.program.elements);
            for (int i = 0; i < options.warm_up; ++i) go();
        };
        cases.push_back({.name = benchmark_name(options.traffic, work, communicator.size()),
                         .flops = {},
                         .bytes = bytes_of(options.traffic, work),
                         .set_up = warm,
                         .run = go});
    }
    const Times times = time(cases, options.rounds, team_of(communicator));
    TrafficMeasurement measurement{{}, times.json};
    for (std::size_t i = 0; i < works.size(); ++i) {
        measurement.samples.push_back(sample_of(options.traffic, works[i], times.seconds[i], communicator.size()));
        measurement.samples.back().wrong = wrong[i];
    }
    return measurement;
}

std::vector<Bytes> sizes_between(Bytes least, Bytes most, double factor) {
    std::vector<Bytes> sizes;
    for (Bytes size = least; size.value <= most.value * (1 + 1e-9); size = size * factor) sizes.push_back(size);
    return sizes;
}

}  // namespace rehearse::bench
