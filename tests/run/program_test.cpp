// SPDX-License-Identifier: Apache-2.0
#include "run/program.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/gradient_sums.hpp"
#include "run/data/data.hpp"
#include "tests/run/difference.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

constexpr std::int64_t batch = 6;

// A program with one batch in its input.
class Loaded {
public:
    Loaded(const Network& network, const std::string& backend) : Loaded(network, KernelSelection{backend, ""}) {}
    Loaded(const Network& network, const KernelSelection& selection)
        : schedule_(test::schedule_of(network, "data", 1, batch)), program_(schedule_, RankIndex{0}, selection, 5, {}) {
        const SyntheticTask task{network.layers.front().output, 3, 11};
        const std::size_t size = program_.tensors().input().size() / batch;
        for (std::int64_t i = 0; i < batch; ++i) {
            const auto place = static_cast<std::size_t>(i);
            task.fill(i, program_.tensors().input().subspan(place * size, size));
            program_.tensors().labels()[place] = task.label(i);
        }
    }
    Program& program() { return program_; }
    double mean_loss() {
        program_.compute_gradients(9, 0);
        return program_.losses().sum() / batch;
    }

private:
    Schedule schedule_;
    Program program_;
};

// Every layer's gradient against the slope of the loss along it. Nothing of the backward pass is in the oracle.
void expect_slopes(const Network& network, const std::string& backend) {
    Loaded loaded{network, backend};
    Program& program = loaded.program();
    loaded.mean_loss();
    for (std::size_t layer = 0; layer < network.layers.size(); ++layer) {
        const LayerTensors& tensors = program.tensors().layer(static_cast<int>(layer));
        if (tensors.weights.empty()) continue;
        SCOPED_TRACE(network.layers[layer].name + " by " + (backend.empty() ? "the best" : backend));
        loaded.mean_loss();
        const std::vector<float> gradient(tensors.gradients.begin(), tensors.gradients.end());
        const std::vector<float> weights(tensors.weights.begin(), tensors.weights.end());
        double norm = 0;
        for (const float g : gradient) norm += std::pow(static_cast<double>(g), 2);
        norm = std::sqrt(norm);
        ASSERT_GT(norm, 1e-3);
        const double reach = 0.01;
        std::array<double, 2> loss{};
        for (const std::size_t side : {0U, 1U}) {
            for (std::size_t i = 0; i < weights.size(); ++i) {
                tensors.weights[i] = static_cast<float>(weights[i] + (side == 0 ? -reach : reach) * gradient[i] / norm);
            }
            loss[side] = loaded.mean_loss();
        }
        std::ranges::copy(weights, tensors.weights.begin());
        // A central difference errs by reach^2 / 6 of the third derivative, 2e-5 of a slope of 1, and by the f32
        // rounding of the losses, 1e-7 / reach = 1e-5. The rest of the 2 % is for ReLUs that change sides on the way.
        EXPECT_NEAR((loss[1] - loss[0]) / (2 * reach), norm, 0.02 * norm);
    }
}

TEST(Program, GradientsAreTheSlopesOfTheLossWhereOutputsAreShared) {
    expect_slopes(test::branches(), "reference");
    expect_slopes(test::branches(), "");
}

TEST(Program, GradientsAreTheSlopesOfTheLossUnderDropout) { expect_slopes(test::dropping(), ""); }

// x + x: one output read twice by one layer.
TEST(Program, AnOutputReadTwiceByOneLayerGetsBothGradients) {
    Network n{.name = "twice", .layers = {}};
    int at = test::add(n, "input", Input{{5}}, {});
    at = test::add(n, "fc1", MatMul{.m = 1, .n = 4, .k = 5}, {at});
    at = test::add(n, "double", Add{{4}, 2}, {at, at});
    at = test::add(n, "fc2", MatMul{.m = 1, .n = 3, .k = 4}, {at});
    test::add(n, "loss", SoftmaxLoss{3}, {at});
    expect_slopes(n, "reference");
}

TEST(Program, GradientsDoNotDependOnWhatWasThereBefore) {
    Loaded loaded{test::branches(), ""};
    loaded.mean_loss();
    const std::span<const float> gradients = loaded.program().tensors().gradients();
    const std::vector<float> first(gradients.begin(), gradients.end());
    loaded.mean_loss();
    EXPECT_EQ(std::vector<float>(gradients.begin(), gradients.end()), first);
}

