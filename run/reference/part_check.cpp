// SPDX-License-Identifier: Apache-2.0
#include "run/reference/part_check.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/index.hpp"
#include "core/methods/compression.hpp"
#include "core/methods/curvature.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "core/weight_versions.hpp"
#include "run/methods/method.hpp"
#include "run/methods/servers.hpp"
#include "run/pieces.hpp"
#include "run/reference/single_rank.hpp"

namespace rehearse::run {

namespace {

constexpr double least = 0x1p-18;

/// Between a piece and what `whole` has at its `places`, relative to the whole layer: a bias before a batch
/// normalization has a gradient of rounding alone.
double distance(std::span<const float> piece, std::span<const float> whole, std::span<const std::int64_t> places) {
    double sum = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const double expected = places[i] == padding ? 0 : whole[at(places[i])];
        sum += std::pow(piece[i] - expected, 2);
    }
    if (!std::isfinite(sum)) return 1;
    if (sum == 0) return 0;
    double size = 0;
    for (const double value : whole) size += value * value;
    return size > 0 && std::isfinite(size) ? std::sqrt(sum / size) : 1;
}

std::vector<float> taken(std::span<const float> from, std::span<const std::int64_t> places) {
    std::vector<float> piece;
    for (const std::int64_t place : places) piece.push_back(place == padding ? 0 : from[at(place)]);
    return piece;
}

}  // namespace

bool rounds_apart(const Schedule& schedule) {
    if (schedule.methods.get<Curvature>().period > 0) return true;
    return std::ranges::any_of(schedule.classes, [&](const RankClass& rank_class) {
        return !std::ranges::equal(rank_class.part.network.layers, schedule.network.layers, {}, &Layer::op, &Layer::op);
    });
}

bool is_whole(const Schedule& schedule) {
    return sums_gradients(schedule) && schedule.classes.size() == 1 && !gathers_weights(schedule.classes[0]) &&
           !updates_each_micro_batch(schedule.classes[0]) &&
           std::ranges::equal(schedule.classes[0].part.network.layers, schedule.network.layers, {}, &Layer::op,
                              &Layer::op);
}

GradientCheck check_part(const Schedule& schedule, RankIndex rank, Program& own, const Schedule& single,
                         const ReferenceOptions& options) {
    const SingleRank whole{schedule, single, options};
    const Trained expected = whole.train(rank, 0);
    std::vector<Trained> changed;
    const bool by_bits = std::ranges::any_of(methods_of(schedule), &MethodRow::by_bits);
    const bool measured = !by_bits || rounds_apart(schedule);
    for (int i = 1; i <= perturbations && measured; ++i) changed.push_back(whole.train(rank, i));
    const std::vector<std::int64_t> along = places_on(schedule.mesh, rank);
    // What is sent in 16 bits is rounded once by each rank, and by each of their additions; from the next step on the
    // gradients of all stages hang on it.
    double rounding = 0;
    const std::optional<DataType> rounded = schedule.methods.get<Rounding>().type;
    if (rounded && schedule.methods.get<Servers>().count > 0) rounding = unit_roundoff(*rounded);  // of a push
    for (const RankClass& rank_class : schedule.classes) {
        for (const Step& step : rank_class.steps) {
            const auto* sum = std::get_if<Communicate>(&step.action);
            if (sum == nullptr || !sum->of_bucket() || sum->type == DataType::f32) continue;
            const auto ranks = static_cast<double>(size_of(schedule.mesh, sum->axis));
            rounding = std::max(rounding, ranks * unit_roundoff(sum->type));
        }
    }
    const double floor = std::max(least, rounding);
    std::set<int> by_server;  // layers whose gradients servers make
    for (const Step& step : schedule.classes[at(class_of(schedule, rank))].steps) {
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        if (push_pull != nullptr && sends_factors(*push_pull)) {
            by_server.insert(own.part().buckets[at(push_pull->bucket)].layers.front());
        }
    }
    GradientCheck worst{0, floor};
    const auto compare = [&](std::vector<std::vector<float>> Trained::*which, std::span<const float> mine, int layer,
                             std::span<const std::int64_t> places) {
        const std::vector<float>& right = (expected.*which)[at(layer)];
        double reach = 0;
        for (const Trained& other : changed) {
            reach = std::max(reach, distance(taken((other.*which)[at(layer)], places), right, places));
        }
        const double error = distance(mine, right, places), tolerance = std::max(floor, allowance * reach);
        if (error / tolerance > worst.error / worst.tolerance) worst = {error, tolerance};
    };
    for (std::size_t i = 0; i < own.part().network.layers.size(); ++i) {
        const Origin& origin = own.part().origins[i];
        const std::vector<std::int64_t> places =
            indices_of_weights(schedule, origin, own.part().network.layers[i].op, along);
        if (places.empty()) continue;
        const LayerTensors mine = own.tensors().layer(static_cast<int>(i));
        std::vector<float> gradients = floats_of(own.tensors().parameters_of(static_cast<int>(i)).applied);
        for (float& gradient : gradients) gradient /= options.scale;
        const bool skipped = !options.skipped.empty() && options.skipped.back();  // then they are not finite
        const bool made =
            !updates_directly(own.part().network.layers[i].op) && !by_server.contains(static_cast<int>(i));
        if (!skipped && made) compare(&Trained::gradients, gradients, origin.layer, places);
        compare(&Trained::weights, floats_of(mine.weights), origin.layer, places);
    }
    return worst;
}

}  // namespace rehearse::run
