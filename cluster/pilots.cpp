// SPDX-License-Identifier: Apache-2.0
// What is measured before jobs run: how fast networks train, and what starting them costs.
#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "cluster/processes.hpp"

namespace rehearse::cluster {

namespace {

/// One job of each model, with the widest range of batches and of devices that any job of it has.
std::vector<Job> one_of_each(const std::vector<Job>& jobs, std::int64_t devices) {
    std::vector<Job> all;
    for (const Job& job : jobs) {
        auto found = std::ranges::find(all, job.model, &Job::model);
        if (found == all.end()) {
            all.push_back(job);
            found = std::prev(all.end());
            found->name = "pilot";
        }
        found->batches.least = std::min(found->batches.least, job.batches.least);
        found->batches.most = std::max(found->batches.most, job.batches.most);
        found->most_devices = std::min(devices, std::max(found->most_devices, job.most_devices));
    }
    return all;
}

std::vector<std::int64_t> devices_from(std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> devices(static_cast<std::size_t>(count));
    for (std::int64_t d = 0; d < count; ++d) devices[static_cast<std::size_t>(d)] = first + d;
    return devices;
}

/// Lets jobs train so many steps beside each other, each on devices of its own, and waits for all of them.
void train(Processes& world, std::span<const int> jobs, const Share& share, std::int64_t steps, bool again) {
    std::int64_t device = 0;
    for (const int job : jobs) {
        world.start({job, share, devices_from(device, share.devices), static_cast<double>(steps * share.batch), again});
        device += share.devices;
    }
    for (std::size_t ended = 0; ended < jobs.size() && !world.is_over();)
        ended += world.wait(Seconds{std::numeric_limits<double>::infinity()}).size();
}
void train(Processes& world, int job, const Share& share, std::int64_t steps, bool again) {
    train(world, std::span{&job, 1}, share, steps, again);
}

/// Of the last `count` that ended.
Seconds mean_step(const Processes& world, std::size_t count) {
    Seconds sum{};
    for (const Measured& each : std::span{world.measured()}.last(count)) sum += each.step;
    return sum / static_cast<double>(count);
}

/// From the least to the most samples a device that the job's batches come to, four times as many each time.
std::set<std::int64_t> samples_a_device(const Job& job) {
    std::set<std::int64_t> all{job.batches.most};
    const std::int64_t least = (job.batches.least + job.most_devices - 1) / job.most_devices;
    for (std::int64_t b = least; b < job.batches.most; b *= 4) all.insert(b);
    return all;
}

}  // namespace

Costs measured_costs(const std::vector<Job>& jobs, const Launch& launch, std::int64_t devices) {
    const std::vector<Job> models = one_of_each(jobs, devices);
    Processes world(models, launch, "pilot-costs");
    Costs costs;
    for (std::size_t j = 0; j < models.size() && !world.is_over(); ++j) {
        const std::int64_t most = models[j].most_devices;
        train(world, static_cast<int>(j), {1, models[j].batches.least, 0}, 2, false);
        train(world, static_cast<int>(j), {most, models[j].batches.least * most, 0}, 2, true);
    }
    const auto launches = static_cast<double>(world.measured().size());
    for (std::size_t i = 0; i < world.measured().size(); ++i) {
        Seconds& cost = i % 2 == 0 ? costs.start : costs.restart;
        cost += 2 * world.measured()[i].idle / launches;
    }
    return costs;
}

std::map<std::string, std::vector<SpeedPoint>> measured_points(const std::vector<Job>& jobs, const Launch& launch,
                                                               std::int64_t devices, std::int64_t steps) {
    const std::vector<Job> models = one_of_each(jobs, devices);
    std::vector<Job> pilots;
    std::vector<std::vector<int>> of_model;
    for (const Job& model : models) {
        std::vector<int>& own = of_model.emplace_back();
        for (std::int64_t c = 0; c < std::min(devices, static_cast<std::int64_t>(jobs.size())); ++c) {
            own.push_back(static_cast<int>(pilots.size()));
            pilots.push_back(model);
        }
    }
    Processes world(pilots, launch, "pilot-speeds");
    std::map<std::string, std::vector<SpeedPoint>> points;
    for (std::size_t j = 0; j < models.size(); ++j) {
        bool again = false;
        std::set<std::int64_t> counts{models[j].most_devices};
        for (std::int64_t k = 1; k < models[j].most_devices; k *= 2) counts.insert(k);
        for (const std::int64_t k : counts) {  // fewer of them each time: who starts again has started
            const std::size_t beside = std::min(of_model[j].size(), static_cast<std::size_t>(devices / k));
            for (const std::int64_t b : samples_a_device(models[j])) {
                if (world.is_over()) return points;
                train(world, std::span{of_model[j]}.first(beside), {k, k * b, 0}, steps, again);
                if (world.measured().size() < beside) return points;
                points[models[j].model].push_back({k, b, mean_step(world, beside)});
                again = true;
            }
        }
    }
    return points;
}

}  // namespace rehearse::cluster
