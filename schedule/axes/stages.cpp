// SPDX-License-Identifier: Apache-2.0
#include "schedule/axes/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/gathered_again.hpp"
#include "core/index.hpp"
#include "schedule/axes/tensor_splitter.hpp"

namespace rehearse::schedule {

namespace {

/// By layer, whether all ranks along `axis` make the same output and have the same gradient of it: of a copy each has a
/// part of the gradient, of a layer with cut weights a part of the output.
std::vector<bool> same_on_all(const Part& part, const std::string& axis) {
    std::vector<bool> same;
    for (std::size_t i = 0; i < part.network.layers.size(); ++i) {
        const Layer& layer = part.network.layers[i];
        if (const auto* op = std::get_if<Communication>(&layer.op)) {
            same.push_back(op->axis == axis && (op->movement == Movement::sum || op->movement == Movement::gather));
            continue;
        }
        const bool alike =
            std::ranges::all_of(layer.inputs, [&](int input) { return static_cast<bool>(same[at(input)]); });
        same.push_back(alike && part.origins[i].cuts.empty());
    }
    return same;
}

/// Makes the pieces one after the other; each remembers as which layer of its stage it holds what earlier ones made.
class Cutter {
public:
    Cutter(const Part& part, int stages, int pieces, std::string axis_name, bool tie, const Scatter& scatter)
        : part_(part),
          scatter_(scatter),
          same_(same_on_all(part, scatter.axis)),
          tie_(tie),
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
        for (std::size_t i = 0; i < piece_of.size(); ++i) {
            const int owner = part_.network.layers[i].weights_of;
            const StageIndex stage{piece_of[i] % stages_};
            if (owner >= 0 && piece_of[at(owner)] % stages_ != stage) other_stages_[owner].insert(stage);
        }
        begin = 0;
        for (int piece = 0; piece < pieces_; ++piece) {
            make(piece, begin, ends[at(piece)]);
            begin = ends[at(piece)];
        }
        for (const auto& [layer, copy] : copies_) {
            const Place owner = placed_.at(layer);
            const std::int64_t table = parameters(made_[at(copy.stage)].part.network.layers[at(copy.layer)].op);
            made_[at(owner.stage)].ties[owner.layer] = {copy.stage, table};
            made_[at(copy.stage)].ties[copy.layer] = {owner.stage, table};
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
            Origin origin = part_.origins[at(layer)];
            share_weights(copy, StageIndex{piece % stages_}, origin);
            if (const auto* norm = std::get_if<BatchNorm>(&copy.op)) stage.part.network.state += 2 * norm->channels;
            held[layer] = append(stage, std::move(copy), std::move(origin));
            placed_[layer] = {StageIndex{piece % stages_}, held[layer]};
        }
        for (int layer = 0; layer < end; ++layer) {
            if (last_reader_[at(layer)] > piece) hand_over(stage, piece, layer, Movement::send, {held.at(layer)});
        }
        stage.chunks.push_back({first, static_cast<int>(stage.part.network.layers.size())});
    }

    /// Whose weights lie on another stage has a copy of its own there, as in Megatron-LM.
    void share_weights(Layer& layer, StageIndex stage, Origin& origin) {
        if (layer.weights_of < 0) return;
        const int whole = layer.weights_of;
        const Place owner = placed_.at(whole);
        if (owner.stage == stage) {
            layer.weights_of = owner.layer;
            return;
        }
        if (tie_) check_places(layer, whole);
        const auto copy = copies_.find(whole);
        if (copy != copies_.end()) return share_copy(layer, made_[at(stage)].part.network, copy->second.layer);
        layer.weights_of = -1;
        if (auto* dense = std::get_if<MatMul>(&layer.op)) dense->tied = false;
        layer.op = Op{computed(layer.op)};
        if (!tie_) return;
        copies_[whole] = {stage, static_cast<int>(made_[at(stage)].part.network.layers.size())};
        const Origin& table = part_.origins[at(whole)];
        origin = {table.layer, table.tensor, table.cuts, origin.summed, true};
    }

