// SPDX-License-Identifier: Apache-2.0
#include "search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "schedule/mesh.hpp"
#include "search/finalists.hpp"
#include "search/job_ranks.hpp"
#include "search/refusals.hpp"

namespace rehearse::search {
namespace {

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// What is left to choose where a framework has settled some of it.
Variety under(Variety variety, const models::FrameworkProfile& framework) {
    if (const std::string zero = framework.value("zero"); !zero.empty())
        variety.zero = static_cast<int>(parse_int(zero, "zero"));
    if (const std::string overlap = framework.value("overlap"); !overlap.empty()) variety.overlapping = overlap == "on";
    variety.own_all_reduce = !framework.value("allreduce").empty();
    return variety;
}

// With what the framework's software does to prices, and without that of a machine's where it is another network's.
Machine screened_machine(const Machine& machine, const Network& network, const predict::Framework& framework) {
    Machine mine = predict::for_network(machine, network);
    return framework.passes ? predict::with_passes(std::move(mine), *framework.passes) : mine;
}

/// Large: a search's inputs, what is worked out of them once, and what was found so far.
class Searcher {
public:
    Searcher(const Network& network, const Machine& machine, const Request& request, const Others& others,
             const Listener& listener, const JobRanks& ranks)
        : network_(network),
          machine_(machine),
          request_(request),
          others_(others),
          listener_(listener),
          ranks_(ranks),
          framework_(predict::framework_of(request.framework, request.job.optimizer)),
          screened_(screened_machine(machine, network, framework_)),
          variety_(under(request.variety, request.framework)),
          screen_(network, screened_, request.job, framework_),
          most_memory_(request.limits.memory.value_or(Bytes{std::numeric_limits<double>::infinity()})) {}

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

    /// Plans that are looked for as if so many were to be ranked: the best of few is the best of `fewest`.
    std::size_t wanted() const { return static_cast<std::size_t>(std::max(request_.simulated, fewest)); }
    std::size_t kept() const { return 4 * wanted(); }

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

    /// What a device of so many may take: as much as the smallest of them has, or less where less is asked for.
    Bytes capacity(std::int64_t devices) {
        const auto [known, fresh] = capacities_.try_emplace(devices);
        if (fresh) known->second = std::min(most_memory_, device_memory(machine_, devices).least);
        return known->second;
    }

