// SPDX-License-Identifier: Apache-2.0
// A problem made ready to be timed: its kernel, and random buffers in the cache state of a training step.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/op.hpp"
#include "kernels/backend.hpp"
#include "kernels/choices.hpp"
#include "kernels/memory.hpp"

namespace rehearse::bench {

/// Memory that all problems share, one after the other: filling it anew for each problem would take longer than timing
/// it. `random` keeps its distribution (kernels read it, priming flips signs); `scratch` is what kernels write. Counted
/// in floats; of a 16-bit type there are two elements in each.
class Arena {
public:
    Arena(std::int64_t floats, std::uint64_t seed);
    void reset();
    /// Scratch all zero, as in the beginning.
    void clear();
    /// The last `floats` of random, or fewer: shared with the sets where they fill it.
    std::span<float> last(std::int64_t floats);
    kernels::View random(std::int64_t count, DataType type);
    kernels::View scratch(std::int64_t count, DataType type);
    std::span<float> scratch(std::int64_t count) { return scratch(count, DataType::f32); }
    std::int64_t floats() const { return static_cast<std::int64_t>(random_.size()); }

private:
    kernels::View random_of(DataType type);
    kernels::HostVector<float> random_, scratch_;
    kernels::HostVector<Float16>
        random_f16_;  // the same numbers rounded, then again from another place on; made when asked for
    kernels::HostVector<BFloat16> random_bf16_;
    std::size_t next_random_ = 0, next_scratch_ = 0;  // floats
};

/// In what state the buffers are when a run begins.
enum class CacheState {
    hot,       // one set of buffers, run after run
    rotating,  // as many sets as the working set holds, in turn
    primed,  // rotating; what the layer before has just made (src forward, diff_dst backward) is in cache, and as in a
             // training step the core has done other work since the kernel's last run
};

class Workload {
public:
    /// The kernels are made within `limit` of scratch memory.
    Workload(const Problem& problem, const kernels::Choice& choice, CacheState state,
             Bytes limit = kernels::any_scratch);

    std::string name() const;     // "problem/backend" or "problem/backend/algorithm"
    std::int64_t floats() const;  // that one set of buffers takes
    /// Lays out as many sets as `working_set` floats hold; runs the forward pass where the timed pass needs its
    /// results.
    void set_up(Arena& arena, std::int64_t working_set);
    void before();
    void run();
    const kernels::Buffers& current() const { return sets_[next_]; }

private:
    kernels::Buffers make_buffers(Arena& arena);
    std::span<std::int32_t> make_labels();
    std::span<std::int32_t> make_indices();
    std::span<const std::int64_t> make_tensor_sizes();
    void make_given(kernels::Buffers& buffers);
    kernels::View make_rows(std::int64_t rows, std::int64_t count);
    kernels::View settled(kernels::View weights, Arena& arena);

    Problem problem_;
    const kernels::Backend* backend_;
    std::unique_ptr<kernels::Kernel> kernel_, forward_;
    CacheState state_;
    std::vector<kernels::Buffers> sets_;
    std::vector<kernels::View> produced_;  // of each set: what priming touches
    std::vector<std::int32_t> labels_, indices_;
    std::vector<std::int64_t> tensor_sizes_;
    std::vector<std::vector<float>> fixed_;
    std::vector<std::vector<std::int32_t>> chosen_;
    kernels::HostVector<float> rows_;  // numbers of rows, of any type
    std::span<float> others_;          // what the core works on between two runs
    std::size_t next_ = 0;
};

}  // namespace rehearse::bench