    /// Two stages sum their parts of a shared gradient; more have no axis to do it along.
    void check_places(const Layer& layer, int owner) const {
        const std::set<StageIndex>& others = other_stages_.at(owner);
        if (others.size() < 2) return;
        throw InputError(fmt::format(
            "network '{}': '{}' and layers on {} other stages share the weights of '{}', whose gradient is summed over "
            "two stages at most: take fewer stages, or cut=... so that no more than two have them",
            part_.network.name, layer.name, others.size(), part_.network.layers[at(owner)].name));
    }

    /// A further layer of the stage takes the weights of the copy that is there.
    static void share_copy(Layer& layer, const Network& network, int copy) {
        const Op& there = network.layers[at(copy)].op;
        layer.weights_of = copy;
        Op mine = computed(layer.op);
        auto* dense = std::get_if<MatMul>(&mine);
        const bool turned = dense != nullptr && dense->tied;
        if (turned && !std::holds_alternative<MatMul>(there)) return;  // the transpose of the table, as before
        if (turned) dense->tied = false;                               // the copy is the transpose already
        if (weights(mine) != weights(there)) {
            throw InputError(fmt::format("network '{}': on its stage '{}' cannot take the weights that '{}' has copied",
                                         network.name, layer.name, network.layers[at(copy)].name));
        }
        layer.op = Shared{std::make_shared<const SharedOp>(SharedOp{std::move(mine)})};
    }

    int hand_over(Stage& stage, int piece, int layer, Movement movement, std::vector<int> inputs) {
        const bool send = movement == Movement::send;
        const int other = send ? piece + 1 : piece - 1;
        const Layer& handed = part_.network.layers[at(layer)];
        const bool scattered = is_scattered(layer);
        Communication op{.movement = movement,
                         .axis = axis_name_,
                         .shape = scattered ? piece_of(handed.output, 0, scatter_.parts) : handed.output,
                         .parts = stages_,
                         .offset = other % stages_ - piece % stages_,
                         .gradient = needed_[at(layer)] || weights_read(handed.op) > 0};
        // One stage may hold several pieces: the name says which.
        const int boundary = send ? piece : piece - 1;
        const std::string name = fmt::format("{}.{}{}", handed.name, to_string(movement),
                                             pieces_ > stages_ ? fmt::format("{}", boundary) : "");
        if (scattered && send)
            inputs = {scatter(stage, name + ".slice", Movement::slice, handed.output, inputs.front())};
        const Shape output = op.shape;
        const int moved = append(stage, {name, std::move(op), std::move(inputs), output, -1, handed.block}, {});
        return scattered && !send ? scatter(stage, name + ".gather", Movement::gather, output, moved) : moved;
    }

    bool is_scattered(int layer) const {
        const Shape& shape = part_.network.layers[at(layer)].output;
        return scatter_.parts > 1 && same_[at(layer)] && !shape.empty() && shape.front() % scatter_.parts == 0;
    }

    /// A slice of its input, or the whole that ranks gather. Of no block: what recomputation begins with is kept whole.
    int scatter(Stage& stage, std::string name, Movement movement, const Shape& shape, int input) const {
        Shape output = shape;
        if (movement == Movement::slice) {
            output.front() /= scatter_.parts;
        } else {
            output.front() *= scatter_.parts;
        }
        Communication op{.movement = movement, .axis = scatter_.axis, .shape = shape, .parts = scatter_.parts};
        return append(stage, {std::move(name), std::move(op), {input}, std::move(output), -1, -1}, {});
    }

    static int append(Stage& stage, Layer layer, Origin origin) {
        stage.part.network.layers.push_back(std::move(layer));
        stage.part.origins.push_back(std::move(origin));
        return static_cast<int>(stage.part.network.layers.size()) - 1;
    }

    struct Place {
        StageIndex stage{0};
        int layer = 0;
    };

