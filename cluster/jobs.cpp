// SPDX-License-Identifier: Apache-2.0
#include "cluster/jobs.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/csv.hpp"

namespace rehearse::cluster {

namespace {

std::int64_t whole_or(const models::Csv& csv, std::size_t row, std::string_view column, std::int64_t otherwise) {
    return csv.has(column) && !csv.text(row, column).empty() ? csv.whole(row, column, 1) : otherwise;
}

constexpr std::array<std::string_view, 10> columns{"name",  "model",     "arrival_s", "samples",     "devices",
                                                   "batch", "min_batch", "max_batch", "max_devices", "after"};

using Places = std::map<std::string, int, std::less<>>;  // of jobs by their names

// Only earlier rows, so that no job waits for itself.
std::vector<int> jobs_before(const models::Csv& csv, std::size_t row, const Places& above) {
    std::vector<int> before;
    if (!csv.has("after") || csv.text(row, "after").empty()) return before;
    for (const std::string_view name : split(csv.text(row, "after"), '+')) {
        const auto found = above.find(name);
        if (found == above.end()) csv.fail(row, fmt::format("after: no job '{}' stands above this one", name));
        before.push_back(found->second);
    }
    return before;
}

// Why there is no speed of what a job asks for: which bound of the points it is beyond.
std::string why_none(const Job& job, const Speeds& speeds) {
    if (job.devices < speeds.least_devices() || job.devices > speeds.most_devices())
        return fmt::format("speeds are of {} to {} devices", speeds.least_devices(), speeds.most_devices());
    if (job.batch < job.devices) return "some of them would have no sample";
    const std::int64_t each = (job.batch + job.devices - 1) / job.devices;
    const auto [least, most] = speeds.per_device(job.devices);
    if (least > most)
        return fmt::format("no samples a device have speeds of both fewer and more devices than {}", job.devices);
    return fmt::format("{} samples a device, and speeds are of {} to {} there", each, least, most);
}

}  // namespace

std::vector<Job> read_jobs(std::string_view text, const std::string& origin) {
    const models::Csv csv(text, origin);
    static_cast<void>(csv.column("name"));  // else it is another table
    csv.only(columns);
    std::vector<Job> jobs;
    Places places;
    for (std::size_t row = 0; row < csv.size(); ++row) {
        Job job{.name = csv.text(row, "name"), .model = csv.text(row, "model")};
        if (job.name.empty()) csv.fail(row, "the job has no name");
        if (places.contains(job.name)) {
            csv.fail(row, fmt::format("a job '{}' stands above: names are unique", job.name));
        }
        job.arrival = Seconds{csv.not_negative(row, "arrival_s")};
        job.samples = csv.positive(row, "samples");
        job.devices = csv.whole(row, "devices", 1);
        job.batch = csv.whole(row, "batch", 1);
        job.batches = {whole_or(csv, row, "min_batch", job.batch), whole_or(csv, row, "max_batch", job.batch)};
        job.most_devices = whole_or(csv, row, "max_devices", job.devices);
        if (job.batch < job.batches.least || job.batch > job.batches.most) {
            csv.fail(row,
                     fmt::format("batch {} is not within {} to {}", job.batch, job.batches.least, job.batches.most));
        }
        if (job.devices > job.most_devices) {
            csv.fail(row, fmt::format("devices {} are more than max_devices {}", job.devices, job.most_devices));
        }
        job.after = jobs_before(csv, row, places);
        places.emplace(job.name, static_cast<int>(jobs.size()));
        jobs.push_back(std::move(job));
    }
    if (jobs.empty()) throw InputError(fmt::format("{}: it has no jobs", origin));
    return jobs;
}

void check(const std::vector<Job>& jobs, const SpeedTable& speeds, std::int64_t devices) {
    for (const Job& job : jobs) {
        const auto found = speeds.find(job.model);
        if (found == speeds.end()) {
            std::vector<std::string_view> known;
            for (const auto& [name, each] : speeds) known.push_back(name);
            throw InputError(fmt::format("job '{}': no speeds of model '{}'{}; there are {}", job.name, job.model,
                                         did_you_mean(job.model, known), join(known)));
        }
        if (job.devices > devices) {
            throw InputError(
                fmt::format("job '{}' asks for {} devices, the cluster has {}", job.name, job.devices, devices));
        }
        if (found->second.samples_per_s(job.devices, job.batch) <= 0) {
            throw InputError(fmt::format("job '{}': no speed of {} on {} devices with a batch of {}: {}", job.name,
                                         job.model, job.devices, job.batch, why_none(job, found->second)));
        }
    }
}

}  // namespace rehearse::cluster
