// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recorded_match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "calibrate/recorded_calls.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

struct Call {
    std::size_t index;
    CallFamily family;
    std::string_view name;
    Shapes shapes;
};

class Matcher {
public:
    Matcher(const StepCalls& step, const Network& network, std::int64_t batch)
        : step_(step), network_(network), batch_(batch) {}

    Match run() {
        collect();
        const std::size_t passes = times_through();
        assign(passes);
        if (passes > 1 && !all_alike()) assign(1);
        return std::move(match_);
    }

private:
    void collect() {
        for (std::size_t i = 0; i < step_.calls; ++i) {
            if (step_.call(i).part != RecordedCall::Part::forward) continue;
            const std::string_view name = step_.name(i);
            calls_.push_back({i, family_of(name), name, shapes_in(step_.shapes(i))});
            if (is_anchor(calls_.back().family)) anchor_calls_.push_back(calls_.size() - 1);
        }
        for (std::size_t i = 0; i < network_.layers.size(); ++i) {
            if (is_anchor(family_of(network_.layers[i].op))) anchor_layers_.push_back(static_cast<int>(i));
        }
    }

    void assign(std::size_t passes) {
        match_ = Match{};
        match_.layer.assign(step_.calls, no_layer);
        match_.pass.assign(step_.calls, 0);
        match_.passes = static_cast<int>(passes);
        const std::size_t each = anchor_calls_.size() / passes;
        begins_.assign(1, 0);
        for (std::size_t pass = 1; pass < passes; ++pass) begins_.push_back(begin_of(pass * each));
        begins_.push_back(calls_.size());
        for (std::size_t pass = 0; pass < passes; ++pass) {
            align(pass * each, (pass + 1) * each);
            if (match_.anchors == 0) nothing_matches();
            fill(begins_[pass], begins_[pass + 1], static_cast<int>(pass));
        }
        nodes();
        for (std::size_t i = 0; i < network_.layers.size(); ++i) {
            if (!taken_[i] && does_work(network_.layers[i].op)) match_.without_calls.push_back(static_cast<int>(i));
        }
    }

    // The most times that the step's calls are the same ones over again, if none of the network's layers needs more
    // than one of these times.
    std::size_t times_through() {
        const std::size_t n = anchor_calls_.size();
        std::optional<std::size_t> whole;
        for (std::size_t passes = n; passes > 1; --passes) {
            if (n % passes != 0 || !repeats(n / passes)) continue;
            if (!whole) whole = layers_found(n);
            if (*whole > 0 && layers_found(n / passes) == *whole) return passes;
        }
        return 1;
    }

    bool repeats(std::size_t period) const {
        for (std::size_t i = period; i < anchor_calls_.size(); ++i) {
            const Call &one = calls_[anchor_calls_[i - period]], &other = calls_[anchor_calls_[i]];
            if (one.name != other.name || one.shapes != other.shapes) return false;
        }
        return true;
    }

    std::size_t layers_found(std::size_t calls) {
        match_ = Match{};
        match_.layer.assign(step_.calls, no_layer);
        align(0, calls);
        return static_cast<std::size_t>(std::ranges::count(taken_, true));
    }

    // A time through the network begins behind the backward pass of the one before, if that is over by then.
    std::size_t begin_of(std::size_t anchor) const {
        const std::size_t first = anchor_calls_[anchor];
        std::size_t begin = first;
        while (begin > anchor_calls_[anchor - 1] + 1 && !backward_between(begin - 1, first)) --begin;
        return backward_between(anchor_calls_[anchor - 1], first) ? begin : first;
    }
    bool backward_between(std::size_t from, std::size_t to) const {
        for (std::size_t i = calls_[from].index; i < calls_[to].index; ++i)
            if (step_.call(i).part == RecordedCall::Part::backward) return true;
        return false;
    }

