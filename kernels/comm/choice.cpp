// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/choice.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "core/error.hpp"

namespace rehearse::kernels {

namespace {

constexpr int rounds = 3;

// Of all runs together. The slowest rank counts.
double timed(Communicator& communicator, const RankProgram& program, const Operand& operand, int runs) {
    using Clock = std::chrono::steady_clock;
    communicator.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < runs; ++i) communicator.run(program, operand);
    const double mine = std::chrono::duration<double>(Clock::now() - start).count() / runs;
    return std::ranges::max(communicator.all_gather({&mine, 1}));
}

}  // namespace

void AlgorithmChoice::add(Bytes size, const Algorithm& algorithm, Seconds time) {
    rows_.push_back({size, algorithm, time});
}

Algorithm AlgorithmChoice::best(Bytes size) const {
    require(!rows_.empty(), "something measured");
    const auto distance = [&](const Row& row) {
        return std::abs(std::log2(std::max(row.size.value, 1.0) / std::max(size.value, 1.0)));
    };
    const auto key = [&](const Row& row) {
        return std::tuple{distance(row), row.time.value, to_string(row.algorithm)};
    };
    return std::ranges::min_element(rows_, {}, key)->algorithm;
}

AlgorithmChoice measure_choice(Communicator& communicator, CollectiveKind kind, Bytes most) {
    AlgorithmChoice choice;
    const std::int64_t n = communicator.size();
    for (const std::int64_t elements :
         {std::int64_t{1} << 8, std::int64_t{1} << 13, std::int64_t{1} << 18, std::int64_t{1} << 22}) {
        const Bytes size = size_of(DataType::f32) * static_cast<double>(elements);
        if (size > most && !choice.empty()) break;
        std::vector<float> data(static_cast<std::size_t>(elements), 0);
        for (const AlgorithmName& name : algorithms(kind)) {
            if (name.name.find('(') != std::string_view::npos) continue;  // hierarchical: between hosts
            const Collective collective{kind, parse_algorithm(name.name, kind), {n, n}, elements};
            const RankProgram program{collective, communicator.rank()};
            std::vector<float> received(static_cast<std::size_t>(collective.extent() - elements));
            const Operand operand = floats(data, received);
            const double first = timed(communicator, program, operand, 1);
            const int runs = static_cast<int>(std::clamp(1e-3 / first, 1.0, 50.0));
            double best = first;
            for (int round = 0; round < rounds; ++round) {
                best = std::min(best, timed(communicator, program, operand, runs));
            }
            choice.add(size, collective.algorithm(), Seconds{best});
        }
    }
    return choice;
}

}  // namespace rehearse::kernels
