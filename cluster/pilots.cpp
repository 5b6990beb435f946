// SPDX-License-Identifier: Apache-2.0
// What is measured before jobs run: how fast networks train, and what starting them costs.
#include <algorithm>
#include <limits>
#include <set>

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

std::vector<std::int64_t> first_devices(std::int64_t count) {
    std::vector<std::int64_t> devices(static_cast<std::size_t>(count));
    for (std::int64_t d = 0; d < count; ++d) devices[static_cast<std::size_t>(d)] = d;
    return devices;
}

/// Lets one job train so many steps, and waits for it.
void train(Processes& world, int job, const Share& share, std::int64_t steps, bool again) {
    world.start({job, share, first_devices(share.devices), static_cast<double>(steps * share.batch), again});
    world.wait(Seconds{std::numeric_limits<double>::infinity()});
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
    Processes world(models, launch, "pilot-speeds");
    std::map<std::string, std::vector<SpeedPoint>> points;
    for (std::size_t j = 0; j < models.size(); ++j) {
        bool again = false;
        std::set<std::int64_t> counts{models[j].most_devices};
        for (std::int64_t k = 1; k < models[j].most_devices; k *= 2) counts.insert(k);
        for (const std::int64_t k : counts) {
            for (const std::int64_t b : samples_a_device(models[j])) {
                if (world.is_over()) return points;
                train(world, static_cast<int>(j), {k, k * b, 0}, steps, again);
                if (world.measured().empty()) return points;
                points[models[j].model].push_back({k, b, world.measured().back().step});
                again = true;
            }
        }
    }
    return points;
}

}  // namespace rehearse::cluster
