// SPDX-License-Identifier: Apache-2.0
#include "core/schedule.hpp"

#include "core/error.hpp"

namespace rehearse {

std::string_view to_string(Stream stream) {
    switch (stream) {
        case Stream::compute:
            return "compute";
        case Stream::communication:
            return "communication";
        case Stream::io:
            return "io";
    }
    return "?";
}

std::string_view to_string(Precision precision) {
    switch (precision) {
        case Precision::fp32:
            return "fp32";
        case Precision::fp16:
            return "fp16";
        case Precision::bf16:
            return "bf16";
        case Precision::mixed:
            return "mixed";
    }
    return "?";
}

int class_of(const Schedule& schedule, std::int64_t rank) {
    const std::vector<std::int64_t> at = coordinates(schedule.mesh, rank);
    std::int64_t index = 0;
    for (const int axis : schedule.class_axes) {
        const auto a = static_cast<std::size_t>(axis);
        index = index * schedule.mesh.axes[a].size + at[a];
    }
    return static_cast<int>(index);
}

std::int64_t global_batch(const Schedule& schedule) {
    const int data = axis_index(schedule.mesh, "data");
    return schedule.batch_per_rank * (data < 0 ? 1 : schedule.mesh.axes[static_cast<std::size_t>(data)].size);
}

namespace {

void check_action(const Schedule& schedule, const Step& step) {
    const auto axis_exists = [&](int axis) { return axis >= 0 && axis < static_cast<int>(schedule.mesh.axes.size()); };
    const auto bucket_exists = [&](int b) { return b >= 0 && b < static_cast<int>(schedule.buckets.size()); };
    if (const auto* compute = std::get_if<Compute>(&step.action)) {
        require(compute->layer >= 0 && compute->layer < static_cast<int>(schedule.network.layers.size()),
                "a compute step names a layer of the network");
    } else if (const auto* reduce = std::get_if<AllReduceBucket>(&step.action)) {
        require(axis_exists(reduce->axis) && bucket_exists(reduce->bucket), "an all-reduce names a bucket and an axis");
        require(reduce->elements == schedule.buckets[static_cast<std::size_t>(reduce->bucket)].elements,
                "an all-reduce sums its whole bucket");
    } else if (const auto* update = std::get_if<Update>(&step.action)) {
        require(bucket_exists(update->bucket), "an update names a bucket");
    } else if (const auto* send = std::get_if<Send>(&step.action)) {
        require(axis_exists(send->axis), "a send names an axis");
    } else if (const auto* recv = std::get_if<Recv>(&step.action)) {
        require(axis_exists(recv->axis), "a receive names an axis");
    }
}

}  // namespace

void check(const Schedule& schedule) {
    std::size_t classes = 1;
    for (const int axis : schedule.class_axes) {
        classes *= static_cast<std::size_t>(schedule.mesh.axes.at(static_cast<std::size_t>(axis)).size);
    }
    require(classes == schedule.classes.size(), "one rank class for each coordinate on the class axes");
    for (const RankClass& rank_class : schedule.classes) {
        for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
            const Step& step = rank_class.steps[i];
            check_action(schedule, step);
            for (const int before : step.after) {
                require(before >= 0 && static_cast<std::size_t>(before) < i, "a step waits for an earlier one");
            }
        }
    }
}

}  // namespace rehearse
