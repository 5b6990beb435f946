// SPDX-License-Identifier: Apache-2.0
// What a plan would roughly take, without making its schedule: sums and products of what its layers and wires cost.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "search/costs.hpp"
#include "search/stages.hpp"
#include "search/wires.hpp"

namespace rehearse::search {

struct Estimate {
    double step_s = 0;
    double memory_bytes = 0;  // of the fullest stage
};

/// An estimate, no bound. m micro-batches go through stages of t_s each and c chunks: m max(t) + (sum(t) - max(t)) / c
/// (Narayanan et al. 2021), of unlike chunks the longest of each stage. They follow each other at the pace of the
/// slowest stage, or of what its c chunks hand on, or of the way of a micro-batch around all chunks and back over the
/// number that may be on it. To that come messages at both ends, the sums of gradients that are left behind the last
/// backward pass (all of them where they do not overlap; with ZeRO 3 what is left behind all passes), and the updates.
/// Not in it: waits between unlike stages, and links that axes share. How far it is off is measured by each search
/// (Counts) and said in docs/search.md.
class Screen {
public:
    /// `job`: precision, optimizer and global batch; devices are the choices'. The copies that a framework makes of its
    /// buckets are left out. `network` and `machine` outlive this.
    Screen(const Network& network, const Machine& machine, const schedule::Job& job, predict::Framework framework = {});

    /// Nothing where the plan cannot be, or is the same as a plainer one (recomputation of blocks that the network has
    /// not). Names the best all-reduce in `choices`. The step of a plan that takes more memory than `most_bytes` is not
    /// worked out: infinite.
    std::optional<Estimate> estimate(Choices& choices, double most_bytes = std::numeric_limits<double>::infinity());

    /// No plan of this shape has a shorter step: all stages always busy, nothing sent, nothing computed twice.
    /// Nothing where no micro-batch can be.
    std::optional<double> bound(const Shape& shape);

    /// Why tensor groups could not be, one reason each.
    const std::vector<std::string>& refusals() const { return refusals_; }

private:
    /// In which layers may be cut.
    struct Ways {
        std::vector<Stage> even;                                  // the costliest as cheap as can be
        std::optional<std::vector<std::vector<Stage>>> others{};  // once they are needed
    };
    struct Cell {
        std::optional<LayerCosts> costs;
        std::map<std::pair<std::int64_t, int>, Ways> ways;                  // by stages and chunks
        std::map<std::size_t, std::vector<std::vector<std::size_t>>> cuts;  // by pieces
    };
    /// What is sent on one mesh, looked up when it is first needed.
    struct Lines {
        std::optional<Wires::Sum> sum;
        std::optional<Wires::Halves> halves;
        std::optional<Line> gather;  // of ZeRO 1, beside `sum`
        std::vector<Line> hops{};    // behind each stage
    };
    /// Gradients of one kind, and the mesh along whose data axis they are summed.
    struct Share {
        double weights = 0, buckets = 0;
        Shape shape;
    };
    std::optional<Group>& group(const Sharing& sharing);
    Cell& cell(const Sharing& sharing, std::int64_t micro_batch);
    bool is_plain(const LayerCosts& costs, const Sharing& sharing, std::int64_t micro_batch);
    Lines& lines(const Shape& shape) { return lines_[shape]; }
    const Wires::Sum& sum(const Shape& shape);
    const Wires::Halves& halves(const Shape& shape);
    const Line& gather(const Shape& shape);
    struct Pipe {
        double longest = 0, all = 0;    // seconds of a micro-batch in the longest stage, and in all of them
        double fill = 0;                // in that stage, and in the longest chunks of the others
        double ends = 0, all_hops = 0;  // of messages of its first chunks, and of all chunks, one way
        double most_handed = 0;         // ... of all chunks of one stage
    };
    struct Passed {
        double seconds = 0, computed = 0;  // the latter if nothing that is handed on took time
        std::vector<double> hops{};        // of the first chunks, behind each stage
    };
    /// With what stages compute and send inside layers, or by what schedules know of it when they are cut.
    enum class By { all, balance };
    Passed passed(const Choices& choices, const std::vector<Stage>& stages, By by);
    static double passes(const Choices& choices, const Pipe& pipe);
    /// Of the ways to cut stages that through which all micro-batches go soonest, as a schedule sees them.
    const std::vector<Stage>& fastest(const Choices& choices, const Sharing& sharing, const LayerCosts& costs,
                                      Ways& ways);
    /// Cuts by what pieces hand on, found once for all that is computed again, in the cell in which nothing is.
    const std::vector<std::vector<std::size_t>>& cuts(Sharing sharing, std::int64_t micro_batch,
                                                      const LayerCosts& costs, std::size_t pieces);
    double step(Choices& choices, const std::vector<Stage>& stages, double update_s);
    double exposed(const Choices& choices, const Stage& stage, double busy);
    double memory(const Choices& choices, const std::vector<Stage>& stages) const;

    const Network& network_;
    const Machine& machine_;
    schedule::Job job_;
    predict::Framework framework_;
    Wires wires_;
    std::map<Shape, Lines> lines_;
    std::map<Sharing, std::optional<Group>> groups_;
    std::map<std::pair<Sharing, std::int64_t>, Cell> cells_;  // by micro-batch
    std::vector<std::string> refusals_;
};

}  // namespace rehearse::search
