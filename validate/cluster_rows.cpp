// SPDX-License-Identifier: Apache-2.0
#include "validate/cluster_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cluster/predict.hpp"
#include "cluster/report.hpp"
#include "cluster/workloads.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "prices/interval.hpp"

namespace rehearse::validate {

namespace {

constexpr std::int64_t most_per_device = 256;

const std::string& needed(const ReplaySettings& settings, std::string_view name) {
    const auto found = settings.find(name);
    if (found == settings.end() || found->second.empty()) throw InputError(fmt::format("no rule says the {}", name));
    return found->second;
}

// How much better elastic batches are, for one draw of jobs.
double ratio(const std::vector<cluster::Job>& jobs, const cluster::SpeedTable& speeds, std::int64_t devices,
             bool completed) {
    cluster::Options options{.devices = devices, .interval = Seconds{600}, .restart = Seconds{30}};
    options.queue = !completed;
    const auto of = [&](cluster::Policy policy) {
        options.policy = policy;
        return figures(simulate(jobs, speeds, options));
    };
    const cluster::Figures fixed = of(cluster::Policy::fixed_batch), elastic = of(cluster::Policy::elastic);
    if (!completed) return fixed.mean_completion / elastic.mean_completion;
    return static_cast<double>(elastic.complete) / static_cast<double>(std::max<std::int64_t>(1, fixed.complete));
}

}  // namespace

const cluster::SpeedTable& ClusterRows::speeds(const std::string& machine_name,
                                               const std::vector<std::string>& networks, std::int64_t devices) {
    const std::string key = fmt::format("{} {} {}", machine_name, fmt::join(networks, "+"), devices);
    const auto known = speeds_.find(key);
    if (known != speeds_.end()) return known->second;
    const Machine machine = models::load_machine(machine_name);
    cluster::SpeedTable table;
    for (const std::string& name : networks) {
        table.emplace(name, cluster::Speeds(cluster::predicted_points(models::load_network(name), machine,
                                                                      schedule::parse_plan("data"), {}, devices,
                                                                      most_per_device)));
    }
    return speeds_.emplace(key, std::move(table)).first->second;
}

Answer ClusterRows::answer(const PublishedRow& row, const ReplaySettings& settings, double error) {
    const bool completed = row.text("metric").starts_with("jobs_completed");
    if (!completed && !row.text("metric").starts_with("completion")) {
        throw InputError(fmt::format("a '{}' is not what a simulated cluster tells of", row.text("metric")));
    }
    cluster::Workload workload = cluster::parse_workload(needed(settings, "workload"));
    const std::int64_t devices = parse_int(needed(settings, "devices"), "devices");
    const cluster::SpeedTable& table =
        speeds(needed(settings, "machine"), workload.models, std::min(workload.most, devices));
    std::array<double, 3> best{};
    for (const std::string_view rate : split(needed(settings, "hourly"), '+')) {
        workload.hourly = parse_number(rate, "hourly");
        for (std::size_t seed = 0; seed < best.size(); ++seed) {
            const auto jobs = make_jobs(workload, table, devices, seed + 1);
            best[seed] = std::max(best[seed], ratio(jobs, table, devices, completed));
        }
    }
    std::ranges::sort(best);
    const double spread = prices::log_reach(error);
    return {best[1], best[0] / spread, best[2] * spread};
}

}  // namespace rehearse::validate
