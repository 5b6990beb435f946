// SPDX-License-Identifier: Apache-2.0
#include "search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "search/crew.hpp"

namespace rehearse::search {
namespace {

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Searcher {
public:
    Searcher(const Network& network, const Machine& machine, const Request& request, const Others& others,
             const std::function<void(std::string_view)>& progress, const Crew& crew)
        : network_(network),
          machine_(machine),
          request_(request),
          others_(others),
          progress_(progress),
          crew_(crew),
          screen_(network, machine, request.job),
          capacity_(request.limits.memory.value_or(rehearse::class_of(machine, 0).memory.value)) {}

    Result run() {
        const double begin = wall_s();
        screen_all();
        result_.counts.screen_s = wall_s() - begin;
        say(fmt::format("{} plans of {} meshes screened in {:.2f} s, {} meshes bound; {} plans fit",
                        result_.counts.screened, result_.counts.shapes, result_.counts.screen_s,
                        result_.counts.shapes_bound, candidates_.size()));
        const double screened = wall_s();
        simulate_best();
        result_.counts.simulate_s = wall_s() - screened;
        for (const std::string& refusal : screen_.refusals()) refuse(refusal);
        return std::move(result_);
    }

private:
    struct Node {
        Shape shape;
        double bound = 0;  // of the score
    };

    std::size_t kept() const { return 4 * static_cast<std::size_t>(request_.simulated); }

    /// Lower is better.
    double score(double step_s, std::int64_t devices) const {
        if (request_.objective == Objective::time) return step_s;
        return step_s * static_cast<double>(nodes_of(machine_, devices));
    }

    bool within_limits(double step_s, std::int64_t devices) const {
        const double training_s = step_s * request_.samples / static_cast<double>(*request_.job.global_batch);
        const double node_hours = training_s / 3600 * static_cast<double>(nodes_of(machine_, devices));
        return (!request_.limits.training || training_s <= request_.limits.training->value) &&
               (!request_.limits.node_hours || node_hours <= *request_.limits.node_hours);
    }

    std::vector<Node> nodes() {
        std::vector<Node> found;
        for (const std::int64_t count : request_.devices) {
            for (const Shape& shape : shapes(count, request_.most, experts_of(network_))) {
                ++result_.counts.shapes;
                const std::optional<double> bound = screen_.bound(shape);
                if (bound) found.push_back({shape, score(*bound, count)});
            }
        }
        std::ranges::sort(found, {}, &Node::bound);
        return found;
    }

    void screen_all() {
        const std::vector<Node> all = nodes();
        const auto next = [this](std::size_t i) { return crew_.take ? taken() : i + 1; };
        for (std::size_t i = crew_.take ? taken() : 0; i < all.size(); i = next(i)) {
            if (candidates_.size() >= kept()) {
                std::ranges::nth_element(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(kept()) - 1, {},
                                         [this](const Ranked& each) { return estimated(each); });
                if (all[i].bound > 1.5 * estimated(candidates_[kept() - 1])) {
                    // So are all that come, as bounds rise.
                    for (; i < all.size(); i = next(i)) ++result_.counts.shapes_bound;
                    break;
                }
            }
            screen_shape(all[i].shape);
        }
        if (crew_.exchange) {
            for (Ranked& each : candidates_) each.plan = plan_text(each.choices);
            join_candidates(candidates_, crew_.exchange);
        }
        sort_candidates();
    }

    // By estimate, then by text, which is written where it decides.
    void sort_candidates() {
        const auto estimates = [this](const Ranked& each) { return estimated(each); };
        std::ranges::sort(candidates_, {}, estimates);
        for (auto first = candidates_.begin(); first != candidates_.end();) {
            const auto last = std::find_if(first, candidates_.end(),
                                           [&](const Ranked& each) { return estimated(each) != estimated(*first); });
            if (last - first > 1) {
                for (auto each = first; each != last; ++each) each->plan = plan_text(each->choices);
                std::sort(first, last, [](const Ranked& a, const Ranked& b) { return a.plan < b.plan; });
            }
            first = last;
        }
    }

    std::size_t taken() const { return static_cast<std::size_t>(crew_.take()); }

    double estimated(const Ranked& each) const { return score(each.estimate.step_s, each.devices); }

    void screen_shape(const Shape& shape) {
        for (Choices& choices : choices_of(shape, *request_.job.global_batch, request_.variety)) {
            const std::optional<Estimate> estimate = screen_.estimate(choices, 1.1 * capacity_.value);
            if (!estimate) continue;
            ++result_.counts.screened;
            const Bytes memory{estimate->memory_bytes};
            if (result_.least_memory <= Bytes{} || memory < result_.least_memory) result_.least_memory = memory;
            // The estimate of memory is rough: what is a little above gets its chance.
            if (memory > 1.1 * capacity_) {
                ++result_.counts.too_large;
            } else if (!within_limits(estimate->step_s / 1.2, devices(shape))) {
                ++result_.counts.beyond;
            } else {
                candidates_.push_back({choices, {}, *estimate, {}, devices(shape), nodes_of(machine_, devices(shape))});
            }
        }
    }

    // As many of the best as are still wanted, at a time.
    void simulate_together() {
        for (std::size_t first = 0; first < candidates_.size() && !enough();) {
            const auto wanted = static_cast<std::size_t>(request_.simulated) - result_.ranked.size();
            const std::size_t count = std::min(wanted, candidates_.size() - first);
            std::vector<std::pair<std::size_t, Simulated>> own;
            for (std::size_t i = taken(); i < count; i = taken()) own.emplace_back(i, judged(candidates_[first + i]));
            for (const auto& [i, result] : join_results(own, crew_.exchange)) {
                settle(candidates_[first + i], result);
            }
            first += count;
        }
        join_counts(result_, crew_.exchange);
    }

    void simulate_best() {
        if (crew_.take) {
            simulate_together();
            return rank();
        }
        std::vector<Ranked> waiting = std::move(candidates_);
        while (!waiting.empty() && !enough()) {
            std::vector<Ranked> claimed;
            for (Ranked& each : waiting) {
                if (enough()) break;
                if (each.plan.empty()) each.plan = plan_text(each.choices);
                if (!judge(each)) claimed.push_back(std::move(each));
            }
            // Others are at these: their results will be there, or they died and their claims grow old.
            waiting = std::move(claimed);
            if (!waiting.empty() && !enough()) std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
        rank();
    }

    void rank() {
        std::ranges::stable_sort(result_.ranked, {},
                                 [this](const Ranked& each) { return score(each.result.step.value, each.devices); });
    }

    bool enough() const { return result_.ranked.size() >= static_cast<std::size_t>(request_.simulated); }

    /// False: another search is at it.
    bool judge(Ranked& each) {
        if (others_.claim && !(others_.find && others_.find(each.plan, each.devices)) &&
            !others_.claim(each.plan, each.devices)) {
            return false;
        }
        const Simulated result = judged(each);
        settle(each, result);
        return true;
    }

    /// Known, or simulated.
    Simulated judged(const Ranked& each) {
        if (others_.find) {
            if (const std::optional<Simulated> known = others_.find(each.plan, each.devices)) {
                ++result_.counts.known;
                return *known;
            }
        }
        ++result_.counts.simulated;
        schedule::Job job = request_.job;
        job.devices = each.devices;
        const Simulated result = simulated(network_, machine_, job, each.plan, capacity_);
        if (others_.put) others_.put(each.plan, each.devices, result);
        say(fmt::format("{} on {}: {}", each.plan, each.devices,
                        result.refusal.empty() ? to_string(result.step) : result.refusal));
        return result;
    }

    void settle(Ranked& each, const Simulated& result) {
        each.result = result;
        if (!result.refusal.empty()) {
            ++result_.counts.refused;
            refuse(result.refusal);
        } else if (!within_limits(result.step.value, each.devices)) {
            ++result_.counts.refused;
        } else {
            result_.ranked.push_back(std::move(each));
        }
    }

    void refuse(const std::string& why) {
        if (std::ranges::find(result_.refusals, why) == result_.refusals.end()) result_.refusals.push_back(why);
    }
    void say(std::string_view text) const {
        if (progress_) progress_(text);
    }

    const Network& network_;
    const Machine& machine_;
    const Request& request_;
    const Others& others_;
    const std::function<void(std::string_view)>& progress_;
    const Crew& crew_;
    Screen screen_;
    Bytes capacity_;
    std::vector<Ranked> candidates_;
    Result result_;
};

}  // namespace

Result search(const Network& network, const Machine& machine, const Request& request, const Others& others,
              const std::function<void(std::string_view)>& progress, const Crew& crew) {
    if (!request.job.global_batch || *request.job.global_batch < 1) {
        throw InputError("search: a global batch of at least 1 sample is needed");
    }
    for (const std::int64_t count : request.devices) {
        if (count < 1 || count > device_count(machine)) {
            throw InputError(fmt::format("--devices {}: {} has 1 to {}", count, machine.name, device_count(machine)));
        }
    }
    const bool of_training = request.limits.training || request.limits.node_hours;
    if (of_training && request.samples <= 0) {
        throw InputError("a limit of the whole training needs to know its samples: give --dataset (and --epochs)");
    }
    return Searcher(network, machine, request, others, progress, crew).run();
}

}  // namespace rehearse::search
