// SPDX-License-Identifier: Apache-2.0
// Who may win and what is said of him, not who is fast.
#include "bench/tune.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "kernels/backend.hpp"

namespace rehearse::bench {
namespace {

using kernels::tuned::Winner;
using testing::IsEmpty;

const Window same{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};

std::vector<calibrate::Needed> passes_of(const Op& op) {
    std::vector<calibrate::Needed> needed;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        if (has_pass(op, pass)) needed.push_back({{op, pass, 2}, Bytes{1e5}});
    }
    return needed;
}

TuneOptions quick() {
    TuneOptions options;
    options.budget = Seconds{0.02};
    options.date = "2026-01-31";
    return options;
}

class Tune : public testing::Test {
protected:
    void SetUp() override {
        if (kernels::implementations(conv_[0].problem, kernels::any_scratch).size() < 2) {
            GTEST_SKIP() << "this build has one implementation";
        }
    }
    std::vector<calibrate::Needed> conv_ = passes_of(Conv{3, 9, 8, 5, same, 1, true});
};

TEST_F(Tune, NamesAnImplementationOfEachPass) {
    const std::vector<Winner> winners = tune(conv_, quick());
    ASSERT_EQ(winners.size(), conv_.size());
    for (std::size_t i = 0; i < winners.size(); ++i) {
        const Winner& w = winners[i];
        SCOPED_TRACE(w.problem);
        EXPECT_EQ(w.problem, to_string(conv_[i].problem));
        const auto all = kernels::implementations(conv_[i].problem, kernels::default_scratch_limit);
        const auto found = std::ranges::find_if(
            all, [&](const kernels::Backend* b) { return b->name() == w.backend && b->algorithm() == w.algorithm; });
        ASSERT_NE(found, all.end()) << w.backend << " " << w.algorithm;
        EXPECT_EQ(w.scratch, (*found)->scratch(conv_[i].problem, kernels::default_scratch_limit));
        EXPECT_EQ(w.tried, all.size());
        EXPECT_GT(w.median, Seconds{});
        EXPECT_LE(w.median, w.runner_up);
        EXPECT_EQ(w.scratch_limit, kernels::default_scratch_limit);
        EXPECT_EQ(w.date, "2026-01-31");
    }
    const kernels::Choices choices = kernels::tuned::choices(winners, kernels::default_scratch_limit);
    EXPECT_EQ(choices.size(), winners.size());
}

TEST_F(Tune, LeavesOutWhoNeedsTooMuchMemory) {
    TuneOptions options = quick();
    Bytes largest;
    for (const kernels::Backend* b : kernels::implementations(conv_[0].problem, kernels::any_scratch)) {
        largest = std::max(largest, b->scratch(conv_[0].problem, kernels::any_scratch));
    }
    options.scratch_limit = largest - Bytes{1};
    for (const Winner& w : tune(conv_, options)) {
        EXPECT_LE(w.scratch, options.scratch_limit);
        EXPECT_EQ(w.scratch_limit, options.scratch_limit);
    }
    options.scratch_limit = Bytes{};  // the plain loops are left: there is nothing to choose
    EXPECT_THAT(tune(conv_, options), IsEmpty());
}

TEST_F(Tune, LeavesOutWhomAnotherRankFoundWrong) {
    TuneOptions options = quick();
    options.team.mean = [](double mine) { return std::max(mine, 0.5); };
    EXPECT_THAT(tune(conv_, options), IsEmpty());
}

// All ranks go through the same rungs: a barrier that only some reach would hang.
TEST_F(Tune, DecidesByTheTeamsTimes) {
    TuneOptions options = quick();
    options.team.mean = [](double mine) { return mine == 0 ? 0 : 0.25; };
    for (const Winner& w : tune(conv_, options)) {
        EXPECT_EQ(w.median, Seconds{0.25});
        EXPECT_EQ(w.runner_up, Seconds{0.25});
    }
}

TEST_F(Tune, HasNothingToSayWhereThereIsNoChoice) {
    EXPECT_THAT(tune({}, quick()), IsEmpty());
    const auto loss = passes_of(SoftmaxLoss{5});
    if (kernels::implementations(loss[0].problem, kernels::any_scratch).size() == 1) {
        EXPECT_THAT(tune(loss, quick()), IsEmpty());
    }
}

}  // namespace
}  // namespace rehearse::bench
