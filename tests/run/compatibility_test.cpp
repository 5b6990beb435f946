// SPDX-License-Identifier: Apache-2.0
// Walks the table of what goes together (schedule/compatibility.hpp) with real tensors: of every two features that do,
// gradients and weights are those of one rank. Run under mpirun with 2 and 4 ranks: each 24th cell, and all of them
// with --gtest_also_run_disabled_tests. tests/schedule/compatibility_test.cpp makes the schedules of all cells.
#include "schedule/compatibility.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "run/limits.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks_of_every_kind.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using schedule::Feature;
using schedule::Plan;

struct Cell {
    const Feature *a = nullptr, *b = nullptr;
    std::string plan;
    schedule::Job job{};
};

/// Of every two features that go together; of the one that REHEARSE_FEATURE names, where it is set.
std::vector<Cell> cells() {
    const char* const of = std::getenv("REHEARSE_FEATURE");
    std::vector<Cell> found;
    for (std::size_t a = 0; a < schedule::features().size(); ++a) {
        for (std::size_t b = 0; b <= a; ++b) {
            Cell cell{schedule::features()[a], schedule::features()[b], {}};
            const std::optional<std::string> text = schedule::example_of(*cell.a, *cell.b);
            if (!text) continue;
            for (const Feature* feature : {cell.a, cell.b}) {
                if (feature->ask != nullptr) feature->ask(cell.job);
            }
            const Plan plan = schedule::read_plan(*text);
            const schedule::Asked both{plan, cell.job};
            if (!cell.a->in(both) || !cell.b->in(both) || schedule::clash_of(both)) continue;
            if (cell.job.precision != Precision::fp32) continue;  // train_test checks gradients in 16 bits
            cell.plan = *text;
            if (of == nullptr || cell.a->name == of || cell.b->name == of) found.push_back(std::move(cell));
        }
    }
    return found;
}

/// The first network that the cell can have on as many ranks as there are; nothing where there is none, or run does not
/// execute it.
std::optional<Schedule> schedule_of(const Cell& cell, const Options& options) {
    for (const Network& network : test::networks_of_every_kind()) {
        try {
            Schedule made = test::schedule_of(network, cell.plan, Communicator::world().size(), 8, cell.job.optimizer,
                                              cell.job.precision);
            if (first_limit({made, options, "cpu"}) == nullptr) return made;
        } catch (const InputError&) {  // of this network, or of so few ranks
        }
    }
    return std::nullopt;
}

/// Whether it could be run, and what came out says something.
bool expect_gradients(const Cell& cell) {
    SCOPED_TRACE(fmt::format("{} and {}: {}", cell.a->name, cell.b->name, cell.plan));
    Options options{.steps = 2, .check_gradients = true};
    options.learning_rate = 0.1 * default_learning_rate(cell.job.optimizer);  // of 8 layers without functions between
    // Few samples an update, and factors of few rows: long directions.
    if (cell.plan.find("kfac=") != std::string::npos) options.learning_rate *= 0.01F;
    if (cell.plan.find("tables=") != std::string::npos) options.momentum = 0;
    const std::optional<Schedule> schedule = schedule_of(cell, options);
    if (!schedule) return false;
    options.single_rank = std::make_shared<const Schedule>(test::schedule_of(
        schedule->network, "data", 1, micro_batch_size(*schedule), cell.job.optimizer, cell.job.precision));
    Result result;
    try {
        result = train_on(Communicator::world(), *schedule, options, {}, {});
    } catch (const std::exception& error) {
        ADD_FAILURE() << schedule->network.name << ": " << error.what();  // with the cell
        throw;
    }
    EXPECT_LE(result.gradient_error, result.gradient_tolerance) << schedule->network.name;
    // What is allowed grows with what training makes of rounding: beyond this, agreeing says nothing.
    return result.gradient_tolerance < 0.1;
}

/// The share of the cells that say something.
double walk(std::size_t first, std::size_t apart) {
    const std::vector<Cell> all = cells();
    std::size_t run = 0, seen = 0;
    for (std::size_t i = first; i < all.size(); i += apart, ++seen) run += expect_gradients(all[i]) ? 1 : 0;
    if (Communicator::world().rank() == 0) fmt::print("{} cells of {} say something\n", run, seen);
    return static_cast<double>(run) / static_cast<double>(seen);
}

TEST(Compatibility, OfSomeCellsGivesTheGradientsOfOneRank) { EXPECT_GT(walk(3, 24), 0.3); }

TEST(Compatibility, DISABLED_OfAllCellsGivesTheGradientsOfOneRank) { EXPECT_GT(walk(0, 1), 0.3); }

}  // namespace
}  // namespace rehearse::run
