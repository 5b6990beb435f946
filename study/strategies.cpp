// SPDX-License-Identifier: Apache-2.0
#include "study/strategies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::study {

namespace {

/// Numbers of one round, whoever draws them.
class Draws {
public:
    Draws(const Settings& settings, int round)
        : random_(settings.seed * 1'000'003 + static_cast<std::uint64_t>(round)) {}
    double next() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
    std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() * static_cast<double>(count)); }
    Point point(std::size_t size) {
        Point made(size);
        for (double& place : made) place = next();
        return made;
    }

private:
    std::mt19937_64 random_;
};

constexpr double last_place = 1 - 0x1p-30;
double inside(double place) { return std::clamp(place, 0.0, last_place); }

/// The best first; of equal ones the older.
std::vector<int> ranking(const std::vector<Trial>& trials) {
    std::vector<int> order(trials.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int i) { return trials[static_cast<std::size_t>(i)].loss; });
    return order;
}

std::vector<Turn> first_population(const Settings& settings, std::vector<Trial>& trials, int steps) {
    Draws draws{settings, 0};
    std::vector<Turn> turns;
    for (int i = 0; i < settings.population; ++i) {
        trials.push_back({.point = draws.point(settings.fixed.size())});
        turns.push_back({i, Turn::new_weights, steps});
    }
    return turns;
}

std::vector<Turn> random_points(const Settings& settings, std::vector<Trial>& trials, int round) {
    if (round > 0) return {};
    return first_population(settings, trials, settings.rounds * settings.steps);
}

// Successive halving (Jamieson and Talwalkar 2016): each round the better half goes on for twice as many steps as it
// has.
std::vector<Turn> halving(const Settings& settings, std::vector<Trial>& trials, int round) {
    if (round == 0) return first_population(settings, trials, settings.steps);
    const int left = settings.population >> round;
    if (round >= settings.rounds || left < 1) return {};
    std::vector<int> order = ranking(trials);
    // Whoever was left out before has trained less.
    std::erase_if(order,
                  [&](int i) { return trials[static_cast<std::size_t>(i)].steps < settings.steps << (round - 1); });
    order.resize(std::min(order.size(), static_cast<std::size_t>(left)));
    std::ranges::sort(order);
    std::vector<Turn> turns;
    for (const int i : order) turns.push_back({i, i, settings.steps << round});
    return turns;
}

// Population-based training (Jaderberg et al. 2017, section 4.1): the worst fifth takes weights and values of one of
// the best fifth, and its values are drawn anew one time in four, else moved by a tenth of their range.
std::vector<Turn> population_based(const Settings& settings, std::vector<Trial>& trials, int round) {
    if (round == 0) return first_population(settings, trials, settings.steps);
    if (round >= settings.rounds) return {};
    Draws draws{settings, round};
    const std::vector<int> order = ranking(trials);
    const std::size_t fifth = std::max<std::size_t>(1, order.size() / 5);
    const int until = settings.steps * (round + 1);
    std::vector<Turn> turns;
    for (int i = 0; i < settings.population; ++i) turns.push_back({i, i, until});
    for (std::size_t k = 0; k < fifth && 2 * fifth <= order.size(); ++k) {
        const int loser = order[order.size() - 1 - k], winner = order[draws.below(fifth)];
        Trial& moved = trials[static_cast<std::size_t>(loser)];
        moved.point = trials[static_cast<std::size_t>(winner)].point;
        for (std::size_t p = 0; p < moved.point.size(); ++p) {
            const double step = draws.next() < 0.5 ? -0.1 : 0.1, anew = draws.next();
            if (settings.fixed[p]) continue;
            moved.point[p] = anew < 0.25 ? draws.next() : inside(moved.point[p] + step);
        }
        turns[static_cast<std::size_t>(loser)].from = winner;
    }
    return turns;
}

