// SPDX-License-Identifier: Apache-2.0
// The first plan of a search against the simulation of every plan of its space, and estimates against what is
// simulated.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "models/models.hpp"
#include "search/finalists.hpp"

namespace rehearse::search {
namespace {

struct Case {
    const char *network, *machine;
    std::int64_t devices, batch;
    Extent most;
    Precision precision = Precision::mixed;
};

std::ostream& operator<<(std::ostream& out, const Case& each) {
    return out << each.network << " on " << each.devices << " of " << each.machine;
}

struct Judged {
    Choices choices;
    double simulated_s = 0, estimated_s = 0;
    double ratio() const { return std::log(simulated_s / estimated_s); }
};

double quantile(std::vector<double> values, double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

class Regret : public testing::TestWithParam<Case> {
protected:
    Regret() : network_(models::load_network(GetParam().network)), machine_(models::load_machine(GetParam().machine)) {
        // So that the best of all is the best that fits.
        for (DeviceClass& each : machine_.classes) each.memory.value = Bytes{1e15};
        request_.devices = {GetParam().devices};
        request_.job.global_batch = GetParam().batch;
        request_.job.precision = GetParam().precision;
        request_.job.optimizer = Optimizer::adam;
        request_.most = GetParam().most;
        request_.variety.chunks = 2;
        request_.simulated = 5;
    }

    std::vector<Judged> every_plan() const {
        std::vector<Judged> all;
        schedule::Job job = request_.job;
        job.devices = GetParam().devices;
        Screen screen{network_, machine_, request_.job};
        for (const Shape& shape : shapes(job.devices, request_.most, {1, tokens_of(network_)})) {
            for (Choices& choices : choices_of(shape, *job.global_batch, request_.variety)) {
                const std::optional<Estimate> estimate = screen.estimate(choices);
                if (!estimate) continue;
                const Simulated result = simulated(network_, machine_, job, plan_text(choices), Bytes{1e15}, false);
                if (result.refusal.empty()) all.push_back({choices, result.step.value, estimate->step_s});
            }
        }
        return all;
    }

    Network network_;
    Machine machine_;
    Request request_;
};

TEST_P(Regret, OfTheFirstPlanIsAPercentAtMost) {
    const std::vector<Judged> all = every_plan();
    ASSERT_GT(all.size(), 100U);
    const double best = std::ranges::min_element(all, {}, &Judged::simulated_s)->simulated_s;
    const Result found = search(network_, machine_, request_);
    ASSERT_FALSE(found.ranked.empty());
    EXPECT_LE(found.ranked.front().result.step.value, 1.01 * best) << found.ranked.front().plan;
    EXPECT_LT(found.counts.simulated, std::ssize(all)) << "few are simulated";

    std::vector<double> ratios, slopes;
    for (const Judged& each : all) ratios.push_back(each.ratio());
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = i + 1; j < all.size(); ++j) {
            const double apart = distance(all[i].choices, all[j].choices);
            if (apart > 0) slopes.push_back(std::abs(all[i].ratio() - all[j].ratio()) / apart);
        }
    }
    std::cout << fmt::format(
        "{} plans, {} simulated, first {:.2f} % above the best; simulated over estimated {:.2f} to {:.2f}, median "
        "{:.2f}, 10th and 90th percentile {:.2f} and {:.2f}; "
        "steepness {:.3f} at the 90th percentile, {:.3f} at the 99th\n",
        all.size(), found.counts.simulated, 100 * (found.ranked.front().result.step.value / best - 1),
        std::exp(quantile(ratios, 0)), std::exp(quantile(ratios, 1)), std::exp(quantile(ratios, 0.5)),
        std::exp(quantile(ratios, 0.1)), std::exp(quantile(ratios, 0.9)), quantile(slopes, 0.9),
        quantile(slopes, 0.99));
    EXPECT_LE(quantile(slopes, 0.9), steepest) << "what Finalists takes for granted";
    EXPECT_GE(std::exp(quantile(ratios, 0.1)), shortest);
    EXPECT_NEAR(std::exp(quantile(ratios, 0.5)), 1, 0.15) << "docs/search.md says how far estimates are off";
}

INSTANTIATE_TEST_SUITE_P(Spaces, Regret,
                         testing::Values(Case{"gpt-h1024-a16-l8-v2048@512", "perlmutter", 16, 32, {4, 4}},
                                         Case{"gpt-h2048-a16-l4-v2048@256", "dgx1-v100", 8, 16, {4, 2}},
                                         Case{"gpt-h4096-a32-l8-v51200@2048", "eos", 16, 32, {2, 2}, Precision::bf16},
                                         Case{"vgg16", "summit", 12, 96, {2, 2}}));

TEST(Finalists, GivesOutWhatCanStillBeTheBest) {
    std::vector<Candidate> candidates(4);
    candidates[1].choices.chunks = 2;       // at distance 1 from the first
    candidates[2].choices.overlap = false;  // 2
    candidates[3].choices.zero = 1;         // 1
    Finalists finalists{candidates, {10, 10.5, 10.6, 30}};
    // Nothing is known yet: each may take `shortest` times its estimate.
    EXPECT_EQ(finalists.left(shortest * 10.55), 2U);
    EXPECT_EQ(finalists.next(1, INFINITY), (std::vector<std::size_t>{0}));
    // The first takes 1.3 times its estimate: the third at least 1.3 exp(-2 steepest) times its own, 8.4, the
    // second 1.3 exp(-steepest), 10.6.
    finalists.learn(0, 1.3);
    EXPECT_EQ(finalists.left(8.3), 0U);
    EXPECT_EQ(finalists.left(8.5), 1U);
    EXPECT_EQ(finalists.left(10.7), 2U);
    EXPECT_EQ(finalists.next(4, 13), (std::vector<std::size_t>{2, 1}));
    EXPECT_EQ(finalists.next(4, 13), std::vector<std::size_t>{});
    EXPECT_EQ(finalists.next(4, 100), (std::vector<std::size_t>{3}));
}

}  // namespace
}  // namespace rehearse::search