// Forward by one implementation, each gradient by another one: as if each had been the fastest of its pass.
TEST(Program, GivesTheSameGradientsWhicheverImplementationWonAPass) {
    const Network network = test::branches();
    KernelSelection selection;
    std::size_t turn = 0;
    for (const Layer& layer : network.layers) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            if (!has_pass(layer.op, pass)) continue;
            const Problem problem{layer.op, pass, batch};
            const auto all = kernels::implementations(problem, kernels::default_scratch_limit);
            selection.tuned[to_string(problem)] = {all[turn++ % all.size()], 0};
        }
    }
    Loaded tuned{network, selection}, plain{network, "reference"};
    EXPECT_NEAR(tuned.mean_loss(), plain.mean_loss(), 1e-4);
    const std::span<const float> actual = tuned.program().tensors().gradients();
    const std::span<const float> expected = plain.program().tensors().gradients();
    // f32 against sums in double, 1e-7 a number, and Winograd's larger tiles, 1e-5 (kernels/cpu/conv/winograd.hpp),
    // through a few layers of batch normalization; a wrong pass differs by about 1.
    EXPECT_LT(test::difference(actual, expected), 1e-3);
}

std::int64_t added(const ReadyStep& ready) {
    std::int64_t count = 0;
    for (const Addition& addition : ready.additions) {
        if (!addition.first) count += static_cast<std::int64_t>(addition.sum.size());
    }
    return count;
}

// What predictions pay for is what a rank does.
TEST(Program, AddsGradientsWhereCoreSaysSo) {
    const std::array<std::pair<Network, const char*>, 9> cases{
        {{test::branches(), "data"},
         {test::branches(), "data:microbatches=3"},
         {test::branches(), "pipe=2:microbatches=3"},
         {test::branches(), "pipe=2:schedule=gpipe:microbatches=2:recompute=on"},
         {test::branches(), "tensor=2"},
         {test::branches(), "data=2:zero=2:microbatches=3"},
         {test::branches(), "data=2:zero=3:microbatches=2"},
         {models::load_network("resnet32"), "data=2:microbatches=2"},
         {test::tiny_transformer(models::TransformerKind::decoder), "data=2:microbatches=2"}}};
    for (const auto& [network, plan] : cases) {
        SCOPED_TRACE(network.name + " " + plan);
        const std::int64_t ranks = std::string_view{plan}.find("=2") == std::string_view::npos ? 1 : 2;
        const Schedule schedule = test::schedule_of(network, plan, ranks, batch);
        std::int64_t all = 0;
        for (RankIndex rank{0}; rank < ranks; ++rank) {
            Program program{schedule, rank, {}, 1, {}};
            const RankClass& own = schedule.classes[static_cast<std::size_t>(class_of(schedule, rank))];
            const std::vector<std::vector<Problem>> sums = gradient_sums(schedule, own);
            for (std::size_t i = 0; i < own.steps.size(); ++i) {
                if (own.steps[i].stream != Stream::compute) continue;
                std::int64_t expected = 0;
                for (const Problem& sum : sums[i]) expected += sum.batch * elements(output_shape(sum.op));
                EXPECT_EQ(added(program.steps()[i]), expected) << own.steps[i].name;
                all += expected;
            }
        }
        EXPECT_GT(all, 0);
    }
}

TEST(Program, RefusesAnOperatorThatNobodyRuns) {
    Network n{.name = "strange", .layers = {}};
    int at = test::add(n, "input", Input{{5}}, {});
    at = test::add(n, "what", Unknown{"Mystery", 5, 0, {5}}, {at});
    at = test::add(n, "fc", MatMul{.m = 1, .n = 3, .k = 5}, {at});
    test::add(n, "loss", SoftmaxLoss{3}, {at});
    const Schedule schedule = test::schedule_of(n, "data", 1, 2);
    EXPECT_THROW((Program{schedule, RankIndex{0}, {}, 1, {}}), InputError);
}

}  // namespace
}  // namespace rehearse::run
