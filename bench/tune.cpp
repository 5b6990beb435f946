// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "bench/check.hpp"
#include "bench/compute.hpp"
#include "core/error.hpp"
#include "kernels/threads.hpp"

namespace rehearse::bench {

namespace {

using calibrate::Needed;
using kernels::Backend;
using kernels::Choice;

constexpr Flops quick_reference{2e8};  // plain loops do about 1 GFLOP/s
constexpr double hopeless = 2;         // times as slow as the best in its first runs

/// Problems that one implementation must win together: a pass, or all passes of an operator.
struct Contest {
    std::vector<Needed> problems;
    std::vector<Choice> choices;
};

struct Contestant {
    Choice choice;
    std::vector<std::unique_ptr<Workload>> workloads;  // of each problem
    std::vector<double> best;                          // seconds of a run: the least median of a rung
    double whole = 0;                                  // of a run of each, with what comes before it
    double sum() const {
        double all = 0;
        for (const double seconds : best) all += seconds;
        return all;
    }
};

// All ranks must agree, or they would wait for each other.
bool any_rank(const Team& team, bool here) { return team.mean(here ? 1 : 0) > 0; }

const Backend& trusted(const Problem& p, Bytes limit) {
    if (flops(p.op, p.pass, p.batch) < quick_reference) return *kernels::backends().back();
    return kernels::choose(p.op, p.batch, p.type, {}, {}, limit);
}

bool ends(const Team& team, const Progress& progress, std::size_t done, std::size_t all) {
    return any_rank(team, !goes_on(progress, static_cast<std::int64_t>(done), static_cast<std::int64_t>(all)));
}

// Those whose result is right.
std::vector<const Backend*> right(const Problem& problem, const TuneOptions& options) {
    std::vector<const Backend*> found;
    const Backend& judge = trusted(problem, options.scratch_limit);
    for (const Backend* backend : kernels::implementations(problem, options.scratch_limit)) {
        std::string why;
        try {
            const Checked checked = check(problem, {&backend, 1}, options.seed, judge, options.scratch_limit).front();
            // Not a number is wrong too.
            if (!(checked.error <= checked.tolerance)) why = fmt::format("differs by {:.2g}", checked.error);
        } catch (const BackendError& error) {
            why = error.what();
        }
        if (!any_rank(options.team, !why.empty())) {
            found.push_back(backend);
        } else if (options.say && !why.empty()) {
            options.say(fmt::format("left out: {} for {}: {}", full_name(*backend), to_string(problem), why));
        }
    }
    return found;
}

// As many as there are, half of them, ..., one: small problems are over before all threads have begun.
std::vector<Choice> on_threads(const std::vector<const Backend*>& backends) {
    std::vector<Choice> choices;
    for (const Backend* backend : backends) {
        choices.push_back({backend, 0});
        for (int threads = kernels::threads_now() / 2; threads > 0; threads /= 2) choices.push_back({backend, threads});
    }
    return choices;
}

bool keeps_workspace(const std::vector<const Backend*>& backends, const Problem& p) {
    return std::ranges::any_of(backends, [&](const Backend* b) { return b->workspace(p.op, p.batch) > 0; });
}

// Who is right in every one of the problems.
std::vector<const Backend*> common(const std::vector<std::vector<const Backend*>>& of_problems) {
    std::vector<const Backend*> found = of_problems.front();
    for (const auto& others : of_problems) {
        std::erase_if(found, [&](const Backend* b) { return std::ranges::find(others, b) == others.end(); });
    }
    return found;
}

// Passes of one operator and batch.
void add_contests(const std::vector<Needed>& passes, const TuneOptions& options, std::vector<Contest>& contests) {
    std::vector<std::vector<const Backend*>> able;
    bool together = false;
    for (const Needed& pass : passes) {
        able.push_back(kernels::implementations(pass.problem, options.scratch_limit));
        together = together || keeps_workspace(able.back(), pass.problem);
    }
    const bool choice = std::ranges::any_of(able, [](const auto& those) { return those.size() > 1; });
    if (!choice && kernels::threads_now() == 1) return;
    for (std::size_t i = 0; i < passes.size(); ++i) able[i] = right(passes[i].problem, options);
    if (together) {
        contests.push_back({passes, on_threads(common(able))});
    } else {
        for (std::size_t i = 0; i < passes.size(); ++i) contests.push_back({{passes[i]}, on_threads(able[i])});
    }
}

std::vector<Contest> contests_of(const std::vector<Needed>& needed, const TuneOptions& options) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<Needed>> of_operator;
    for (const Needed& each : needed) {
        const Problem& p = each.problem;
        const std::string key = to_string(Problem{p.op, Pass::forward, p.batch, p.type});
        if (!of_operator.contains(key)) order.push_back(key);
        of_operator[key].push_back(each);
    }
    std::vector<Contest> contests;
    for (std::size_t i = 0; i < order.size(); ++i) {
        add_contests(of_operator[order[i]], options, contests);
        if (ends(options.team, options.checking, i + 1, order.size())) break;
    }
    std::erase_if(contests, [](const Contest& contest) { return contest.choices.size() < 2; });
    return contests;
}

class Arenas {
public:
    Arenas(const TuneOptions& options) : seed_(options.seed) {}
    Arena& of(std::int64_t floats) {
        if (arena_ == nullptr || arena_->floats() < floats) {
            arena_.reset();
            arena_ = std::make_unique<Arena>(floats, seed_);
        }
        return *arena_;
    }

private:
    std::uint64_t seed_;
    std::unique_ptr<Arena> arena_;
};

// Each contestant `runs` times on each problem.
void time_rung(const Contest& contest, std::vector<Contestant>& contestants, Arena& arena, std::int64_t runs,
               const Team& team) {
    std::vector<Case> cases;
    for (const Contestant& each : contestants) {
        for (std::size_t i = 0; i < contest.problems.size(); ++i) {
            const Needed& needed = contest.problems[i];
            cases.push_back(make_case(*each.workloads[i], needed.problem, arena, working_set(needed)));
        }
    }
    const std::vector<Round> rounds = time_round(cases, std::vector<std::int64_t>(cases.size(), runs), team);
    for (std::size_t c = 0, at = 0; c < contestants.size(); ++c) {
        contestants[c].whole = 0;
        for (double& best : contestants[c].best) {
            best = std::min(best, rounds[at].median);
            contestants[c].whole += rounds[at++].whole;
        }
    }
    std::ranges::sort(contestants, {}, [](const Contestant& c) { return c.sum(); });
}

std::int64_t runs_within(double seconds, const std::vector<Contestant>& contestants) {
    double once = 0;
    for (const Contestant& each : contestants) once += each.whole;
    return static_cast<std::int64_t>(std::clamp(seconds / once, 2.0, 100.0));
}

// The best first, at least two of them.
std::vector<Contestant> race(const Contest& contest, const TuneOptions& options, Seconds budget, Arenas& arenas) {
    std::vector<Contestant> left;
    std::int64_t floats = 0;
    for (const Choice& choice : contest.choices) {
        Contestant& each = left.emplace_back();
        each.choice = choice;
        each.best.assign(contest.problems.size(), std::numeric_limits<double>::infinity());
        for (const Needed& needed : contest.problems) {
            each.workloads.push_back(
                std::make_unique<Workload>(needed.problem, choice, options.cache, options.scratch_limit));
            floats = std::max({floats, each.workloads.back()->floats(), working_set(needed)});
        }
    }
    Arena& arena = arenas.of(floats);
    time_rung(contest, left, arena, 2, options.team);  // the first run of a kernel may be slow
    const double rungs = std::ceil(std::log2(static_cast<double>(left.size())));
    const auto slow =
        std::ranges::find_if(left, [&](const Contestant& c) { return c.sum() > hopeless * left[0].sum(); });
    left.erase(std::max(slow, left.begin() + 2), left.end());
    while (true) {
        time_rung(contest, left, arena, runs_within(budget.value / rungs, left), options.team);
        if (left.size() <= 2) return left;
        left.erase(left.begin() + static_cast<std::ptrdiff_t>((left.size() + 1) / 2), left.end());
    }
}

}  // namespace

