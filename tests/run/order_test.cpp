// SPDX-License-Identifier: Apache-2.0
// Steps of one rank that touch the same memory, at least one of them writing, are ordered: by their stream, or by what
// they wait for. Otherwise results depend on which thread is faster.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "run/program.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

struct Region {
    const std::byte* begin = nullptr;
    std::size_t size = 0;
    bool written = false;
    std::string name{};
};

/// All that a step reads and writes, as its buffers say; of messages of a layer also where their data come from and go.
class Touched {
public:
    Touched(Program& program, const ReadyStep& ready) : program_(program) {
        const auto* const computed = std::get_if<Compute>(&ready.step->action);
        // The products of backward_data read weights and errors alone, where there is a pass for the weights' gradient.
        kernels(ready.buffers, computed == nullptr || computed->problem.pass != Pass::backward_data ||
                                   !has_pass(computed->problem.op, Pass::backward_weights));
        add(ready.data, !std::holds_alternative<Send>(ready.step->action), "data");
        for (const Addition& addition : ready.additions) {
            add(addition.sum, true, "sum");
            add(addition.part, true, "part");
        }
        if (const auto* action = std::get_if<Communicate>(&ready.step->action);
            action != nullptr && !action->of_bucket()) {
            message(*action);
        }
        if (const auto* compute = std::get_if<Compute>(&ready.step->action);
            compute != nullptr && std::holds_alternative<Communication>(layer(compute->layer).op)) {
            moved(compute->layer, compute->micro_batch, compute->problem.pass == Pass::forward);
        }
    }
    const std::vector<Region>& regions() const { return regions_; }

private:
    const Layer& layer(int index) const { return program_.part().network.layers[at(index)]; }
    void add(rehearse::kernels::ConstView view, bool written, const char* name) {
        if (!view.empty()) {
            regions_.push_back({static_cast<const std::byte*>(view.bytes()), view.size_bytes(), written, name});
        }
    }
    void kernels(const rehearse::kernels::Buffers& b, bool all) {
        for (const auto& src : b.src) add(all ? src : rehearse::kernels::ConstView{}, false, "src");
        add(b.dst_in, false, "dst_in");
        add(b.dst, true, "dst");
        add(b.weights, !b.momentum.empty(), "weights");
        add(b.diff_dst, false, "diff_dst");
        for (const auto& diff : b.diff_src) add(diff, true, "diff_src");
        if (all) add(b.diff_weights, b.momentum.empty(), "diff_weights");
        add(b.workspace, true, "workspace");
        add(b.state, true, "state");
        add(b.weights_copy, true, "weights_copy");
    }
    // From the input's output to the layer's, or from its gradient to the input's.
    void moved(int index, int micro_batch, bool forward) {
        Tensors& tensors = program_.tensors();
        const int input = layer(index).inputs.front();
        const LayerTensors own = tensors.layer(index, micro_batch);
        add(forward ? tensors.layer(input, micro_batch).output : own.diff, false, "from");
        add(forward ? own.output : tensors.layer(tensors.diff_stored_as(input), micro_batch).diff, true, "to");
    }
    void message(const Communicate& action) {
        if (action.kind != CollectiveKind::all_reduce)
            moved(action.layer(), action.micro_batch, action.pass == Pass::forward);
    }

    Program& program_;
    std::vector<Region> regions_;
};

/// All steps of all ranks, and which of them have ended when another one ends: those that it waits for, the one before
/// it on its stream, of a message the sending, of a collective what any of its ranks does before it.
class Ordered {
public:
    explicit Ordered(const Schedule& schedule) : schedule_(schedule) {
        for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
            first_.push_back(waits_for_.size());
            waits_for_.resize(waits_for_.size() + steps(rank).size());
        }
        for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) find_own(rank);
        meet();
        ended_.assign(waits_for_.size(), {});
        for (std::size_t node = 0; node < waits_for_.size(); ++node) close(node);
    }
    bool is_before(RankIndex rank, std::size_t step, std::size_t later) const {
        return ended_[node(rank, later)][node(rank, step)];
    }

