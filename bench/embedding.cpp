// SPDX-License-Identifier: Apache-2.0
#include "bench/embedding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "bench/thread_team.hpp"
#include "core/error.hpp"
#include "kernels/memory.hpp"

namespace rehearse::bench {

namespace {

constexpr std::array ways{EmbeddingWay::reference, EmbeddingWay::atomic, EmbeddingWay::lock,
                          EmbeddingWay::race_free, EmbeddingWay::fused,  EmbeddingWay::split_bf16};

struct Stretch {
    std::int64_t begin, end;
};
Stretch share_of(std::int64_t count, int parts, int part) { return {count * part / parts, count * (part + 1) / parts}; }

void add_row(const float* from, std::int64_t width, float* to) {
    for (std::int64_t c = 0; c < width; ++c) to[c] += from[c];
}
void take_row(const float* from, std::int64_t width, float* to) {
    for (std::int64_t c = 0; c < width; ++c) to[c] -= EmbeddingTables::rate * from[c];
}
float joined(std::uint16_t upper, std::uint16_t lower) {
    return std::bit_cast<float>(std::uint32_t{upper} << 16U | lower);
}

// All ways but the reference ask for a row this many lookups before they work on it, as our kernels do.
constexpr std::int64_t ahead = 16;
template <typename Number>
void ask_for(const Number* row, std::int64_t width) {
    constexpr std::int64_t line = 64 / sizeof(Number);
    for (std::int64_t c = 0; c < width; c += line) __builtin_prefetch(row + c);
}

// Compare and exchange until nobody else came between.
void take_atomically(float from, float& to) {
    std::atomic_ref<float> number{to};
    float before = number.load(std::memory_order_relaxed);
    while (!number.compare_exchange_weak(before, before - EmbeddingTables::rate * from, std::memory_order_relaxed)) {
    }
}

class SpinLock {
public:
    void lock() {
        while (taken_.test_and_set(std::memory_order_acquire)) {
        }
    }
    void unlock() { taken_.clear(std::memory_order_release); }

private:
    std::atomic_flag taken_{};
};

}  // namespace

std::span<const EmbeddingWay> embedding_ways() { return ways; }

std::string_view to_string(EmbeddingWay way) {
    constexpr std::array<std::string_view, ways.size()> names{"reference", "atomic", "lock",
                                                              "race-free", "fused",  "split-bf16"};
    return names.at(static_cast<std::size_t>(way));
}

struct EmbeddingTables::State {
    State(const EmbeddingWorkload& workload, int threads)
        : op(workload.op), lookups(workload.batch * op.tables * op.lookups), team(threads), locks(1024) {
        const std::int64_t numbers = op.tables * op.vocabulary * op.width, bags_of_all = workload.batch * op.tables;
        weights.resize(static_cast<std::size_t>(numbers));
        upper.resize(weights.size());
        lower.resize(weights.size());
        bags.resize(static_cast<std::size_t>(bags_of_all * op.width));
        gradients.resize(bags.size());
        gradient_rows.resize(static_cast<std::size_t>(lookups * op.width));
        team.run([&](int t) {
            const Stretch own = share_of(numbers, threads, t);
            for (std::int64_t i = own.begin; i < own.end; ++i) {
                weights[i] = static_cast<float>(i % 13 - 6);
                upper[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weights[i]) >> 16U);
                lower[i] = 0;
            }
        });
        for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 5) - 2;
        // Rows of all tables one after the other, bag by bag: sample by sample, table by table.
        rows.resize(static_cast<std::size_t>(lookups));
        for (std::int64_t t = 0; t < op.tables; ++t) {
            const std::int64_t own = workload.batch * op.lookups;
            const auto picked = zipf_rows(op.vocabulary, workload.skew, own, workload.seed + t);
            for (std::int64_t i = 0; i < own; ++i) {
                const std::int64_t bag = i / op.lookups * op.tables + t;
                rows[bag * op.lookups + i % op.lookups] = picked[i] + static_cast<std::int32_t>(t * op.vocabulary);
            }
        }
    }

    float* row_of(std::int64_t lookup) { return weights.data() + std::int64_t{rows[lookup]} * op.width; }
    const float* gradient_of(std::int64_t lookup) const { return gradients.data() + lookup / op.lookups * op.width; }

    std::uint16_t* upper_of(std::int64_t lookup) { return upper.data() + std::int64_t{rows[lookup]} * op.width; }
    void ask_for_row(std::int64_t lookup, EmbeddingWay way) {
        if (lookup >= lookups) return;
        if (way != EmbeddingWay::split_bf16) return ask_for(row_of(lookup), op.width);
        ask_for(upper_of(lookup), op.width);
    }

    void sum_bags(Stretch own, EmbeddingWay way) {
        for (std::int64_t bag = own.begin; bag < own.end; ++bag) {
            float* const to = bags.data() + bag * op.width;
            std::fill_n(to, op.width, 0.0F);
            for (std::int64_t i = bag * op.lookups; i < (bag + 1) * op.lookups; ++i) {
                if (way != EmbeddingWay::reference) ask_for_row(i + ahead, way);
                if (way != EmbeddingWay::split_bf16) {
                    add_row(row_of(i), op.width, to);
                    continue;
                }
                const std::uint16_t* const from = upper_of(i);
                for (std::int64_t c = 0; c < op.width; ++c) to[c] += joined(from[c], 0);
            }
        }
    }
    void write_gradient_rows(Stretch own) {
        for (std::int64_t i = own.begin; i < own.end; ++i)
            std::copy_n(gradient_of(i), op.width, gradient_rows.data() + i * op.width);
    }
    void take_shared(Stretch own, EmbeddingWay way) {
        for (std::int64_t i = own.begin; i < own.end; ++i) {
            ask_for_row(i + ahead, way);
            const float* const from = gradient_rows.data() + i * op.width;
            float* const to = row_of(i);
            if (way == EmbeddingWay::atomic) {
                for (std::int64_t c = 0; c < op.width; ++c) take_atomically(from[c], to[c]);
                continue;
            }
            SpinLock& lock = locks[static_cast<std::size_t>(rows[i]) % locks.size()];
            lock.lock();
            take_row(from, op.width, to);
            lock.unlock();
        }
    }
    // Rows of all tables are cut among the threads in turn of a table's, so that each has as much of each table.
    void take_own(int thread, EmbeddingWay way) {
        const auto is_own = [&](std::int64_t lookup) {
            const auto threads = static_cast<std::uint32_t>(team.threads());
            return lookup < lookups &&
                   static_cast<std::uint32_t>(rows[lookup]) % threads == static_cast<std::uint32_t>(thread);
        };
        for (std::int64_t i = 0; i < lookups; ++i) {
            if (is_own(i + ahead)) {
                ask_for_row(i + ahead, way);
                if (way == EmbeddingWay::split_bf16)
                    ask_for(lower.data() + std::int64_t{rows[i + ahead]} * op.width, op.width);
            }
            if (!is_own(i)) continue;
            if (way == EmbeddingWay::race_free) {
                take_row(gradient_rows.data() + i * op.width, op.width, row_of(i));
            } else if (way == EmbeddingWay::fused) {
                take_row(gradient_of(i), op.width, row_of(i));
            } else {
                const float* const from = gradient_of(i);
                const std::int64_t at = std::int64_t{rows[i]} * op.width;
                for (std::int64_t c = 0; c < op.width; ++c) {
                    const float now = joined(upper[at + c], lower[at + c]) - EmbeddingTables::rate * from[c];
                    upper[at + c] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(now) >> 16U);
                    lower[at + c] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(now));
                }
            }
        }
    }

    EmbeddingBag op;
    std::int64_t lookups;
    ThreadTeam team;
    std::vector<SpinLock> locks;
    kernels::HostVector<float> weights, bags, gradients, gradient_rows;
    kernels::HostVector<std::uint16_t> upper, lower;
    std::vector<std::int32_t> rows;
};