std::vector<kernels::tuned::Winner> tune(const std::vector<Needed>& needed, const TuneOptions& options) {
    const std::vector<Contest> contests = contests_of(needed, options);
    Arenas arenas(options);
    std::vector<kernels::tuned::Winner> winners;
    std::size_t decided = 0;
    for (const Contest& contest : contests) {
        if (ends(options.team, options.timing, decided, contests.size())) break;
        const Seconds share = options.budget / static_cast<double>(contests.size());
        const std::vector<Contestant> ranked = race(contest, options, share, arenas);
        const Choice& choice = ranked[0].choice;
        for (std::size_t i = 0; i < contest.problems.size(); ++i) {
            const Problem& problem = contest.problems[i].problem;
            winners.push_back({.problem = to_string(problem),
                               .backend = std::string{choice.backend->name()},
                               .algorithm = std::string{choice.backend->algorithm()},
                               .threads = choice.threads,
                               .median = Seconds{ranked[0].best[i]},
                               .runner_up = Seconds{ranked[1].best[i]},
                               .scratch = choice.backend->scratch(problem, options.scratch_limit),
                               .scratch_limit = options.scratch_limit,
                               .tried = static_cast<std::int64_t>(contest.choices.size()),
                               .date = options.date});
        }
        ++decided;
    }
    return winners;
}

}  // namespace rehearse::bench
