// SPDX-License-Identifier: Apache-2.0
#include "schedule/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/error.hpp"

namespace rehearse::schedule {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Makes the pieces one after the other; each remembers as which layer of its stage it holds what earlier ones made.
class Cutter {
public:
    Cutter(const Part& part, int stages, int pieces, std::string axis_name)
        : part_(part),
          stages_(stages),
          pieces_(pieces),
          axis_name_(std::move(axis_name)),
          made_(at(stages)),
          needed_(needs_input_gradient(part.network)) {
        last_reader_.resize(part.network.layers.size(), -1);
        for (Stage& stage : made_) stage.part.network.name = part.network.name;
    }

    std::vector<Stage> run(std::span<const int> ends) {
        int begin = 0;
        std::vector<int> piece_of(part_.network.layers.size());
        for (int piece = 0; piece < pieces_; ++piece) {
            for (int layer = begin; layer < ends[at(piece)]; ++layer) {
                piece_of[at(layer)] = piece;
                for (const int input : part_.network.layers[at(layer)].inputs) last_reader_[at(input)] = piece;
            }
            begin = ends[at(piece)];
        }
        begin = 0;
        for (int piece = 0; piece < pieces_; ++piece) {
            make(piece, begin, ends[at(piece)]);
            begin = ends[at(piece)];
        }
        return std::move(made_);
    }

private:
    void make(int piece, int begin, int end) {
        Stage& stage = made_[at(piece % stages_)];
        const int first = static_cast<int>(stage.part.network.layers.size());
        std::map<int, int> held;  // layer of the whole -> of this stage
        for (int layer = 0; layer < begin; ++layer) {
            if (last_reader_[at(layer)] >= piece) held[layer] = hand_over(stage, piece, layer, Movement::receive, {});
        }
        for (int layer = begin; layer < end; ++layer) {
            Layer copy = part_.network.layers[at(layer)];
            for (int& input : copy.inputs) input = held.at(input);
            share_weights(copy, piece % stages_);
            if (const auto* norm = std::get_if<BatchNorm>(&copy.op)) stage.part.network.state += 2 * norm->channels;
            held[layer] = append(stage, std::move(copy), part_.origins[at(layer)]);
            placed_[layer] = {piece % stages_, held[layer]};
        }
        for (int layer = 0; layer < end; ++layer) {
            if (last_reader_[at(layer)] > piece) hand_over(stage, piece, layer, Movement::send, {held.at(layer)});
        }
        stage.chunks.push_back({first, static_cast<int>(stage.part.network.layers.size())});
    }

    /// Whose weights lie on another stage has a copy of its own there, as in Megatron-LM (whose sum of both gradients
    /// is not in the schedule: one table, once a step).
    void share_weights(Layer& layer, int stage) const {
        if (layer.weights_of < 0) return;
        const Place owner = placed_.at(layer.weights_of);
        if (owner.stage == stage) {
            layer.weights_of = owner.layer;
            return;
        }
        layer.weights_of = -1;
        std::get<MatMul>(layer.op).tied = false;
    }

    int hand_over(Stage& stage, int piece, int layer, Movement movement, std::vector<int> inputs) {
        const bool send = movement == Movement::send;
        const int other = send ? piece + 1 : piece - 1;
        const Layer& handed = part_.network.layers[at(layer)];
        Communication op{.movement = movement,
                         .axis = axis_name_,
                         .shape = handed.output,
                         .parts = stages_,
                         .offset = other % stages_ - piece % stages_,
                         .gradient = needed_[at(layer)] || parameters(handed.op) > 0};
        // One stage may hold several pieces: the name says which.
        const int boundary = send ? piece : piece - 1;
        const std::string name = fmt::format("{}.{}{}", handed.name, to_string(movement),
                                             pieces_ > stages_ ? fmt::format("{}", boundary) : "");
        Shape output = op.shape;
        return append(stage, {name, std::move(op), std::move(inputs), std::move(output)}, {});
    }

    static int append(Stage& stage, Layer layer, Origin origin) {
        stage.part.network.layers.push_back(std::move(layer));
        stage.part.origins.push_back(std::move(origin));
        return static_cast<int>(stage.part.network.layers.size()) - 1;
    }

    struct Place {
        int stage, layer;
    };

    const Part& part_;
    std::map<int, Place> placed_;  // layers of the whole
    int stages_, pieces_;
    std::string axis_name_;
    std::vector<Stage> made_;
    std::vector<bool> needed_;      // by layer: a gradient goes through it
    std::vector<int> last_reader_;  // the last piece that reads each layer
};

}  // namespace

std::vector<int> balance(std::span<const double> costs, int stages) {
    return balance(std::vector(at(stages), std::vector<double>(costs.begin(), costs.end())));
}

std::vector<int> balance(std::span<const std::vector<double>> costs) {
    const auto stages = static_cast<int>(costs.size());
    const auto layers = static_cast<int>(costs.front().size());
    const auto working = std::ranges::count_if(costs.front(), [](double cost) { return cost > 0; });
    if (working < stages) {
        throw InputError(fmt::format("{} layers that compute cannot make {} stages", working, stages));
    }
    // worst[s][n]: the least possible cost of the costliest of s + 1 stages that share the first n layers.
    constexpr double never = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> worst(at(stages), std::vector<double>(at(layers) + 1, never));
    std::vector<std::vector<int>> begins(at(stages), std::vector<int>(at(layers) + 1));
    for (int s = 0; s < stages; ++s) {
        std::vector<double> sum(at(layers) + 1);  // of the first n layers on this stage
        for (int i = 0; i < layers; ++i) sum[at(i) + 1] = sum[at(i)] + costs[at(s)][at(i)];
        for (int n = s + 1; n <= layers; ++n) {
            if (s == 0 && sum[at(n)] > 0) worst[0][at(n)] = sum[at(n)];
            for (int begin = n - 1; s > 0 && begin >= s; --begin) {
                const double own = sum[at(n)] - sum[at(begin)];
                if (!(own > 0)) continue;
                const double cost = std::max(worst[at(s) - 1][at(begin)], own);
                if (cost < worst[at(s)][at(n)]) {
                    worst[at(s)][at(n)] = cost;
                    begins[at(s)][at(n)] = begin;
                }
                if (own > worst[at(s)][at(n)]) break;  // only grows from here on
            }
        }
    }
    std::vector<int> ends(at(stages), layers);
    for (int s = stages - 1; s > 0; --s) ends[at(s) - 1] = begins[at(s)][at(ends[at(s)])];
    return ends;
}

std::vector<Stage> cut_stages(const Part& part, std::span<const int> ends, int stages, const std::string& axis_name) {
    return Cutter{part, stages, static_cast<int>(ends.size()), axis_name}.run(ends);
}

}  // namespace rehearse::schedule
