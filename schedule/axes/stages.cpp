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
#include "schedule/axes/hand_overs.hpp"
#include "schedule/axes/tensor_splitter.hpp"

namespace rehearse::schedule {

namespace {

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
    const std::vector<std::vector<double>> nothing(costs.size(), std::vector<double>(costs.front().size() + 1));
    return balance({{costs.begin(), costs.end()}, nothing, nothing}, endless_room(costs.size(), costs.front().size()))
        .value();
}

Room endless_room(std::size_t pieces, std::size_t layers) {
    return {.needed = std::vector(pieces, std::vector<double>(layers)), .available = std::vector<double>(pieces)};
}

namespace {

/// By dynamic programming over the pieces and where they end.
class Balance {
public:
    Balance(const PieceCosts& costs, const Room& room, const Goal& goal)
        : costs_(costs),
          room_(room),
          goal_(goal),
          pieces_(static_cast<int>(costs.layers.size())),
          layers_(static_cast<int>(costs.layers.front().size())),
          best_(at(pieces_), std::vector<Best>(at(layers_) + 1)) {}

    std::optional<std::vector<int>> run() {
        pass(std::nullopt);
        const double least = best_.back().back().costliest;
        if (least == never) return std::nullopt;
        if (goal_.more > 0) pass(least * (1 + goal_.more));
        std::vector<int> ends(at(pieces_), layers_);
        for (int p = pieces_ - 1; p > 0; --p) ends[at(p) - 1] = best_[at(p)][at(ends[at(p)])].begin;
        return ends;
    }

private:
    static constexpr double never = std::numeric_limits<double>::infinity();
    struct Best {  // of p + 1 pieces that share the first n layers
        double costliest = never, handed = never;
        int begin = 0;  // of the last of them
    };

    std::vector<double> summed(const std::vector<double>& values) const {  // of the first n layers
        std::vector<double> sum(at(layers_) + 1);
        for (int i = 0; i < layers_; ++i) sum[at(i) + 1] = sum[at(i)] + values[at(i)];
        return sum;
    }

    /// The costliest piece as cheap as can be; with a `limit`, as little handed on as can be while none costs more.
    void pass(std::optional<double> limit) {
        for (int p = 0; p < pieces_; ++p) {
            const std::vector<double> sum = summed(costs_.layers[at(p)]), needed = summed(room_.needed[at(p)]);
            for (int n = p + 1; n <= layers_; ++n) best_[at(p)][at(n)] = found(p, n, sum, needed, limit);
        }
    }

    Best found(int p, int n, const std::vector<double>& sum, const std::vector<double>& needed,
               std::optional<double> limit) const {
        Best best;
        const bool last = p + 1 == pieces_;
        const double there = last ? 0 : costs_.handed[at(p)][at(n)], back = last ? 0 : costs_.returned[at(p)][at(n)];
        for (int begin = p == 0 ? 0 : n - 1; begin >= p; --begin) {
            if (needed[at(n)] - needed[at(begin)] > room_.available[at(p)]) break;  // only grows from here on
            const double computed = sum[at(n)] - sum[at(begin)];
            if (!(computed > 0)) continue;
            double own = computed + goal_.added * (there + back);
            if (goal_.beside) own = std::max({own, there, back});
            const Best before = p == 0 ? Best{0, 0} : best_[at(p) - 1][at(begin)];
            const Best with{std::max(before.costliest, own), before.handed + there + back, begin};
            const bool better =
                limit ? with.costliest <= *limit && with.handed < best.handed : with.costliest < best.costliest;
            if (better) best = with;
            if (own > limit.value_or(best.costliest)) break;  // likewise
        }
        return best;
    }

    const PieceCosts& costs_;
    const Room& room_;
    const Goal& goal_;
    int pieces_, layers_;
    std::vector<std::vector<Best>> best_;
};

}  // namespace

std::optional<std::vector<int>> balance(const PieceCosts& costs, const Room& room, const Goal& goal) {
    return Balance{costs, room, goal}.run();
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
