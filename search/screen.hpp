// SPDX-License-Identifier: Apache-2.0
// What a plan would roughly take, without making its schedule: sums and products of what its layers and wires cost.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "search/costs.hpp"
#include "search/wires.hpp"

namespace rehearse::search {

struct Estimate {
    double step_s = 0;
    double memory_bytes = 0;  // of the fullest stage
};

/// The step: m micro-batches through stages of t_s each and c chunks, m max(t) + (sum(t) - max(t)) / c (Narayanan et
/// al. 2021), messages between stages at both ends, what is left of the sums of gradients behind the last backward pass
/// (with ZeRO 3 behind all passes), and the updates. Not in it: waits between unlike stages, links shared by axes.
class Screen {
public:
    /// `job`: precision, optimizer and global batch; devices are the choices'.
    Screen(const Network& network, const Machine& machine, const schedule::Job& job);

    /// Nothing where the plan cannot be, or is the same as a plainer one (recomputation of blocks that the network has
    /// not). Names the best all-reduce in `choices`.
    std::optional<Estimate> estimate(Choices& choices);

    /// No plan of this shape has a shorter step: all stages always busy, nothing sent, nothing computed twice.
    /// Nothing where no micro-batch can be.
    std::optional<double> bound(const Shape& shape);

    /// Why tensor groups could not be, one reason each.
    const std::vector<std::string>& refusals() const { return refusals_; }

private:
    struct Cell {
        std::optional<LayerCosts> costs;
        std::map<std::pair<std::int64_t, int>, std::vector<Stage>> stages;  // by stages and chunks
    };
    std::optional<Group>& group(std::int64_t tensor, bool sequence, schedule::Recompute recompute);
    Cell& cell(std::int64_t tensor, bool sequence, std::int64_t micro_batch, schedule::Recompute recompute);
    bool is_plain(const LayerCosts& costs, std::int64_t tensor, bool sequence, std::int64_t micro_batch,
                  schedule::Recompute recompute);
    double step(Choices& choices, const std::vector<Stage>& stages, double update_s);
    double exposed(const Choices& choices, const Stage& stage, const Line& sum);
    double memory(const Choices& choices, const std::vector<Stage>& stages) const;

    const Network& network_;
    const Machine& machine_;
    schedule::Job job_;
    Wires wires_;
    std::map<std::tuple<std::int64_t, bool, schedule::Recompute>, std::optional<Group>> groups_;
    std::map<std::tuple<std::int64_t, bool, std::int64_t, schedule::Recompute>, Cell> cells_;
    std::vector<std::string> refusals_;
};

}  // namespace rehearse::search