namespace {

EmbeddingWorkload checked(const EmbeddingWorkload& workload) {
    const EmbeddingBag& op = workload.op;
    if (std::min({op.tables, op.lookups, op.vocabulary, op.width, workload.batch}) < 1)
        throw InputError("embedding: tables, lookups, rows, width and --batch are at least 1");
    if (op.tables * op.vocabulary > std::int64_t{1} << 31U)
        throw InputError(fmt::format("embedding: {} rows in all tables, at most 2^31", op.tables * op.vocabulary));
    return workload;
}

}  // namespace

EmbeddingTables::EmbeddingTables(const EmbeddingWorkload& workload, int threads)
    : state_(std::make_unique<State>(checked(workload), threads)) {}
EmbeddingTables::~EmbeddingTables() = default;

void EmbeddingTables::forward(EmbeddingWay way) {
    State& s = *state_;
    const std::int64_t bags = s.lookups / s.op.lookups;
    if (way == EmbeddingWay::reference) return s.sum_bags({0, bags}, way);
    s.team.run([&](int t) { s.sum_bags(share_of(bags, s.team.threads(), t), way); });
}

void EmbeddingTables::update(EmbeddingWay way) {
    State& s = *state_;
    if (way == EmbeddingWay::reference) {
        s.write_gradient_rows({0, s.lookups});
        for (std::int64_t i = 0; i < s.lookups; ++i)
            take_row(s.gradient_rows.data() + i * s.op.width, s.op.width, s.row_of(i));
        return;
    }
    const int threads = s.team.threads();
    if (way <= EmbeddingWay::race_free)
        s.team.run([&](int t) { s.write_gradient_rows(share_of(s.lookups, threads, t)); });
    s.team.run([&](int t) {
        if (way <= EmbeddingWay::lock)
            s.take_shared(share_of(s.lookups, threads, t), way);
        else
            s.take_own(t, way);
    });
}

std::span<const float> EmbeddingTables::bags() const { return state_->bags; }
std::span<const std::int32_t> EmbeddingTables::rows() const { return state_->rows; }
std::span<const float> EmbeddingTables::gradient(std::int64_t bag) const {
    return std::span{state_->gradients}.subspan(static_cast<std::size_t>(bag * state_->op.width),
                                                static_cast<std::size_t>(state_->op.width));
}
float EmbeddingTables::weight(EmbeddingWay way, std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    return way == EmbeddingWay::split_bf16 ? joined(state_->upper[i], state_->lower[i]) : state_->weights[i];
}

}  // namespace rehearse::bench
