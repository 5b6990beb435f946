// SPDX-License-Identifier: Apache-2.0
#include "bench/traffic_check.hpp"

#include <cstring>

#include "core/error.hpp"
#include "core/half.hpp"

namespace rehearse::bench {

namespace {

// Whole numbers; up to 64 ranks their sum is 128 or less, and exact in bf16, which has 8 binary digits.
float number(std::int64_t rank, std::int64_t i) { return static_cast<float>((rank * 5 + i) % 3); }

float sum_of_numbers(std::int64_t ranks, std::int64_t i) {
    float sum = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) sum += number(rank, i);
    return sum;
}

// [begin, end) of a buffer, which must have element i's number as expected(i).
template <typename Expected>
std::int64_t differing(DataType type, const std::byte* buffer, std::int64_t begin, std::int64_t end,
                       const Expected& expected) {
    std::int64_t wrong = 0;
    for (std::int64_t i = begin; i < end; ++i) wrong += load(type, buffer, i) == expected(i) ? 0 : 1;
    return wrong;
}

std::int64_t wrong_here(const TrafficCase& which, std::int64_t rank, const kernels::Operand& operand) {
    const Collective& c = which.collective;
    const std::int64_t n = c.group().size;
    const std::byte* const data = operand.data.data();
    const auto sums = [n](std::int64_t i) { return sum_of_numbers(n, i); };
    const auto of_rank = [](std::int64_t r) { return [r](std::int64_t i) { return number(r, i); }; };
    switch (c.kind()) {
        case CollectiveKind::all_reduce:
            return differing(operand.type, data, 0, c.elements(), sums);
        case CollectiveKind::reduce_scatter: {
            const Range mine = c.chunk(rank);
            if (!which.by_mpi) return differing(operand.type, data, mine.begin, mine.end, sums);
            return differing(operand.type, data, 0, mine.end - mine.begin,
                             [&](std::int64_t i) { return sums(mine.begin + i); });
        }
        case CollectiveKind::all_gather: {
            std::int64_t wrong = 0;
            for (std::int64_t r = 0; r < n; ++r) {
                if (which.shift && r != rank && r != (rank + n - 1) % n) continue;
                wrong += differing(operand.type, data, c.chunk(r).begin, c.chunk(r).end, of_rank(r));
            }
            return wrong;
        }
        case CollectiveKind::broadcast:
            return differing(operand.type, data, 0, c.elements(), of_rank(c.root()));
        case CollectiveKind::all_to_all: {
            std::int64_t wrong = 0;
            const Range mine = c.chunk(rank);
            for (std::int64_t from = 0; from < n; ++from) {
                wrong += differing(operand.type, operand.received.data(), from * c.slot(),
                                   from * c.slot() + mine.end - mine.begin,
                                   [&](std::int64_t i) { return number(from, mine.begin + i - from * c.slot()); });
            }
            return wrong;
        }
        case CollectiveKind::halo:
            break;  // is not asked for by name
    }
    return 0;
}

}  // namespace

std::int64_t count_wrong(const kernels::Communicator& communicator, const TrafficCase& which,
                         const kernels::Operand& operand, const std::function<void()>& run) {
    for (std::int64_t i = 0; i < which.collective.elements(); ++i) {
        store(operand.type, operand.data.data(), i, number(communicator.rank(), i));
    }
    std::ranges::fill(operand.received, std::byte{0xFF});
    run();
    const auto mine = static_cast<double>(wrong_here(which, communicator.rank(), operand));
    double all = 0;
    for (const double each : communicator.all_gather({&mine, 1})) all += each;
    return static_cast<std::int64_t>(all);
}

void store(DataType type, std::byte* buffer, std::int64_t i, float number) {
    if (type == DataType::f32) {
        std::memcpy(buffer + 4 * i, &number, 4);
        return;
    }
    const std::uint16_t half = type == DataType::f16 ? Float16{number}.bits : BFloat16{number}.bits;
    std::memcpy(buffer + 2 * i, &half, 2);
}

float load(DataType type, const std::byte* buffer, std::int64_t i) {
    if (type == DataType::f32) {
        float number = 0;
        std::memcpy(&number, buffer + 4 * i, 4);
        return number;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, buffer + 2 * i, 2);
    return type == DataType::f16 ? static_cast<float>(Float16::of_bits(half))
                                 : static_cast<float>(BFloat16::of_bits(half));
}

}  // namespace rehearse::bench