// Regularized evolution (Real et al. 2019, algorithm 1), half a population a round: a child is the best of a sample of
// a quarter with one parameter drawn anew; the oldest die.
std::vector<Turn> evolution(const Settings& settings, std::vector<Trial>& trials, int round) {
    if (round == 0) return first_population(settings, trials, settings.steps);
    if (round >= settings.rounds) return {};
    Draws draws{settings, round};
    const auto alive = static_cast<std::size_t>(settings.population), first = trials.size() - alive;
    std::vector<Turn> turns;
    std::vector<Trial> children;
    for (int child = 0; child < std::max(1, settings.population / 2); ++child) {
        std::size_t parent = first + draws.below(alive);
        for (std::size_t i = 1; i < std::max<std::size_t>(2, alive / 4); ++i) {
            const std::size_t other = first + draws.below(alive);
            if (trials[other].loss < trials[parent].loss) parent = other;
        }
        Trial made{.point = trials[parent].point, .round = round};
        made.point[draws.below(made.point.size())] = draws.next();
        children.push_back(std::move(made));
    }
    for (Trial& child : children) {
        turns.push_back({static_cast<int>(trials.size()), Turn::new_weights, settings.steps});
        trials.push_back(std::move(child));
    }
    return turns;
}

// Particle swarms (Kennedy and Eberhart 1995) with the constriction of Clerc and Kennedy 2002.
std::vector<Turn> particle_swarm(const Settings& settings, std::vector<Trial>& trials, int round) {
    constexpr double inertia = 0.7298, pull = 1.49618;
    if (round >= settings.rounds) return {};
    if (round == 0) {
        std::vector<Turn> turns = first_population(settings, trials, settings.steps);
        for (Trial& each : trials) each.velocity = Point(each.point.size());
        return turns;
    }
    Draws draws{settings, round};
    const std::size_t count = trials.size(), first = count - static_cast<std::size_t>(settings.population);
    for (std::size_t i = first; i < count; ++i) {
        Trial& each = trials[i];
        if (each.best.empty() || each.loss < each.best_loss) each.best = each.point, each.best_loss = each.loss;
    }
    const auto leader = std::ranges::min_element(trials.begin() + static_cast<std::ptrdiff_t>(first), trials.end(), {},
                                                 &Trial::best_loss);
    const Point best = leader->best;
    std::vector<Turn> turns;
    for (std::size_t i = first; i < count; ++i) {
        Trial moved = trials[i];
        moved.round = round, moved.steps = 0, moved.loss = unknown;
        for (std::size_t p = 0; p < moved.point.size(); ++p) {
            moved.velocity[p] = inertia * moved.velocity[p] + pull * draws.next() * (moved.best[p] - moved.point[p]) +
                                pull * draws.next() * (best[p] - moved.point[p]);
            moved.point[p] = inside(moved.point[p] + moved.velocity[p]);
        }
        turns.push_back({static_cast<int>(trials.size()), Turn::new_weights, settings.steps});
        trials.push_back(std::move(moved));
    }
    return turns;
}

double of_one_round(const Settings& settings) { return settings.steps; }
double of_all_rounds(const Settings& settings) { return static_cast<double>(settings.rounds) * settings.steps; }
double of_doublings(const Settings& settings) {
    const int halvings = std::bit_width(static_cast<unsigned>(settings.population)) - 1;  // until one is left
    return std::ldexp(settings.steps, std::min(settings.rounds - 1, halvings));
}

constexpr std::array table{
    Strategy{"random", "points drawn at random, trained to the end", false, of_all_rounds, random_points},
    Strategy{"halving", "the better half goes on for twice as long (Jamieson and Talwalkar 2016)", true, of_doublings,
             halving},
    Strategy{"pbt", "the worst fifth takes weights and values of the best (Jaderberg et al. 2017)", true, of_all_rounds,
             population_based},
    Strategy{"evolution", "children of the best of a sample, the oldest die (Real et al. 2019)", false, of_one_round,
             evolution},
    Strategy{"pso", "a swarm of particles (Kennedy and Eberhart 1995)", false, of_one_round, particle_swarm},
};

}  // namespace

std::span<const Strategy> strategies() { return table; }

const Strategy& strategy(std::string_view name) {
    std::vector<std::string_view> known;
    for (const Strategy& each : table) {
        if (each.name == name) return each;
        known.push_back(each.name);
    }
    throw InputError(fmt::format("--strategy '{}'{}: choose one of {}", name, did_you_mean(name, known), join(known)));
}

}  // namespace rehearse::study
