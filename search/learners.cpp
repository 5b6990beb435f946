// SPDX-License-Identifier: Apache-2.0
#include "search/learners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "predict/predict.hpp"

namespace rehearse::search {

namespace {

void check(const LearnersRequest& request) {
    if (request.most < 1) throw InputError(fmt::format("--most {}: at least 1 learner", request.most));
    if (request.job.plan.methods.get<Averaging>().period > 0) {
        throw InputError(fmt::format("--plan '{}': learners and local are what is looked for; leave them out",
                                     request.job.plan.text));
    }
}

/// The plan with so many learners: the option follows the data axis, which has no comma in it.
std::string with_learners(const std::string& plan, std::int64_t learners) {
    std::size_t data = plan.find("data");
    while (data != std::string::npos && data != 0 && plan[data - 1] != ',') data = plan.find("data", data + 1);
    if (data == std::string::npos) throw InputError(fmt::format("--plan '{}': learners need the data axis", plan));
    const std::size_t end = std::min(plan.find(',', data), plan.size());
    return plan.substr(0, end) + fmt::format(":learners={}", learners) + plan.substr(end);
}

/// Nothing where a step takes more samples than the data set has.
std::optional<LearnersPoint> point_of(const LearnersRequest& request, std::int64_t batch, std::int64_t learners) {
    LearnersPoint made{
        .batch = batch, .learners = learners, .plan = with_learners(request.job.plan.text, learners), .point = {}};
    predict::Job job = request.job;
    job.plan = schedule::parse_plan(made.plan);
    job.batch = batch * learners;
    const predict::Setup setup = predict::setup_of(job, request.devices);
    const std::optional<std::int64_t>& dataset = job.training.dataset;
    if (dataset && global_batch(setup.schedule) > *dataset) return std::nullopt;
    Timeline unused;
    made.point = predict::point_of(job, setup, unused);
    return made;
}

std::vector<LearnersPoint> tuned(const LearnersRequest& request, std::int64_t batch) {
    std::vector<LearnersPoint> points;
    std::optional<std::size_t> chosen;
    for (std::int64_t learners = 1; learners <= request.most; ++learners) {
        std::optional<LearnersPoint> next = point_of(request, batch, learners);
        if (!next || !next->point.memory.fits) break;
        if (chosen) {
            next->gain = next->point.figures.samples_per_s() / points[*chosen].point.figures.samples_per_s() - 1;
        }
        const bool enough = chosen && next->gain < request.gain;
        points.push_back(std::move(*next));
        if (enough) break;
        chosen = points.size() - 1;
    }
    if (chosen) points[*chosen].tuned = true;
    return points;
}

/// Where no batch has a point: whether that is for the data set, beside which the memory was not looked at.
void check_dataset(const LearnersRequest& request) {
    for (const std::int64_t batch : request.batches) {
        if (point_of(request, batch, 1)) return;
    }
    throw InputError(fmt::format(
        "--batches: with each of these a step on {} device{} takes more samples than the data set has ({}): smaller "
        "--batches, or fewer --devices",
        request.devices, request.devices == 1 ? "" : "s", *request.job.training.dataset));
}

double worth(const LearnersPoint& point) {
    const predict::Point& of = point.point;
    return of.training ? -of.training->all.value : of.figures.samples_per_s();
}

}  // namespace

LearnersResult search_learners(const LearnersRequest& request) {
    check(request);
    LearnersResult result{.points = {}, .by_accuracy = request.job.training.dataset.has_value()};
    for (const std::int64_t batch : request.batches) {
        for (LearnersPoint& point : tuned(request, batch)) result.points.push_back(std::move(point));
    }
    if (result.points.empty()) check_dataset(request);
    for (std::size_t i = 1; i < result.points.size(); ++i) {
        if (worth(result.points[i]) > worth(result.points[result.best])) result.best = i;
    }
    return result;
}

}  // namespace rehearse::search
