// SPDX-License-Identifier: Apache-2.0
#include "search/screen.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/precision.hpp"

namespace rehearse::search {
namespace {

double size(DataType type) { return size_of(type).value; }

/// Micro-batches of a whole stage that its order lets be forward but not yet backward at the same time.
double most_in_flight(const Choices& choices, StageIndex stage) {
    const auto stages = static_cast<double>(choices.shape.pipe), s = static_cast<double>(stage);
    if (choices.shape.pipe == 1) return 1;
    if (choices.chunks == 1) return stages - s;
    const double pieces = 2 * (stages - s - 1) + (choices.chunks - 1) * stages + 1;
    return pieces / choices.chunks;
}

/// What a stage holds of activations at its fullest moment. Interleaved, as many micro-batches as there are stages go
/// through a chunk before the first of them goes through the next, forward from the first chunk on and backward from
/// the last one; a stage is ahead with as many pieces as schedule::interleaved lets it be. How many there are of a
/// chunk grows or falls evenly until the stage goes on to another chunk, forward or backward: moments around these are
/// looked at.
double most_held(const Choices& choices, const Stage& stage, StageIndex index) {
    const std::int64_t stages = choices.shape.pipe, chunks = choices.chunks, all = choices.micro_batches * chunks;
    if (chunks == 1) {
        const double in_flight = std::min(static_cast<double>(choices.micro_batches), most_in_flight(choices, index));
        return in_flight * stage.chunks[0].held + stage.chunks[0].passing;
    }
    const std::int64_t round = stages * chunks, ahead = 2 * (stages - 1 - index) + (chunks - 1) * stages + 1;
    const auto passed = [&](std::int64_t pieces, std::int64_t chunk) {  // pieces of a chunk, the first of `chunks`
        return pieces / round * stages + std::clamp<std::int64_t>(pieces % round - chunk * stages, 0, stages);
    };
    double most = 0;
    for (std::int64_t begin = 0; begin < round; begin += stages) {
        const std::int64_t turns = stages - (begin + ahead) % stages;  // until it goes on to another chunk forward
        for (const std::int64_t done : {begin, begin + turns - 1, begin + turns, begin + stages - 1}) {
            if (done >= begin + stages) continue;
            double bytes = stage.chunks[at(chunks - 1 - begin / stages)].passing;
            for (std::int64_t c = 0; c < chunks; ++c) {
                const std::int64_t there = passed(std::min(done + ahead, all), c);
                bytes += static_cast<double>(there - passed(done, chunks - 1 - c)) * stage.chunks[at(c)].held;
            }
            most = std::max(most, bytes);
        }
    }
    return most;
}

/// The ranks that sum gradients of what is no expert, and of experts, as a data axis.
Shape of_dense(const Shape& shape) { return {shape.holders(), shape.tensor, shape.pipe, shape.data_outside}; }
Shape of_experts(const Shape& shape) { return {shape.data, shape.expert, shape.pipe, shape.data_outside}; }

/// Weights of a stage that a rank updates.
double updated(const Choices& choices, const Stage& stage) {
    if (choices.zero == 0) return stage.weights;
    const Shape& shape = choices.shape;
    return (stage.weights - stage.expert_weights) / static_cast<double>(shape.holders()) +
           stage.expert_weights / static_cast<double>(shape.data);
}

}  // namespace

Screen::Screen(const Network& network, const Machine& machine, const schedule::Job& job, predict::Framework framework)
    : network_(network), machine_(machine), job_(job), framework_(std::move(framework)), wires_(machine) {}

std::optional<Group>& Screen::group(const Sharing& sharing) {
    const auto [known, fresh] = groups_.try_emplace(sharing);
    if (!fresh) return known->second;
    try {
        known->second.emplace(network_, machine_, framework_, job_, sharing);
    } catch (const InputError& error) {
        if (std::ranges::find(refusals_, error.what()) == refusals_.end()) refusals_.emplace_back(error.what());
    }
    return known->second;
}

Screen::Cell& Screen::cell(const Sharing& sharing, std::int64_t micro_batch) {
    const auto [known, fresh] = cells_.try_emplace({sharing, micro_batch});
    if (!fresh) return known->second;
    if (std::optional<Group>& ranks = group(sharing)) {
        std::optional<LayerCosts> costs = ranks->costs(micro_batch);
        if (costs && !is_plain(*costs, sharing, micro_batch)) known->second.costs = std::move(costs);
    }
    return known->second;
}

bool Screen::is_plain(const LayerCosts& costs, const Sharing& sharing, std::int64_t micro_batch) {
    if (!sharing.sequence && sharing.recompute == schedule::Recompute::none) return false;
    Sharing plainer = sharing;
    plainer.recompute = schedule::Recompute::none;
    if (sharing.recompute == schedule::Recompute::none) plainer.sequence = false;
    const Cell& other = cell(plainer, micro_batch);
    if (!other.costs) return true;
    // Doing more to hold as much is no choice either.
    const double held = costs.fullest_bytes, plainer_held = other.costs->fullest_bytes;
    const double takes = costs.forward_s.back() + costs.backward_s.back();
    const double plainer_takes = other.costs->forward_s.back() + other.costs->backward_s.back();
    return takes >= plainer_takes && held >= plainer_held * (1 - 1e-9);
}

std::optional<double> Screen::bound(const Shape& shape) {
    const std::int64_t batch = *job_.global_batch / shape.copies();
    if (*job_.global_batch % shape.copies() != 0) return std::nullopt;
    std::optional<double> least;
    const auto look_at = [&](std::int64_t micro_batch, bool ring) {
        const Cell& own =
            cell({.tensor = shape.tensor, .expert = shape.expert, .context = shape.context, .ring = ring}, micro_batch);
        if (!own.costs) return;
        // Exchanges of experts' gradients may be hidden, and keys of a ring.
        const double pass = shape.expert > 1 || shape.context > 1
                                ? own.costs->computed_s
                                : own.costs->forward_s.back() + own.costs->backward_s.back();
        const double step = pass * static_cast<double>(batch / micro_batch) / static_cast<double>(shape.pipe);
        if (!least || step < *least) least = step;
    };
    for (const bool ring : {false, true}) {
        if (ring && shape.context == 1) continue;
        std::int64_t micro_batch = 1;
        for (; micro_batch <= batch; micro_batch *= 2) {
            if (batch % micro_batch == 0) look_at(micro_batch, ring);
        }
        if (micro_batch / 2 != batch) look_at(batch, ring);
    }
    return least;
}

std::optional<Estimate> Screen::estimate(Choices& choices, double most_bytes) {
    const Shape& shape = choices.shape;
    const Sharing sharing{.tensor = shape.tensor,
                          .expert = shape.expert,
                          .context = shape.context,
                          .ring = choices.ring,
                          .sequence = choices.sequence,
                          .recompute = choices.recompute};
    Cell& own = cell(sharing, choices.micro_batch);
    if (!own.costs) return std::nullopt;
    const auto [ways, fresh] = own.ways.try_emplace({shape.pipe, choices.chunks});
    if (fresh) ways->second.even = stages_of(*own.costs, shape.pipe, choices.chunks);
    if (ways->second.even.empty()) return std::nullopt;
    const std::vector<Stage>& stages = fastest(choices, sharing, *own.costs, ways->second);
    // Which way a schedule takes is told by its own prices: what fits in one of the two gets its chance.
    const double held = std::min(memory(choices, ways->second.even), memory(choices, stages));
    Estimate estimate{std::numeric_limits<double>::infinity(), held};
    if (estimate.memory_bytes <= most_bytes) estimate.step_s = step(choices, stages, own.costs->update_s);
    return estimate;
}

const std::vector<std::vector<std::size_t>>& Screen::cuts(Sharing sharing, std::int64_t micro_batch,
                                                          const LayerCosts& costs, std::size_t pieces) {
    sharing.recompute = schedule::Recompute::none;
    Cell& plain = cell(sharing, micro_batch);
    const auto [known, fresh] = plain.cuts.try_emplace(pieces);
    if (fresh) known->second = cuts_by_bytes(plain.costs ? *plain.costs : costs, pieces);
    return known->second;
}

const std::vector<Stage>& Screen::fastest(const Choices& choices, const Sharing& sharing, const LayerCosts& costs,
                                          Ways& ways) {
    if (choices.shape.pipe == 1) return ways.even;
    constexpr double little = 1.05;
    const Passed even = passed(choices, ways.even, By::balance);
    if (even.seconds <= little * even.computed) return ways.even;
    if (!ways.others) {
        ways.others.emplace();
        const std::int64_t pieces = choices.shape.pipe * choices.chunks;
        for (const auto& ends : cuts(sharing, choices.micro_batch, costs, static_cast<std::size_t>(pieces)))
            ways.others->push_back(stages_of(costs, ends, choices.shape.pipe));
    }
    const std::vector<Stage>* best = &ways.even;
    double least = even.seconds;
    for (const std::vector<Stage>& other : *ways.others) {
        const double seconds = passed(choices, other, By::balance).seconds;
        if (seconds >= least) continue;
        least = seconds;
        best = &other;
    }
    return *best;
}

const Wires::Sum& Screen::sum(const Shape& shape) {
    std::optional<Wires::Sum>& known = lines(shape).sum;
    if (!known) known = wires_.sum(shape);
    return *known;
}

const Wires::Halves& Screen::halves(const Shape& shape) {
    std::optional<Wires::Halves>& known = lines(shape).halves;
    if (!known) known = wires_.halves(shape);
    return *known;
}

const Line& Screen::gather(const Shape& shape) {
    std::optional<Line>& known = lines(shape).gather;
    if (!known) known = wires_.piecewise(CollectiveKind::all_gather, shape, sum(shape).algorithm);
    return *known;
}

Screen::Passed Screen::passed(const Choices& choices, const std::vector<Stage>& stages, By by) {
    const Shape& shape = choices.shape;
    // What is computed again is half of a backward pass more.
    const bool again =
        choices.recompute == schedule::Recompute::all || choices.recompute == schedule::Recompute::blocks;
    const double passes_more = again ? 4.0 / 3 : 1;
    double longest = 0, all = 0, fill = 0, beside = 0;
    for (const Stage& stage : stages) {
        const double pass = by == By::all ? stage.forward_s + stage.backward_s : passes_more * stage.balanced_s;
        const double piece = by == By::all ? stage.longest_piece_s : passes_more * stage.longest_balanced_s;
        longest = std::max(longest, pass);
        all += pass;
        fill += piece;
        beside = std::max(beside, pass - piece);
    }
    fill += beside;
    Passed result{.hops = std::vector<double>(stages.size())};
    double all_hops = 0, most_handed = 0;
    if (shape.pipe > 1) {
        std::vector<Line>& behind = lines(shape).hops;
        if (behind.empty()) behind = wires_.hops(of_dense(shape));
        for (std::size_t s = 0; s < stages.size(); ++s) {
            const Stage& stage = stages[s];
            if (s + 1 < stages.size()) result.hops[s] = behind[s].at(stage.first_handed_bytes);
            const double handed = stage.hand_overs * behind[s].start_s + stage.handed_bytes * behind[s].s_per_byte;
            most_handed = std::max(most_handed, handed);
            all_hops += handed;
        }
    }
    const double ends = std::accumulate(result.hops.begin(), result.hops.end(), 0.0);
    result.seconds = passes(choices, {longest, all, fill, ends, all_hops, most_handed});
    result.computed = passes(choices, {longest, all, fill, 0, 0, 0});
    return result;
}

double Screen::step(Choices& choices, const std::vector<Stage>& stages, double update_s) {
    const Shape& shape = choices.shape;
    if (shape.holders() > 1)
        choices.all_reduce = choices.zero < 2 ? sum(of_dense(shape)).algorithm : halves(of_dense(shape)).algorithm;
    const Passed through = passed(choices, stages, By::all);
    const double busy = through.seconds;
    // A stage ends before the first one by the backward passes that its last micro-batch has before it.
    double ahead = 0, tail = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        tail = std::max(tail, exposed(choices, stages[s], busy) + update_s * updated(choices, stages[s]) - ahead);
        ahead += stages[s].backward_s / choices.chunks + through.hops[s];
    }
    return busy + tail;
}