    // An evaluation after a training step is no micro-batch: it has no backward pass.
    bool all_alike() const {
        std::vector<bool> goes_back(static_cast<std::size_t>(match_.passes), false);
        for (std::size_t i = 0; i < step_.calls; ++i) {
            const bool of_layer = match_.layer[i] != no_layer && step_.call(i).part == RecordedCall::Part::backward;
            if (of_layer) goes_back[static_cast<std::size_t>(match_.pass[i])] = true;
        }
        return std::ranges::count(goes_back, goes_back.front()) == std::ssize(goes_back);
    }

    const Layer& layer(int index) const { return network_.layers[static_cast<std::size_t>(index)]; }

    Agreement agrees(const Call& call, int index) const {
        if (family_of(layer(index).op) != call.family) return Agreement::different;
        return agreement(layer(index), call.name, call.shapes, batch_);
    }

    // One to three calls, the columns of whose weights together are the layer's: queries, keys and values.
    double weight(std::size_t call, int index, std::size_t run) const {
        if (run == 1) {
            const Agreement agreement = agrees(calls_[anchor_calls_[call]], index);
            return agreement == Agreement::different ? 0 : agreement == Agreement::equal ? 4 : 1;
        }
        const auto* op = std::get_if<MatMul>(&layer(index).op);
        if (op == nullptr || call + run > anchor_calls_.size()) return 0;
        std::int64_t columns = 0;
        for (std::size_t i = call; i < call + run; ++i) {
            const Call& each = calls_[anchor_calls_[i]];
            const ProductShape shape = product_shape(each.name, each.shapes);
            if (each.family != CallFamily::product || shape.depth != op->k || shape.rows != op->m * batch_) return 0;
            columns += shape.columns;
        }
        return columns == op->n ? 4 : 0;
    }

    // The heaviest common subsequence of calls and layers (Needleman and Wunsch 1970, with free gaps).
    void align(std::size_t first, std::size_t last) {
        taken_.assign(network_.layers.size(), false);
        const std::size_t n = last - first, m = anchor_layers_.size();
        constexpr std::size_t most = 200'000'000;
        if (n * m > most) {
            throw InputError(fmt::format("{} calls and {} layers are too many to be matched", n, m));
        }
        std::vector<float> best((n + 1) * (m + 1), 0);
        std::vector<std::uint8_t> from((n + 1) * (m + 1), 0);  // 1 to 3: so many calls are the layer's; 4, 5: gaps
        const auto at = [&](std::size_t i, std::size_t j) { return i * (m + 1) + j; };
        for (std::size_t i = n + 1; i-- > 0;) {
            for (std::size_t j = m + 1; j-- > 0;) {
                const auto offer = [&](double value, std::uint8_t how) {
                    if (from[at(i, j)] != 0 && value <= best[at(i, j)]) return;
                    best[at(i, j)] = static_cast<float>(value);
                    from[at(i, j)] = how;
                };
                for (std::size_t run = 1; run <= 3 && i < n && j < m; ++run) {
                    const double w = i + run <= n ? weight(first + i, anchor_layers_[j], run) : 0;
                    if (w > 0) offer(w + best[at(i + run, j + 1)], static_cast<std::uint8_t>(run));
                }
                if (i < n) offer(best[at(i + 1, j)], 4);
                if (j < m) offer(best[at(i, j + 1)], 5);
            }
        }
        for (std::size_t i = 0, j = 0; i < n && j < m;) {
            const std::uint8_t how = from[at(i, j)];
            for (std::size_t run = 0; how < 4 && run < how; ++run)
                take(anchor_calls_[first + i + run], anchor_layers_[j]);
            i += how < 4 ? how : how == 4 ? 1 : 0;
            j += how == 4 ? 0 : 1;
        }
        match_leftovers(first, last);
    }

    void take(std::size_t call, int index) {
        match_.layer[calls_[call].index] = index;
        taken_[static_cast<std::size_t>(index)] = true;
        ++match_.anchors;
        match_.by_shape = match_.by_shape || agrees(calls_[call], index) == Agreement::equal;
    }