private:
    const std::vector<Step>& steps(RankIndex rank) const {
        return schedule_.classes[at(class_of(schedule_, rank))].steps;
    }
    std::size_t node(RankIndex rank, std::size_t step) const { return first_[at(rank)] + step; }
    std::vector<RankIndex> group(int axis, RankIndex rank) const { return group_of(schedule_.mesh, axis, rank); }

    void find_own(RankIndex rank) {
        std::map<Stream, std::size_t> last;
        for (std::size_t i = 0; i < steps(rank).size(); ++i) {
            const Step& step = steps(rank)[i];
            for (const int other : step.after) waits_for_[node(rank, i)].push_back(node(rank, at(other)));
            const auto [place, first] = last.try_emplace(step.stream, i);
            if (!first) waits_for_[node(rank, i)].push_back(node(rank, std::exchange(place->second, i)));
            if (const auto* sum = std::get_if<Communicate>(&step.action)) {
                together_[{group(sum->axis, rank), sum->axis, 0}][rank].push_back(node(rank, i));
            } else if (const auto* send = std::get_if<Send>(&step.action)) {
                const bool gradients = step.stream == Stream::send_gradients;
                sent_[{rank, neighbour(rank, send->axis, send->offset), gradients}].push_back(node(rank, i));
            } else if (const auto* recv = std::get_if<Recv>(&step.action)) {
                const bool gradients = step.stream == Stream::receive_gradients;
                received_[{neighbour(rank, recv->axis, recv->offset), rank, gradients}].push_back(node(rank, i));
            }
        }
    }
    RankIndex neighbour(RankIndex rank, int axis, std::int64_t offset) const {
        const std::vector<RankIndex> all = group(axis, rank);
        return all[at(place_on(schedule_.mesh, axis, rank) + offset)];
    }
    void meet() {
        for (const auto& [edge, all] : received_) {
            for (std::size_t i = 0; i < all.size(); ++i) waits_for_[all[i]].push_back(sent_.at(edge)[i]);
        }
        const std::vector<std::vector<std::size_t>> own = waits_for_;
        for (const auto& [group, members] : together_) {
            for (const auto& [rank, mine] : members) {
                for (const auto& [other, theirs] : members) {
                    for (std::size_t i = 0; i < mine.size() && i < theirs.size(); ++i) {
                        const auto& before = own[theirs[i]];
                        waits_for_[mine[i]].insert(waits_for_[mine[i]].end(), before.begin(), before.end());
                    }
                }
            }
        }
    }
    void close(std::size_t node) {
        if (!ended_[node].empty()) return;
        std::vector<bool> all(waits_for_.size());
        for (const std::size_t before : waits_for_[node]) {
            close(before);
            all[before] = true;
            for (std::size_t i = 0; i < all.size(); ++i) all[i] = all[i] || ended_[before][i];
        }
        ended_[node] = std::move(all);
    }

    using Edge = std::tuple<RankIndex, RankIndex, bool>;  // sender, receiver, gradients
    const Schedule& schedule_;
    std::vector<std::size_t> first_;  // node of each rank
    std::vector<std::vector<std::size_t>> waits_for_;
    std::vector<std::vector<bool>> ended_;
    std::map<Edge, std::vector<std::size_t>> sent_, received_;
    std::map<std::tuple<std::vector<RankIndex>, int, int>, std::map<RankIndex, std::vector<std::size_t>>> together_;
};

std::set<std::string> races(const Schedule& schedule, const Ordered& ordered, RankIndex rank) {
    Program program{schedule, rank, {}, 1, {}};
    const std::span<ReadyStep> steps = program.steps();
    std::vector<std::vector<Region>> touched;
    for (const ReadyStep& ready : steps) touched.push_back(Touched{program, ready}.regions());
    std::set<std::string> found;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (ordered.is_before(rank, j, i)) continue;
            for (const Region& a : touched[j]) {
                for (const Region& b : touched[i]) {
                    if (!a.written && !b.written) continue;
                    if (a.begin >= b.begin + b.size || b.begin >= a.begin + a.size) continue;
                    const auto micro_batch = [](const ReadyStep& ready) {
                        const auto* compute = std::get_if<Compute>(&ready.step->action);
                        const auto* sum = std::get_if<Communicate>(&ready.step->action);
                        const auto* send = std::get_if<Send>(&ready.step->action);
                        const auto* recv = std::get_if<Recv>(&ready.step->action);
                        return compute ? compute->micro_batch
                               : sum   ? sum->micro_batch
                               : send  ? send->micro_batch
                               : recv  ? recv->micro_batch
                                       : -1;
                    };
                    found.insert(fmt::format("{}[{}] ({}, {}) | {}[{}] ({}, {})", steps[j].step->name,
                                             micro_batch(steps[j]), a.name, to_string(steps[j].step->stream),
                                             steps[i].step->name, micro_batch(steps[i]), b.name,
                                             to_string(steps[i].step->stream)));
                }
            }
        }
    }
    return found;
}

Network decoder() {
    return models::transformer(
        {.name = "decoder", .layers = 2, .hidden = 32, .heads = 4, .vocabulary = 48, .positions = 16, .keep = 0.75},
        16);
}

void expect_no_races(const Schedule& schedule) {
    SCOPED_TRACE(schedule.plan);
    const Ordered ordered{schedule};
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        SCOPED_TRACE(fmt::format("rank {}", rank));
        for (const std::string& race : races(schedule, ordered, rank)) ADD_FAILURE() << race;
    }
}

TEST(Order, StepsThatTouchTheSameMemoryWaitForEachOther) {
    for (const char* plan :
         {"data=4", "data=4:zero=2:microbatches=2", "data=4:zero=3:microbatches=2", "pipe=4:microbatches=4",
          "pipe=2:microbatches=4,tensor=2", "pipe=2:microbatches=4,tensor=2:sequence=on",
          "pipe=2:microbatches=4,data=2", "data=2,tensor=2:sequence=on", "data=2:zero=2,pipe=2:microbatches=2",
          "pipe=2:schedule=interleaved:microbatches=4:recompute=on,data=2", "pipe=4:schedule=gpipe:microbatches=4"}) {
        expect_no_races(test::schedule_of(decoder(), plan, 4, 4));
    }
    for (const char* plan : {"pipe=4:copies=2+2:microbatches=4", "pipe=4:copies=1+2+1:microbatches=4:recompute=on"}) {
        expect_no_races(test::schedule_of(test::branches(), plan, 4, 4));
    }
}

}  // namespace
}  // namespace rehearse::run
