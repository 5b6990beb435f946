// SPDX-License-Identifier: Apache-2.0
// A pipeline's strategy drawn without a clock: every chunk's forward takes 1 / chunks, its backward twice that.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "gui/pages.hpp"
#include "schedule/axes/orders.hpp"

namespace rehearse::gui {

namespace {

// The part of the network that an item of a stage is: part c of stage s is number c * stages + s.
struct Done {
    std::map<std::pair<int, int>, double> forward, backward;  // (part, micro-batch) -> end
};

// When an item can begin, or nothing yet.
std::optional<double> ready(const Done& done, int part, int parts, const schedule::Item& item) {
    const auto end = [&](const auto& of, int p) -> std::optional<double> {
        const auto found = of.find({p, item.micro_batch});
        return found == of.end() ? std::nullopt : std::optional(found->second);
    };
    if (item.forward) return part == 0 ? std::optional(0.0) : end(done.forward, part - 1);
    if (part == parts - 1) return end(done.forward, part);
    return end(done.backward, part + 1);
}

}  // namespace

picture::PipelineDrawing planned_pipeline(const std::string& strategy, int stages, int micro_batches, int chunks) {
    const auto strategies = schedule::pipeline_strategies();
    const auto found = std::ranges::find(strategies, strategy, &schedule::PipelineStrategy::name);
    if (found == strategies.end()) throw InputError(fmt::format("'{}' is no strategy of pipelines", strategy));
    const schedule::PipelineShape shape{stages, micro_batches, chunks};
    picture::PipelineDrawing drawing{fmt::format("{}: {} stages, {} micro-batches{}", strategy, stages, micro_batches,
                                                 chunks > 1 ? fmt::format(", {} chunks a stage", chunks) : ""),
                                     std::string{found->summary},
                                     {},
                                     {},
                                     false};
    std::vector<schedule::Order> orders;
    for (int s = 0; s < stages; ++s) {
        orders.push_back(found->order(StageIndex{s}, shape));
        drawing.lanes.push_back(fmt::format("stage {}", s));
    }
    Done done;
    std::vector<std::size_t> next(orders.size(), 0);
    std::vector<double> free(orders.size(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t s = 0; s < orders.size(); ++s) {
            while (next[s] < orders[s].size()) {
                const schedule::Item& item = orders[s][next[s]];
                const int part = item.chunk * stages + static_cast<int>(s);
                const auto from = ready(done, part, stages * chunks, item);
                if (!from) break;
                const double start = std::max(*from, free[s]), end = start + (item.forward ? 1.0 : 2.0) / chunks;
                (item.forward ? done.forward : done.backward)[{part, item.micro_batch}] = free[s] = end;
                drawing.boxes.push_back(
                    {s, start, end, item.forward ? picture::Activity::forward : picture::Activity::backward_data,
                     item.micro_batch, item.chunk,
                     fmt::format("{} of micro-batch {}{}", item.forward ? "forward" : "backward", item.micro_batch,
                                 chunks > 1 ? fmt::format(", chunk {}", item.chunk) : "")});
                ++next[s];
                moved = true;
            }
        }
    }
    for (std::size_t s = 0; s < orders.size(); ++s) {
        if (next[s] < orders[s].size())
            throw InputError(fmt::format("{} deadlocks at stage {} with {} stages and {} micro-batches", strategy, s,
                                         stages, micro_batches));
    }
    return drawing;
}

}  // namespace rehearse::gui
