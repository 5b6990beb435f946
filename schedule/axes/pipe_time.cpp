// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/pipe_time.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::schedule {

namespace {

constexpr double not_yet = std::numeric_limits<double>::infinity();

class Pipeline {
public:
    Pipeline(const PipelineStrategy& strategy, const PipelineShape& shape, std::span<const PieceTimes> pieces)
        : shape_(shape), pieces_(pieces), lanes_(at(shape.stages)) {
        const std::vector<double> unknown(at(shape.micro_batches), not_yet);
        outputs_.assign(pieces.size(), unknown);
        gradients_ = outputs_;
        outputs_.front().assign(unknown.size(), 0);  // the samples are there
        way_on_.resize(pieces.size());
        way_back_.resize(pieces.size());
        for (StageIndex stage{0}; stage < shape.stages; ++stage) lanes_[at(stage)].order = strategy.order(stage, shape);
    }

    double run() {
        for (bool goes_on = true; goes_on;) {
            goes_on = false;
            for (std::size_t stage = 0; stage < lanes_.size(); ++stage) {
                while (take(stage)) goes_on = true;
            }
        }
        double end = 0;
        for (const Lane& lane : lanes_) {
            require(lane.ends.size() == lane.order.size(), "a pipeline's stages wait for each other");
            end = std::max(end, lane.ends.back());
        }
        return end;
    }

private:
    struct Lane {
        Order order;
        std::vector<double> ends;  // of the items so far
    };

    /// The next item of a stage, if what it needs is known.
    bool take(std::size_t stage) {
        Lane& lane = lanes_[stage];
        const std::size_t done = lane.ends.size();
        if (done == lane.order.size()) return false;
        const Item& item = lane.order[done];
        const std::size_t piece = at(item.chunk * shape_.stages) + stage, sample = at(item.micro_batch);
        const double sent = (item.forward ? outputs_ : gradients_)[piece][sample];
        if (sent == not_yet) return false;
        const double room = done < 2 ? 0 : lane.ends[done - 2];
        double start = done == 0 ? 0 : lane.ends.back();
        if (item.forward && piece > 0) {
            start = std::max(start, moved(way_on_[piece - 1], std::max(sent, room), pieces_[piece - 1].handed));
        } else if (!item.forward && piece + 1 < pieces_.size()) {
            start = std::max(start, moved(way_back_[piece], std::max(sent, room), pieces_[piece].returned));
        }
        const double end = start + (item.forward ? pieces_[piece].forward : pieces_[piece].backward);
        lane.ends.push_back(end);
        if (item.forward) {
            (piece + 1 < pieces_.size() ? outputs_[piece + 1] : gradients_[piece])[sample] = end;
        } else if (piece > 0) {
            gradients_[piece - 1][sample] = end;
        }
        return true;
    }

    /// When a message has come that may go from `ready` on, and the way is free again.
    static double moved(double& way, double ready, double takes) { return way = std::max(way, ready) + takes; }

    const PipelineShape& shape_;
    std::span<const PieceTimes> pieces_;
    std::vector<Lane> lanes_;
    /// When the output that a piece needs was made, and the gradient of its own output, by micro-batch.
    std::vector<std::vector<double>> outputs_, gradients_;
    std::vector<double> way_on_, way_back_;  // behind each piece: free from then on
};

}  // namespace

double pipeline_time(const PipelineStrategy& strategy, const PipelineShape& shape, std::span<const PieceTimes> pieces) {
    return Pipeline{strategy, shape, pieces}.run();
}

}  // namespace rehearse::schedule
