// SPDX-License-Identifier: Apache-2.0
// A block's threads played by the host: every step of a team is taken by one thread after the other. Shared memory and
// registers start as NaN, so that what a kernel reads before it was written shows.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cuda/packed_tile.hpp"

namespace rehearse::kernels::cuda {

template <typename Task>
class HostTeam {
public:
    HostTeam() : registers_(Task::threads) {}
    void reset() {
        begun_.clear(), groups_.clear(), products_.clear();
        poison(&shared_, sizeof shared_);
        poison(registers_.data(), registers_.size() * sizeof registers_[0]);
    }
    typename Task::Shared& shared() { return shared_; }

    template <typename F>
    void each(F f) {
        for (int thread = 0; thread < Task::threads; ++thread) f(thread, registers_[thread]);
    }
    template <typename F>
    void alone(F f) {
        each(f);
    }

    template <typename F>
    void largest_of_quads(F f) {
        of_quads(f, [](float a, float b) { return std::max(a, b); });
    }
    template <typename F>
    void sum_of_quads(F f) {
        of_quads(f, [](float a, float b) { return a + b; });
    }

    /// Collects the fragments of 32 threads into matrices, as tile.hpp says that they lie, and multiplies.
    template <typename Element, typename F>
    void multiply(F f) {
        for (int first = 0; first < Task::threads; first += 32) {
            std::array<std::array<std::uint32_t, 8>, 16> a;
            std::array<std::array<std::uint32_t, 8>, 8> b;  // [column][word]
            for (int lane = 0; lane < 32; ++lane) {
                const Fragments mine = f(registers_[first + lane]);
                const int group = lane / 4, word = lane % 4;
                a[group][word] = mine.a[0];
                a[group + 8][word] = mine.a[1];
                a[group][word + 4] = mine.a[2];
                a[group + 8][word + 4] = mine.a[3];
                b[group][word] = mine.b[0];
                b[group][word + 4] = mine.b[1];
            }
            for (int lane = 0; lane < 32; ++lane) {
                const Fragments mine = f(registers_[first + lane]);
                const int group = lane / 4, pair = lane % 4 * 2;
                for (int e = 0; e < 4; ++e) mine.c[e] += product<Element>(a[group + e / 2 * 8], b[pair + e % 2]);
            }
        }
    }