    // Branches that the program goes through in another order.
    void match_leftovers(std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            const std::size_t call = anchor_calls_[i];
            if (match_.layer[calls_[call].index] != no_layer) continue;
            for (const int index : anchor_layers_) {
                if (taken_[static_cast<std::size_t>(index)] || agrees(calls_[call], index) != Agreement::equal)
                    continue;
                take(call, index);
                break;
            }
        }
    }

    // Calls between two matched ones: of the layers behind the one before, as far as the next matched layer.
    void fill(std::size_t first, std::size_t last, int pass) {
        int before = no_layer;
        for (std::size_t i = first; i < last; ++i) {
            const Call& call = calls_[i];
            match_.pass[call.index] = pass;
            int& index = match_.layer[call.index];
            if (index == no_layer) index = found_between(call, before);
            if (index == no_layer) continue;
            taken_[static_cast<std::size_t>(index)] = true;
            before = index;
        }
    }

    // A layer between may be the last that a call was given to: an attention is many calls.
    int found_between(const Call& call, int before) const {
        const int end = static_cast<int>(network_.layers.size());
        if (before != no_layer && is_made_of(layer(before).op, call)) return before;
        for (int i = before + 1; i < end; ++i) {
            const Op& op = layer(i).op;
            if (std::holds_alternative<Attention>(op)) return i;
            if (is_anchor(family_of(op)) && taken_[static_cast<std::size_t>(i)]) break;
            if (taken_[static_cast<std::size_t>(i)] || !does_work(op)) continue;
            const bool same = call.family != CallFamily::arithmetic || says_function(op, call.name);
            if (family_of(op) == call.family && call.family != CallFamily::other && same) return i;
            if (is_made_of(op, call)) return i;
        }
        return no_layer;
    }

    // Layers that a framework makes of several calls, or that a compiler joined with what follows them.
    static bool is_made_of(const Op& op, const Call& call) {
        const CallFamily family = call.family;
        if (std::holds_alternative<Attention>(op)) return true;
        if (std::holds_alternative<Embedding>(op)) return family == CallFamily::embedding || family == CallFamily::add;
        if (std::holds_alternative<SoftmaxLoss>(op)) return family == CallFamily::loss;
        if (const auto* conv = std::get_if<Conv>(&op)) return conv->relu && family == CallFamily::activation;
        if (const auto* norm = std::get_if<BatchNorm>(&op)) {
            return (norm->relu && family == CallFamily::activation) || (norm->add && family == CallFamily::add);
        }
        if (const auto* product = std::get_if<MatMul>(&op))
            return product->activation && family == CallFamily::activation;
        return false;
    }

    // A node belongs to the call that made it: the last that began with its number, or with the nearest below it.
    void nodes() {
        std::map<std::int64_t, std::size_t> makers;  // by the number when it began; the last of equal ones
        for (const Call& call : calls_) {
            const std::int64_t number = step_.call(call.index).sequence;
            if (number >= 0) makers[number] = call.index;
        }
        if (makers.empty()) return nodes_by_kind();
        int before = no_layer, pass = 0;
        for (std::size_t i = 0; i < step_.calls; ++i) {
            const RecordedCall& call = step_.call(i);
            if (call.part != RecordedCall::Part::backward) continue;
            if (step_.name(i).find("AccumulateGrad") == std::string_view::npos) {
                const auto maker = makers.upper_bound(call.sequence);
                const bool known = call.sequence >= 0 && maker != makers.begin();
                before = known ? match_.layer[std::prev(maker)->second] : no_layer;
                if (known) pass = match_.pass[std::prev(maker)->second];
            }
            match_.layer[i] = before;
            match_.pass[i] = pass;
        }
    }

    // Without numbers: nodes of a family in the opposite order of the calls of that family; where each time through the
    // network has its backward pass behind it, by itself.
    void nodes_by_kind() {
        std::vector<std::size_t> ends;  // of each time, in the step's calls
        for (std::size_t pass = 1; pass + 1 < begins_.size(); ++pass) ends.push_back(calls_[begins_[pass]].index);
        ends.push_back(step_.calls);
        bool each_by_itself = true;
        for (std::size_t pass = 0, from = 0; pass < ends.size(); from = ends[pass++])
            each_by_itself = each_by_itself && has_nodes(from, ends[pass]);
        if (!each_by_itself) return nodes_by_kind(0, step_.calls), between_nodes();
        for (std::size_t pass = 0, from = 0; pass < ends.size(); from = ends[pass++]) nodes_by_kind(from, ends[pass]);
        between_nodes();
    }

    bool has_nodes(std::size_t from, std::size_t to) const {
        for (std::size_t i = from; i < to; ++i)
            if (step_.call(i).part == RecordedCall::Part::backward) return true;
        return false;
    }

    void nodes_by_kind(std::size_t from, std::size_t to) {
        std::map<CallFamily, std::vector<std::size_t>> of_calls, of_nodes;
        for (const Call& call : calls_) {
            const bool inside = call.index >= from && call.index < to;
            if (inside && match_.layer[call.index] != no_layer) of_calls[call.family].push_back(call.index);
        }
        for (std::size_t i = from; i < to; ++i) {
            if (step_.call(i).part != RecordedCall::Part::backward) continue;
            const CallFamily family = family_of(step_.name(i));
            // The loss is one call and two nodes.
            if (step_.name(i).find("LogSoftmax") != std::string_view::npos) continue;
            if (family != CallFamily::movement && family != CallFamily::other) of_nodes[family].push_back(i);
        }
        for (auto& [family, nodes] : of_nodes) {
            const std::vector<std::size_t>& makers = of_calls[family];
            if (makers.size() != nodes.size()) continue;
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                match_.layer[nodes[i]] = match_.layer[makers[makers.size() - 1 - i]];
                match_.pass[nodes[i]] = match_.pass[makers[makers.size() - 1 - i]];
            }
        }
    }

    // What follows a node, to the next that is known: sums of gradients, transpositions.
    void between_nodes() {
        int before = no_layer, pass = 0;
        for (std::size_t i = 0; i < step_.calls; ++i) {
            if (step_.call(i).part != RecordedCall::Part::backward) continue;
            if (match_.layer[i] != no_layer) {
                before = match_.layer[i];
                pass = match_.pass[i];
            } else if (step_.name(i).find("AccumulateGrad") != std::string_view::npos ||
                       step_.name(i).find("TBackward") != std::string_view::npos) {
                match_.layer[i] = before;
                match_.pass[i] = pass;
            }
        }
    }

    [[noreturn]] void nothing_matches() const {
        const std::string& path = step_.recording->path;
        const auto call = std::ranges::find_if(calls_, [](const Call& each) {
            return each.family == CallFamily::convolution || each.family == CallFamily::product;
        });
        if (call == calls_.end()) {
            throw InputError(
                fmt::format("{}: no convolution and no product among the {} operators of a step", path, step_.calls));
        }
        throw InputError(
            fmt::format("{}: no operator agrees with a layer of {} at {} samples: the first is {} of {}: right would "
                        "be the --model "
                        "and --batch (samples a rank) that were recorded",
                        path, network_.name, batch_, call->name, step_.shapes(call->index)));
    }

    const StepCalls& step_;
    const Network& network_;
    std::int64_t batch_;
    std::vector<Call> calls_;                // of the forward pass
    std::vector<std::size_t> anchor_calls_;  // into calls_
    std::vector<int> anchor_layers_;
    std::vector<std::size_t> begins_;  // into calls_, of each time through the network; then the end
    std::vector<bool> taken_;          // of the time that is being matched
    Match match_;
};

}  // namespace

bool does_work(const Op& op) {
    return has_pass(op, Pass::forward) && !std::holds_alternative<Input>(op) && !std::holds_alternative<Flatten>(op);
}

Match match(const StepCalls& step, const Network& network, std::int64_t batch) {
    return Matcher(step, network, batch).run();
}

}  // namespace rehearse::calibrate
