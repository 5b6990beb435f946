// SPDX-License-Identifier: Apache-2.0
// What programs read: samples of the global batch, made, or read a step ahead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/schedule.hpp"
#include "run/data/handover.hpp"
#include "run/data/prefetch.hpp"
#include "run/data/samples.hpp"
#include "run/program.hpp"

namespace rehearse::run {

class Feed {
public:
    /// `source`, `shuffle` and `left_out` as of Samples. The rank's own samples begin at `own_first` of each step's
    /// global batch.
    Feed(const Schedule& schedule, std::uint64_t seed, const std::string& source, bool shuffle, std::int64_t left_out,
         std::int64_t own_first);

    /// The first sample of step `step` is the training's `sample`-th; without this steps before it had as many each.
    void start_at(std::int64_t step, std::int64_t sample) { before_ = sample - step * global_batch_; }

    /// From now on the samples of steps [first, end) for `program` are read a step ahead, by a thread of its own; not
    /// those that are made up, which is done before a step's clock starts, so that a step is measured as it is
    /// predicted.
    void begin(int first, int end, Program& program);
    void end() { prefetch_.reset(); }

    /// The rank's own samples of the next step, which is `step`.
    void take(int step, Program& program);
    /// Those that `program` computes, from `first` of the step's global batch on.
    void load(int step, std::int64_t first, Program& program);

private:
    struct Wanted {
        int step = 0;
        std::int64_t first = 0, count = 0;  // samples of the global batch
    };
    void fill_input(std::int64_t sample, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
                    std::span<std::int32_t> labels);
    void fill(const Wanted& wanted, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
              std::span<std::int32_t> labels);
    void fill_ids(std::int64_t sample, const Blocks& blocks, std::span<std::int32_t> ids);
    void fill_sample(std::int64_t sample, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
                     std::span<std::int32_t> labels);

    Samples samples_;
    std::int64_t global_batch_, own_first_;
    std::int64_t before_ = 0;  // how many more samples than steps of this batch came before
    bool made_up_;
    Shape shape_;                                     // of a sample's input
    std::array<std::unique_ptr<Handover>, 2> rooms_;  // of what is read ahead, or made for a device
    std::optional<Prefetch> prefetch_;
};

}  // namespace rehearse::run