    /// As late as they may be: when somebody waits for their group.
    void copy(Vector& to, const Vector* from, bool there) { begun_.push_back({&to, there ? from : nullptr}); }
    void commit() { groups_.push_back(std::exchange(begun_, {})); }
    template <std::size_t left, bool /*groups*/>
    void wait() {
        for (; groups_.size() > left; groups_.pop_front()) {
            for (const auto& [to, from] : groups_.front()) *to = from == nullptr ? Vector{} : *from;
        }
    }
    template <typename F>
    void load_matrices(F f) {
        load(f, [](const Rows& rows, int lane, int matrix, void* to) {
            std::memcpy(to, rows[8 * matrix + lane / 4] + 4 * (lane % 4), 4);
        });
    }
    template <typename F>
    void load_transposed(F f) {
        load(f, [](const Rows& rows, int lane, int matrix, void* to) {
            std::array<std::uint16_t, 2> pair{};
            for (int e = 0; e < 2; ++e) std::memcpy(&pair[e], rows[8 * matrix + lane % 4 * 2 + e] + 2 * (lane / 4), 2);
            std::memcpy(to, pair.data(), 4);
        });
    }
    /// As late as they may be: what is copied over a factor that is still to be read, shows.
    template <typename Element, typename F>
    void multiply_groups(F f) {
        products_.push_back([this, f] { multiply_groups_now<Element>(f); });
    }
    template <std::size_t left, typename F>
    void products(F /*f*/) {
        for (; products_.size() > left; products_.pop_front()) products_.front()();
    }

private:
    using Rows = std::array<const std::byte*, 32>;  // that a warp's lanes name: eight of each of four matrices
    /// take(rows, lane, matrix, where the lane's two numbers of it go).
    template <typename F, typename Take>
    void load(F f, Take take) {
        for (int first = 0; first < Task::threads; first += 32) {
            Rows rows{};
            const auto of = [&](int lane) { return f(first + lane, registers_[first + lane]); };
            for (int lane = 0; lane < 32; ++lane) rows[lane] = static_cast<const std::byte*>(of(lane).row);
            for (int lane = 0; lane < 32; ++lane) {
                const MatrixRow mine = of(lane);
                for (int i = 0; i < 4; ++i) take(rows, lane, i, &mine.to[i]);
            }
        }
    }
    template <typename F, typename Join>
    void of_quads(F f, Join join) {
        for (int first = 0; first < Task::threads; first += 4) {
            for (int i = 0; i < 2; ++i) {
                float all = f(registers_[first])[i];
                for (int n = 1; n < 4; ++n) all = join(all, f(registers_[first + n])[i]);
                for (int n = 0; n < 4; ++n) f(registers_[first + n])[i] = all;
            }
        }
    }
    // Reads both factors where wgmma reads them; nothing but NaN comes of threads that name different ones.
    template <typename Element, typename F>
    void multiply_groups_now(F f) {
        for (int first = 0; first < Task::threads; first += 128) {
            const GroupFactors all = f(first, registers_[first]);
            const auto a = unswizzled<Element, 64>(all.a);
            const auto b = unswizzled<Element, 128>(all.b);
            for (int thread = 0; thread < 128; ++thread) {
                const GroupFactors of = f(first + thread, registers_[first + thread]);
                const int group = thread % 32 / 4, pair = thread % 4 * 2;
                for (int i = 0; i < 64; ++i) {
                    const int row = thread / 32 * 16 + group + i % 4 / 2 * 8, column = i / 4 * 8 + pair + i % 2;
                    for (int k = 0; k < 64; ++k) of.c[i] += a[row][k] * b[column][k];
                    if (of.a != all.a || of.b != all.b) of.c[i] = std::numeric_limits<float>::quiet_NaN();
                }
            }
        }
    }
    // Bits 4 to 6 of an address are combined with its bits 7 to 9, from a whole 1024 bytes on.
    template <typename Element, int rows>
    static std::array<std::array<float, 64>, rows> unswizzled(const Vector* matrix) {
        std::array<std::array<float, 64>, rows> made;
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t k = 0; k < 64; ++k) {
                const std::size_t plain = 128 * row + 2 * k, at = plain ^ (plain >> 7 & 7) << 4;
                std::uint16_t bits = 0;
                std::memcpy(&bits, reinterpret_cast<const std::byte*>(matrix) + at, sizeof bits);
                made[row][k] = static_cast<float>(Element::of_bits(bits));
            }
        }
        return made;
    }
    struct Copy {
        Vector* to;
        const Vector* from;
    };
    std::vector<Copy> begun_;
    std::deque<std::vector<Copy>> groups_;
    std::deque<std::function<void()>> products_;
    using Words = std::array<std::uint32_t, 8>;
    template <typename Element>
    static float product(const Words& a, const Words& b) {
        float sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if constexpr (sizeof(Element) == sizeof(float)) {
                sum += std::bit_cast<float>(a[i]) * std::bit_cast<float>(b[i]);
            } else {
                for (const int shift : {0, 16}) {
                    const auto half = [&](std::uint32_t word) {
                        return static_cast<float>(Element::of_bits(static_cast<std::uint16_t>(word >> shift)));
                    };
                    sum += half(a[i]) * half(b[i]);
                }
            }
        }
        return sum;
    }
    static void poison(void* memory, std::size_t bytes) { std::memset(memory, 0xFF, bytes); }

    typename Task::Shared shared_;
    std::vector<typename Task::Registers> registers_;
};

}  // namespace rehearse::kernels::cuda
