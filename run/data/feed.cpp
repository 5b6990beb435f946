// SPDX-License-Identifier: Apache-2.0
#include "run/data/feed.hpp"

#include <algorithm>
#include <vector>

namespace rehearse::run {

Feed::Feed(const Schedule& schedule, std::uint64_t seed, const std::string& source, bool shuffle, std::int64_t left_out,
           std::int64_t own_first)
    : samples_(schedule.network, seed, source, shuffle, left_out),
      global_batch_(global_batch(schedule)),
      own_first_(own_first),
      made_up_(source == "synthetic") {
    if (const auto* input = std::get_if<Input>(&schedule.network.layers.front().op)) shape_ = input->shape;
}

void Feed::begin(int first, int end, Program& program) {
    if (made_up_) return;
    prefetch_.reset();  // who reads into these rooms
    std::array<ReadBatch, 2> batches;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        rooms_[i] = std::make_unique<Handover>(program);
        batches[i] = rooms_[i]->room();
    }
    prefetch_.emplace(first, end, batches,
                      [this, blocks = program.blocks(), count = program.samples()](int step, ReadBatch& batch) {
                          fill({step, own_first_, count}, blocks, batch.input, batch.ids, batch.labels);
                      });
}

void Feed::take(int step, Program& program) {
    if (!prefetch_) return load(step, own_first_, program);
    bring(prefetch_->next(), program);
}

void Feed::load(int step, std::int64_t first, Program& program) {
    Tensors& tensors = program.tensors();
    const Wanted wanted{step, first, program.samples()};
    if (program.device() == nullptr)
        return fill(wanted, program.blocks(), tensors.input(), tensors.indices(), tensors.labels());
    if (rooms_[0] == nullptr || !rooms_[0]->is_of(program)) rooms_[0] = std::make_unique<Handover>(program);
    const ReadBatch& room = rooms_[0]->room();
    fill(wanted, program.blocks(), room.input, room.ids, room.labels);
    bring(room, program);
}

void Feed::fill(const Wanted& wanted, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
                std::span<std::int32_t> labels) {
    const auto samples = static_cast<std::size_t>(wanted.count);
    const std::size_t size = input.size() / samples, rows = labels.size() / samples;
    const std::size_t words = ids.size() / samples;
    for (std::size_t i = 0; i < samples; ++i) {
        const std::int64_t sample = before_ + wanted.step * global_batch_ + wanted.first + static_cast<std::int64_t>(i);
        fill_sample(sample, blocks, input.subspan(i * size, size), ids.subspan(i * words, words),
                    labels.subspan(i * rows, rows));
    }
}

// A rank that keeps some of the tables gets, of a sample of each rank, the ids that are looked up in these.
void Feed::fill_ids(std::int64_t sample, const Blocks& blocks, std::span<std::int32_t> ids) {
    std::vector<std::int32_t> whole(static_cast<std::size_t>(blocks.whole_ids)), label(1);
    auto next = ids.begin();
    for (const std::int64_t apart : blocks.samples) {
        samples_.fill(sample + apart, {}, whole, label);
        for (const std::int64_t place : blocks.ids) *next++ = whole[static_cast<std::size_t>(place)];
    }
}

// A rank that works on a block of each sample reads its block alone where the file allows it (Oyama et al. 2020,
// section III.B); else it makes or reads the whole and keeps its block.
void Feed::fill_input(std::int64_t sample, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
                      std::span<std::int32_t> labels) {
    if (samples_.has_blocks()) {
        if (const auto block = block_of(shape_, blocks.input))
            return samples_.fill_block(sample, *block, input, labels);
    }
    std::vector<float> whole(static_cast<std::size_t>(blocks.whole_input));
    samples_.fill(sample, whole, ids, labels);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = whole[static_cast<std::size_t>(blocks.input[i])];
}

void Feed::fill_sample(std::int64_t sample, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
                       std::span<std::int32_t> labels) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(blocks.whole_labels));
    const std::span<std::int32_t> its_labels = all.empty() ? labels : std::span{all};
    const bool shares_tables = !blocks.samples.empty();
    std::vector<std::int32_t> all_ids(shares_tables ? 0 : static_cast<std::size_t>(blocks.whole_ids));
    const std::span<std::int32_t> its_ids = shares_tables || !all_ids.empty() ? std::span{all_ids} : ids;
    if (!input.empty() && blocks.whole_input > 0) {
        fill_input(sample, blocks, input, its_ids, its_labels);
    } else {
        samples_.fill(sample, input, its_ids, its_labels);
    }
    if (shares_tables) fill_ids(sample, blocks, ids);
    for (std::size_t i = 0; i < ids.size() && !all_ids.empty(); ++i) {
        ids[i] = all_ids[static_cast<std::size_t>(blocks.ids[i])];
    }
    for (std::size_t i = 0; i < labels.size() && !all.empty(); ++i) {
        labels[i] = all[static_cast<std::size_t>(blocks.labels[i])];
    }
}

}  // namespace rehearse::run
