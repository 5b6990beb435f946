// SPDX-License-Identifier: Apache-2.0
#include "schedule/boxes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "core/index.hpp"
#include "schedule/box_times.hpp"

namespace rehearse::schedule {

namespace {

std::int64_t length_of(BoxKind kind, const Ticks& ticks) {
    switch (kind) {
        case BoxKind::forward:
            return ticks.forward;
        case BoxKind::again:
            return ticks.again;
        case BoxKind::backward:
            return ticks.backward;
        case BoxKind::weights:
            return ticks.weights;
        case BoxKind::update:
            return ticks.update;
    }
    return 0;
}

std::pair<BoxKind, int> kind_of(const Step& step) {
    const auto* compute = std::get_if<Compute>(&step.action);
    if (compute == nullptr) return {BoxKind::update, 0};
    if (compute->problem.pass != Pass::forward) return {BoxKind::backward, compute->micro_batch};
    return {step.recomputed ? BoxKind::again : BoxKind::forward, compute->micro_batch};
}

/// Forward passes of a micro-batch take the chunks in turn, backward passes the other way round.
void number_chunks(std::vector<ComputeBox>& boxes, int chunks) {
    std::map<std::pair<BoxKind, int>, int> seen;
    for (ComputeBox& box : boxes) {
        if (box.kind == BoxKind::update) continue;
        const int turn = seen[{box.kind, box.micro_batch}]++ % chunks;
        box.chunk = box.kind == BoxKind::forward ? turn : chunks - 1 - turn;
    }
}

/// Where the gradients of a layer's data are made in another box than those of its weights, these are put off.
void find_put_off(const RankClass& rank_class, Boxed& made) {
    std::map<std::pair<int, int>, int> data;  // by layer and micro-batch: the box that makes the gradient of its input
    std::vector<bool> weights_only(made.boxes.size(), true), put_off(made.boxes.size());
    const auto each = [&](auto visit) {
        for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
            const auto* compute = std::get_if<Compute>(&rank_class.steps[i].action);
            if (compute != nullptr && made.box_of[i] != no_box) visit(*compute, made.box_of[i]);
        }
    };
    each([&](const Compute& compute, int box) {
        if (compute.problem.pass == Pass::backward_weights) return;
        weights_only[at(box)] = false;
        if (compute.problem.pass == Pass::backward_data) data[{compute.layer, compute.micro_batch}] = box;
    });
    each([&](const Compute& compute, int box) {
        const auto found = data.find({compute.layer, compute.micro_batch});
        if (found != data.end() && found->second != box) put_off[at(box)] = true;
    });
    for (std::size_t b = 0; b < made.boxes.size(); ++b) {
        if (weights_only[b] && put_off[b]) made.boxes[b].kind = BoxKind::weights;
    }
}

/// Steps of one micro-batch and direction that lie together.
Boxed boxed(const RankClass& rank_class) {
    Boxed made{.boxes = {}, .box_of = std::vector<int>(rank_class.steps.size(), no_box)};
    for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
        const Step& step = rank_class.steps[i];
        if (step.stream != Stream::compute) continue;
        const auto [kind, micro_batch] = kind_of(step);
        const bool goes_on =
            !made.boxes.empty() && made.boxes.back().kind == kind && made.boxes.back().micro_batch == micro_batch;
        if (!goes_on) made.boxes.push_back({.kind = kind, .micro_batch = micro_batch});
        made.box_of[i] = static_cast<int>(made.boxes.size()) - 1;
    }
    find_put_off(rank_class, made);
    return made;
}

/// The most forward boxes of one micro-batch on any lane.
int count_chunks(const std::vector<Boxed>& classes) {
    int most = 1;
    for (const Boxed& each : classes) {
        std::map<int, int> count;
        for (const ComputeBox& box : each.boxes) {
            if (box.kind == BoxKind::forward) most = std::max(most, ++count[box.micro_batch]);
        }
    }
    return most;
}

}  // namespace

char letter(BoxKind kind) { return "FRBWU"[static_cast<int>(kind)]; }

BoxChart boxes(const Schedule& schedule, const Ticks& ticks) {
    std::vector<Boxed> classes;
    for (const RankClass& rank_class : schedule.classes) classes.push_back(boxed(rank_class));
    BoxChart chart;
    chart.chunks = count_chunks(classes);
    for (Boxed& each : classes) {
        number_chunks(each.boxes, chart.chunks);
        for (ComputeBox& box : each.boxes) box.length = length_of(box.kind, ticks);
    }
    place(schedule, classes);
    for (std::size_t c = 0; c < classes.size(); ++c) {
        std::erase_if(classes[c].boxes, [](const ComputeBox& box) { return box.length == 0; });
        for (const ComputeBox& box : classes[c].boxes) chart.end = std::max(chart.end, box.start + box.length);
        chart.lanes.push_back({schedule.classes[c].name, std::move(classes[c].boxes)});
    }
    return chart;
}

double idle_share(const BoxChart& chart, const Lane& lane) {
    std::int64_t busy = 0;
    for (const ComputeBox& box : lane.boxes) busy += box.length;
    return chart.end == 0 ? 0 : static_cast<double>(chart.end - busy) / static_cast<double>(chart.end);
}

}  // namespace rehearse::schedule