/// All micro-batches through the stages. A micro-batch goes around all chunks of all stages and back, and so many as a
/// stage may hold are on their way: what they wait for each other's messages is their latency over their number. Where
/// stages are interleaved, as many micro-batches as there are stages go through one chunk before the first of them goes
/// through the next, so that it waits for the messages of the others, both ways.
double Screen::passes(const Choices& choices, const Pipe& pipe) {
    const auto micro_batches = static_cast<double>(choices.micro_batches);
    const auto stages = static_cast<double>(choices.shape.pipe);
    const double at_least = std::max(pipe.longest, pipe.most_handed);
    if (stages == 1) return (micro_batches - 1) * at_least + pipe.fill;
    const double there_and_back = 2 * pipe.all_hops;
    const double others = choices.chunks == 1 ? 0 : (stages - 1) * pipe.most_handed;
    const double around = pipe.all + there_and_back + 2 * others;
    const double pace = std::max(at_least, around / most_in_flight(choices, StageIndex{0}));
    return std::max((micro_batches - 1) * pace + pipe.fill + 2 * pipe.ends,
                    (micro_batches - 1) * at_least + pipe.fill + there_and_back + others);
}

/// What the other copies of a stage are waited for, beyond the `busy` seconds of the pipeline.
double Screen::exposed(const Choices& choices, const Stage& stage, double busy) {
    if (choices.shape.holders() == 1) return 0;
    const double compute = size(compute_type(job_.precision)), wire = size(wire_type(job_.precision));
    const double all_buckets = std::max(1.0, stage.buckets + stage.expert_buckets);
    const std::array shares{Share{stage.weights - stage.expert_weights, stage.buckets, of_dense(choices.shape)},
                            Share{stage.expert_weights, stage.expert_buckets, of_experts(choices.shape)}};
    const auto whole = [&](double unit, const auto& line_of) {  // `unit` bytes of each weight, or its gradient
        double seconds = 0;
        for (const Share& share : shares) {
            if (share.shape.data == 1 || share.buckets == 0) continue;
            const Line& line = line_of(share.shape);
            seconds += share.buckets * line.start_s + unit * share.weights * line.s_per_byte;
        }
        return seconds;
    };
    const auto behind = [&](double seconds, double cover) {  // the last bucket is ready when nothing is left to do
        if (!choices.overlap) return seconds;
        return std::max(seconds / all_buckets, seconds - cover * (1 - 1 / all_buckets));
    };
    if (choices.zero < 2) {
        const double summed = whole(wire, [&](const Shape& shape) -> const Line& { return sum(shape).line; });
        const double gathered =
            choices.zero == 1 ? whole(compute, [&](const Shape& shape) -> const Line& { return gather(shape); }) : 0;
        return behind(summed, stage.backward_s) + gathered;
    }
    const double scattered = whole(wire, [&](const Shape& shape) -> const Line& { return halves(shape).scatter; });
    const double gathered = whole(compute, [&](const Shape& shape) -> const Line& { return halves(shape).gather; });
    if (choices.zero == 2) return behind(scattered, stage.backward_s) + gathered;
    const auto times = static_cast<double>(choices.micro_batches);
    return behind(times * (2 * gathered + scattered), busy);
}

double Screen::memory(const Choices& choices, const std::vector<Stage>& stages) const {
    const double compute = size(compute_type(job_.precision)), wire = size(wire_type(job_.precision));
    const double update = size(update_type(job_.precision));
    const bool copies = update_type(job_.precision) != compute_type(job_.precision);
    double most = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
        const Stage& stage = stages[s];
        const double updated = search::updated(choices, stage);
        const bool scattered =
            choices.zero == 3 || (choices.zero == 2 && choices.micro_batches == 1 && choices.overlap);
        double bytes = (choices.zero == 3 ? updated + stage.largest.two_buckets : stage.weights) * compute;
        if (choices.zero < 3) bytes += stage.operand_bytes;  // else they are made of what is gathered
        bytes += (scattered ? updated : stage.weights) * wire;
        bytes += updated * update * (static_cast<double>(moments(job_.optimizer)) + (copies ? 1 : 0));
        bytes += std::max(choices.shape.holders() > 1 ? stage.largest.bucket * wire : 0, stage.largest.exchanged_bytes);
        bytes += most_held(choices, stage, StageIndex{s});
        most = std::max(most, bytes);
    }
    return most;
}

}  // namespace rehearse::search