    const Part& part_;
    Scatter scatter_;
    std::vector<bool> same_;  // by layer of the whole: on all ranks that scatter
    bool tie_;
    std::map<int, Place> placed_;  // layers of the whole
    std::map<int, std::set<StageIndex>>
        other_stages_;             // by layer of the whole: of those that share its weights from afar
    std::map<int, Place> copies_;  // of its weights, on the only such stage
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
    const auto working = std::ranges::count_if(costs.front(), [](double cost) { return cost > 0; });
    if (working < std::ssize(costs)) {
        throw InputError(fmt::format("{} layers that compute cannot make {} stages", working, costs.size()));
    }
    const Room endless{.needed = std::vector(costs.size(), std::vector<double>(costs.front().size())),
                       .available = std::vector<double>(costs.size())};
    return balance(costs, endless).value();
}

std::optional<std::vector<int>> balance(std::span<const std::vector<double>> costs, const Room& room) {
    const auto stages = static_cast<int>(costs.size());
    const auto layers = static_cast<int>(costs.front().size());
    const auto summed = [&](const std::vector<double>& values) {  // of the first n layers
        std::vector<double> sum(at(layers) + 1);
        for (int i = 0; i < layers; ++i) sum[at(i) + 1] = sum[at(i)] + values[at(i)];
        return sum;
    };
    // worst[s][n]: the least possible cost of the costliest of s + 1 stages that share the first n layers.
    constexpr double never = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> worst(at(stages), std::vector<double>(at(layers) + 1, never));
    std::vector<std::vector<int>> begins(at(stages), std::vector<int>(at(layers) + 1));
    for (int s = 0; s < stages; ++s) {
        const std::vector<double> sum = summed(costs[at(s)]), needed = summed(room.needed[at(s)]);
        for (int n = s + 1; n <= layers; ++n) {
            for (int begin = s == 0 ? 0 : n - 1; begin >= s; --begin) {
                const double own = sum[at(n)] - sum[at(begin)];
                if (needed[at(n)] - needed[at(begin)] > room.available[at(s)]) break;  // only grows from here on
                if (!(own > 0)) continue;
                const double cost = s == 0 ? own : std::max(worst[at(s) - 1][at(begin)], own);
                if (cost < worst[at(s)][at(n)]) {
                    worst[at(s)][at(n)] = cost;
                    begins[at(s)][at(n)] = begin;
                }
                if (own > worst[at(s)][at(n)]) break;  // likewise
            }
        }
    }
    if (worst.back().back() == never) return std::nullopt;
    std::vector<int> ends(at(stages), layers);
    for (int s = stages - 1; s > 0; --s) ends[at(s) - 1] = begins[at(s)][at(ends[at(s)])];
    return ends;
}

namespace {

/// Where a cut at `end` is moved to, so that a layer that a rank computes in several pieces (a convolution, its edges
/// apart) stays in one stage, and with it the exchange before it.
int before_pieces(const Part& part, int end) {
    const std::vector<Layer>& layers = part.network.layers;
    for (auto i = static_cast<std::size_t>(end); i < layers.size(); ++i) {
        const int owner = layers[i].weights_of;
        if (owner < 0 || owner >= end || part.origins[i].layer != part.origins[at(owner)].layer) continue;
        end = owner;
        const auto is_moved = [&](int layer) { return std::holds_alternative<Communication>(layers[at(layer)].op); };
        while (end > 0 && is_moved(end - 1)) --end;
    }
    return end;
}

/// What ranks gather for one reader stays with the reader: a piece of it crosses to the next stage, not the whole,
/// whose memory the next gather takes (gathers_again).
std::vector<int> cut_before_gathers(const Part& part, std::span<const int> ends) {
    const Network& network = part.network;
    std::vector<int> moved(ends.begin(), ends.end());
    const auto layers = static_cast<int>(network.layers.size());
    for (std::size_t piece = 0; piece < moved.size(); ++piece) {
        const int begin = piece == 0 ? 0 : moved[piece - 1];
        int& end = moved[piece];
        while (end < layers && end - 1 > begin && gathers_again(network.layers[at(end - 1)])) --end;
        if (const int apart = before_pieces(part, end); apart > begin) end = apart;
    }
    return moved;
}

}  // namespace

std::vector<Stage> cut_stages(const Part& part, std::span<const int> ends, int stages, const std::string& axis_name,
                              bool tie, const Scatter& scatter) {
    const std::vector<int> before_gathers = cut_before_gathers(part, ends);
    return Cutter{part, stages, static_cast<int>(ends.size()), axis_name, tie, scatter}.run(before_gathers);
}

}  // namespace rehearse::schedule
