// SPDX-License-Identifier: Apache-2.0
// The best plans of a job: branch and bound over meshes by the screen's estimates, the best of these simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "core/progress.hpp"
#include "predict/framework.hpp"
#include "schedule/plan.hpp"
#include "search/choices.hpp"
#include "search/screen.hpp"

namespace rehearse::search {

enum class Objective { time, node_hours };  // energy is node-hours times a node's power

/// Unset limits do not limit. Those of a whole training need Request::samples.
struct Limits {
    std::optional<Bytes> memory;  // of a device, no more than it has; unset: all that it has
    std::optional<Seconds> training;
    std::optional<double> node_hours;
};

struct Request {
    std::vector<std::int64_t> devices;  // numbers of devices to choose from
    schedule::Job job;                  // global batch, precision, optimizer
    Extent most{8, 64};                 // tensor and pipe
    Variety variety{};
    models::FrameworkProfile framework{};  // trains them; what it has settled itself is not varied
    Objective objective = Objective::time;
    double samples = 0;  // of the whole training; 0: not known
    Limits limits{};
    int simulated = 10;  // plans that are ranked
};

struct Simulated {
    Seconds step, low, high;  // low and high are 0 without a band
    Bytes memory;
    std::string refusal{};  // why it could not be
    bool has_band() const { return high > Seconds{}; }
};

/// A plan that was screened: there may be millions.
struct Candidate {
    Choices choices;
    Estimate estimate;
};

/// One that was simulated.
struct Ranked : Candidate {
    std::string plan;
    Simulated result;
    std::int64_t devices = 0, nodes = 0;
    bool kept = false;  // simulated, and within all limits
};

struct Counts {
    std::int64_t screened = 0;      // plans estimated
    std::int64_t shapes = 0;        // meshes
    std::int64_t shapes_bound = 0;  // of these not looked into, as their bound was above enough estimates
    std::int64_t too_large = 0;     // plans above the memory, by their estimates
    std::int64_t beyond = 0;        // plans beyond another limit
    std::int64_t simulated = 0;
    std::int64_t known = 0;    // results that were there already
    std::int64_t refused = 0;  // plans that fitted by their estimates alone, or could not be scheduled
    std::int64_t missed = 0;   // plans simulated that are beyond another limit
    double screen_s = 0, simulate_s = 0;
    double least_ratio = 0, most_ratio = 0;  // of simulated steps to their estimates
};

struct Result {
    std::vector<Ranked> ranked;  // the best first
    Counts counts;
    std::vector<std::string> refusals;  // why some plans could not be; each once
    Bytes least_memory;                 // of all plans estimated: what would have to fit
    Seconds least_beyond;               // step of those beyond another limit than the memory; 0: there are none
};

/// What other searches have simulated, and are at. Any of these may be empty.
struct Others {
    std::function<std::optional<Simulated>(const std::string& plan, std::int64_t devices)> find{};
    std::function<bool(const std::string& plan, std::int64_t devices)> claim{};  // false: another one is at it
    std::function<void(const std::string& plan, std::int64_t devices, const Simulated&)> put{};
};

/// Ranks of a job that search together: all make the same call and have the same result. Empty: this process alone.
struct JobRanks {
    std::function<std::int64_t()> take{};  // 0, 1, 2, ..., each to one rank
    /// What each gave, by rank; `take` begins at 0 again.
    std::function<std::vector<std::string>(const std::string&)> exchange{};
};

/// Whoever wants to know how far a search is, and may end it: then what was simulated is ranked, without bands.
struct Listener {
    std::function<void(std::string_view)> say{};
    Progress screening{}, simulating{};
};

/// Searches as if at least so many plans were to be ranked, so that the first ones do not depend on how many are asked
/// for below it.
constexpr int fewest = 10;

/// A plan is pruned by the bound of its mesh only when that is half as much again as the estimates of four times as
/// many plans as will be ranked, or as `fewest`. Of the others as many are simulated as may be better than the best one
/// known (Finalists), at most six times as many and forty. InputError for a request that cannot be. The ranks of a job
/// share the meshes that are screened and the plans that are simulated, one at a time, and finds the same as one
/// process; its counts are of all ranks together.
Result search(const Network& network, const Machine& machine, const Request& request, const Others& others = {},
              const Listener& listener = {}, const JobRanks& ranks = {});
/// Why a search ranked no plan: how many are above which limit and by how much, and what refused the others.
std::string why_none(const Result& result);

/// The step that predict gives for the plan under `framework`, if asked for with its band of 90 %; without it folded,
/// but for pipelines whose copies cross nodes between other stages. Refused, and not simulated, where it does not fit,
/// or takes more than `most` of a device.
Simulated simulated(const Network& network, const Machine& machine, schedule::Job job, const std::string& plan,
                    Bytes most, bool with_band = true, const models::FrameworkProfile& framework = {});

std::int64_t nodes_of(const Machine& machine, std::int64_t devices);

/// Memory of the smallest and of the largest of the first `devices` devices.
struct DeviceMemory {
    Bytes least, most;
};
DeviceMemory device_memory(const Machine& machine, std::int64_t devices);

}  // namespace rehearse::search