    std::vector<Node> nodes() {
        std::vector<Node> found;
        const std::set<std::int64_t> each_once(request_.devices.begin(), request_.devices.end());
        for (const std::int64_t count : each_once) {
            for (const Shape& shape : shapes(count, request_.most, {experts_of(network_), tokens_of(network_)})) {
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
        const auto next = [this](std::size_t i) { return ranks_.take ? taken() : i + 1; };
        for (std::size_t i = ranks_.take ? taken() : 0; i < all.size(); i = next(i)) {
            if (least_.size() == kept() && all[i].bound > 1.5 * least_.top()) {
                // So are all that come, as bounds rise.
                for (; i < all.size(); i = next(i)) ++result_.counts.shapes_bound;
                break;
            }
            screen_shape(all[i].shape);
            if (!goes_on(listener_.screening, static_cast<std::int64_t>(i + 1), std::ssize(all))) break;
        }
        if (ranks_.exchange) join_candidates(candidates_, ranks_.exchange);
        sort_candidates();
    }

    // By estimate, then by text, which is written where it decides.
    void sort_candidates() {
        const auto estimates = [this](const Candidate& each) { return estimated(each); };
        std::ranges::sort(candidates_, {}, estimates);
        for (auto first = candidates_.begin(); first != candidates_.end();) {
            const auto last = std::find_if(first, candidates_.end(),
                                           [&](const Candidate& each) { return estimated(each) != estimated(*first); });
            if (last - first > 1) {
                std::vector<std::pair<std::string, Candidate>> alike;
                for (auto each = first; each != last; ++each) alike.emplace_back(plan_text(each->choices), *each);
                std::ranges::sort(alike, {}, [](const auto& each) -> const std::string& { return each.first; });
                std::ranges::transform(alike, first, [](auto& each) { return std::move(each.second); });
            }
            first = last;
        }
    }

    std::size_t taken() const { return static_cast<std::size_t>(ranks_.take()); }

    double estimated(const Candidate& each) const { return score(each.estimate.step_s, devices(each.choices.shape)); }

    void screen_shape(const Shape& shape) {
        // Where a schedule cuts its stages is not known for sure: what is a little above gets its chance.
        const Bytes most = 1.05 * capacity(devices(shape));
        for (Choices& choices : choices_of(shape, *request_.job.global_batch, variety_)) {
            const std::optional<Estimate> estimate = screen_.estimate(choices, most.value);
            if (!estimate) continue;
            if (variety_.own_all_reduce) choices.all_reduce.clear();
            ++result_.counts.screened;
            const Bytes memory{estimate->memory_bytes};
            if (result_.least_memory <= Bytes{} || memory < result_.least_memory) result_.least_memory = memory;
            if (memory > most) {
                ++result_.counts.too_large;
            } else if (!within_limits(estimate->step_s / 1.2, devices(shape))) {
                ++result_.counts.beyond;
                note_beyond(Seconds{estimate->step_s});
            } else {
                candidates_.push_back({choices, *estimate});
                least_.push(estimated(candidates_.back()));
                if (least_.size() > kept()) least_.pop();
            }
        }
    }

    // Until nothing that is left can be better than the best, as far as plans like it tell.
    void simulate_best() {
        std::vector<double> scores;
        for (const Candidate& each : candidates_) scores.push_back(estimated(each));
        Finalists finalists{candidates_, std::move(scores)};
        const std::size_t most = 6 * wanted() + 40;
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t done = 0; done < most;) {
            const double below = ranked_.size() < wanted() ? std::numeric_limits<double>::infinity() : best;
            const std::vector<std::size_t> batch = finalists.next(std::min(wanted(), most - done), below);
            for (const auto& [i, result] : results_of(batch, false)) {
                settle(i, result);
                if (!result.refusal.empty()) continue;
                finalists.learn(i, result.step.value / candidates_[i].estimate.step_s);
                if (tried(i).kept) best = std::min(best, score(result.step.value, tried(i).devices));
            }
            done += batch.size();
            const std::size_t left = std::min(finalists.left(best), most - done);
            if (stopped(done, done + left) || batch.empty()) break;
        }
        rank();
        if (ranks_.exchange) join_counts(result_, ranks_.exchange);
    }

    // Any rank may be asked to end; then all do.
    bool stopped(std::size_t done, std::size_t all) {
        done_ = static_cast<std::int64_t>(done);
        all_ = static_cast<std::int64_t>(all);
        const bool goes = goes_on(listener_.simulating, done_, all_);
        if (!ranks_.exchange) return stopped_ = !goes;
        const std::vector<std::string> each = ranks_.exchange(goes ? "" : "stop");
        return stopped_ = std::ranges::count(each, "") < std::ssize(each);
    }

    using Results = std::vector<std::pair<std::size_t, Simulated>>;

    /// A candidate that is simulated, or was.
    Ranked& tried(std::size_t i) {
        const auto [known, fresh] = tried_.try_emplace(i);
        Ranked& each = known->second;
        if (!fresh) return each;
        const Candidate& candidate = candidates_[i];
        const std::int64_t count = devices(candidate.choices.shape);
        return each = {candidate, plan_text(candidate.choices), {}, count, nodes_of(machine_, count)};
    }

    /// Of some candidates, with their bands or without; of several ranks each does some.
    Results results_of(const std::vector<std::size_t>& batch, bool with_band) {
        Results results;
        if (ranks_.take) {
            for (std::size_t at = taken(); at < batch.size(); at = taken()) {
                results.emplace_back(batch[at], judged(tried(batch[at]), with_band));
            }
            return join_results(results, ranks_.exchange);
        }
        // Others are at those that could not be claimed: their results will be there, or they died, which is seen.
        bool said = false;
        for (std::vector<std::size_t> waiting = batch; !waiting.empty();) {
            std::erase_if(waiting, [&](std::size_t i) {
                if (!with_band && !is_free(tried(i))) return false;
                results.emplace_back(i, judged(tried(i), with_band));
                return true;
            });
            if (waiting.empty()) break;
            if (!std::exchange(said, true)) say(fmt::format("waiting for {} plans of another search", waiting.size()));
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            if (!goes_on(listener_.simulating, done_, all_)) break;
        }
        return results;
    }

    /// False: another search is at it.
    bool is_free(const Ranked& each) const {
        return !others_.claim || (others_.find && others_.find(each.plan, each.devices)) ||
               others_.claim(each.plan, each.devices);
    }

    /// Known, or simulated.
    Simulated judged(const Ranked& each, bool with_band) {
        if (others_.find) {
            const std::optional<Simulated> known = others_.find(each.plan, each.devices);
            if (known && (!with_band || known->has_band() || !known->refusal.empty())) {
                if (!with_band) ++result_.counts.known;
                return *known;
            }
        }
        if (!with_band) ++result_.counts.simulated;
        schedule::Job job = request_.job;
        job.devices = each.devices;
        const Simulated result =
            simulated(network_, machine_, job, each.plan, most_memory_, with_band, request_.framework);
        if (others_.put) others_.put(each.plan, each.devices, result);
        say(fmt::format("{} on {}: {}", each.plan, each.devices,
                        result.refusal.empty() ? to_string(result.step) : result.refusal));
        return result;
    }

    void settle(std::size_t i, const Simulated& result) {
        Ranked& each = tried(i);
        each.result = result;
        each.kept = result.refusal.empty() && within_limits(result.step.value, each.devices);
        if (!result.refusal.empty()) {
            refuse(result.refusal);
            return void(++result_.counts.refused);
        }
        if (!each.kept) {
            note_beyond(result.step);
            return void(++result_.counts.missed);
        }
        ranked_.push_back(i);
        const double ratio = result.step.value / each.estimate.step_s;
        result_.counts.least_ratio = ranked_.size() == 1 ? ratio : std::min(result_.counts.least_ratio, ratio);
        result_.counts.most_ratio = std::max(result_.counts.most_ratio, ratio);
    }

    /// The best of those simulated, with their bands. Of plans that do the same the one in the fewest words stays.
    void rank() {
        const auto order = [this](std::size_t i) {
            const Ranked& each = tried(i);
            return std::tuple{score(each.result.step.value, each.devices), each.devices, each.result.memory.value,
                              each.plan.size(), std::string_view{each.plan}};
        };
        std::ranges::sort(ranked_, {}, order);
        const auto same = [this](std::size_t i, std::size_t j) {
            const Ranked &a = tried(i), &b = tried(j);
            return a.devices == b.devices && a.result.memory == b.result.memory &&
                   std::abs(a.result.step / b.result.step - 1) < 1e-12;
        };
        ranked_.erase(std::unique(ranked_.begin(), ranked_.end(), same), ranked_.end());
        ranked_.resize(std::min(ranked_.size(), static_cast<std::size_t>(request_.simulated)));
        if (!stopped_) {
            for (auto& [i, result] : results_of(ranked_, true)) tried(i).result = result;
            std::ranges::sort(ranked_, {}, order);  // those that were folded may be a little shorter
        }
        for (const std::size_t i : ranked_) result_.ranked.push_back(std::move(tried(i)));
    }

    void note_beyond(Seconds step) {
        Seconds& least = result_.least_beyond;
        if (least <= Seconds{} || step < least) least = step;
    }

    // Nobody has written these plans behind an option: "plan 'tensor=3': ...".
    void refuse(std::string why) {
        constexpr std::string_view option = "--plan '";
        if (why.starts_with(option)) why.replace(0, option.size(), "plan '");
        if (std::ranges::find(result_.refusals, why) == result_.refusals.end()) result_.refusals.push_back(why);
    }
    void say(std::string_view text) const {
        if (listener_.say) listener_.say(text);
    }

    const Network& network_;
    const Machine& machine_;
    const Request& request_;
    const Others& others_;
    const Listener& listener_;
    const JobRanks& ranks_;
    predict::Framework framework_;
    Machine screened_;  // with what the framework's software does to prices
    Variety variety_;
    Screen screen_;
    Bytes most_memory_;
    std::map<std::int64_t, Bytes> capacities_;  // by devices
    std::vector<Candidate> candidates_;
    std::priority_queue<double> least_;    // estimated scores of the kept() best of them
    std::map<std::size_t, Ranked> tried_;  // by candidate
    std::vector<std::size_t> ranked_;      // of the candidates
    std::int64_t done_ = 0, all_ = 0;      // plans simulated, as the listener was last told
    bool stopped_ = false;
    Result result_;
};

}  // namespace

Result search(const Network& network, const Machine& machine, const Request& request, const Others& others,
              const Listener& listener, const JobRanks& ranks) {
    check(request, machine);
    return Searcher(network, machine, request, others, listener, ranks).run();
}

}  // namespace rehearse::search
