// SPDX-License-Identifier: Apache-2.0
// K-FAC: directions of many ranks are those of one, and need few steps where gradients need thousands. Run under mpirun
// with 2, 3, 4 and 8 ranks.
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "run/methods/factors.hpp"
#include "tests/run/written_out.hpp"

namespace rehearse::run {
namespace {

// Martens and Grosse 2015 over ranks: the same directions as from plain sums and elimination on one. Two of
// dropping()'s layers are dense, one of branches()', beside three convolutions.
TEST(Curvature, GivesTheDirectionsOfOneRank) {
    if (ranks() == 8) GTEST_SKIP() << "its plans are for 2, 3 and 4 ranks";
    if (ranks() == 2) expect_as_written_out({"data:kfac=2:damping=1"}, Optimizer::adam);
    if (ranks() == 3) expect_as_written_out({"data:kfac=3:damping=1:bucket=1kB"});
    if (ranks() == 4) expect_as_written_out({"data:kfac=1:damping=1"});
}

// Of images that ranks share each has the rows of its pixels, with what lies under the filters at its edges.
TEST(Curvature, TakesThePixelsOfSharedImages) {
    if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "its plans are for 2 and 4 ranks";
    std::vector<const char*> plans{"data=1:kfac=1:damping=1,spatial=2", "data=1:kfac=2:damping=1,spatial=1x2"};
    if (ranks() == 4)
        plans = {"data=2:kfac=2:damping=1,spatial=2", "data=1:kfac=1:damping=1,spatial=2x2",
                 "pipe=2,data=1:kfac=1:damping=1,spatial=2"};
    for (const char* plan : plans) {
        SCOPED_TRACE(plan);
        const Result result = train_checked(test::images(), plan, 4, 3, Optimizer::sgd, {.learning_rate = 0.001F});
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

// Pieces of layers have factors of their own: blocks of those of the whole layers, which one rank cuts out of these.
TEST(Curvature, IsOfThePiecesOfSharedLayers) {
    if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "its plans are for 2 and 4 ranks";
    const std::vector<Network> dense{test::dropping(), test::images()};
    const std::vector<Network> tokens{test::untied(test::tiny_decoder())};
    if (ranks() == 2) {
        expect_as_written_out({"data=1:kfac=1:damping=1,tensor=2", "data=1:kfac=2:damping=1,tensor=2:split=filters",
                               "data=1:kfac=2:damping=1,tensor=2:split=channels:async=on"},
                              Optimizer::sgd, dense);
        expect_as_written_out({"data=1:kfac=2:damping=1,tensor=2", "data=1:kfac=1:damping=1,tensor=2:sequence=on"},
                              Optimizer::sgd, tokens);
        expect_as_written_out({"data:kfac=2:damping=1:dense=shared"}, Optimizer::adam, {test::dropping()});
    } else {
        expect_as_written_out({"data=2:kfac=3:damping=1,tensor=2", "pipe=2,data=1:kfac=2:damping=1,tensor=2",
                               "pipe=2:scatter=on,data=1:kfac=2:damping=1,tensor=2",
                               "data=1:kfac=1:damping=1,spatial=2,tensor=2:split=filters"},
                              Optimizer::sgd, {test::images()});
        expect_as_written_out({"data=2:kfac=2:damping=1,tensor=2:sequence=on"}, Optimizer::sgd, tokens);
        expect_as_written_out({"data:kfac=1:damping=1:dense=shared", "data=2:kfac=2:damping=1:dense=shared,pipe=2"},
                              Optimizer::sgd, {test::dropping()});
    }
}

// Stages have weights of different ages: factors are of those that the first gradients of a step are of.
TEST(Curvature, IsOfTheWeightsOfAnUndrainedPipeline) {
    if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "its plans are for 2 and 4 ranks";
    const std::vector<Network> networks{test::dropping(), test::images()};
    if (ranks() == 2)
        expect_as_written_out({"pipe=2:schedule=pipedream,data=1:kfac=3:damping=1"}, Optimizer::sgd, networks);
    if (ranks() == 4)
        expect_as_written_out({"pipe=2:schedule=pipedream,data=2:kfac=3:damping=1",
                               "data=2:local=3:kfac=3:damping=1,pipe=2:schedule=pipedream",
                               "pipe=2:schedule=pipedream,data=1:kfac=3:damping=1,tensor=2"},
                              Optimizer::sgd, networks);
}

// Beside tables that ranks look up for each other, whose rows are updated at once by their gradients as they are.
TEST(Curvature, IsOfTheDenseLayersBesideSharedTables) {
    if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "its plans are for 2 and 4 ranks";
    for (const char* plan : {"data:kfac=1:damping=1:tables=shared", "data:kfac=2:damping=1:tables=shared:zero=1"}) {
        SCOPED_TRACE(plan);
        const Options options{.learning_rate = 0.01F, .momentum = 0};
        const Result result = train_checked(test::tiny_dlrm(4), plan, 4, 3, Optimizer::sgd, options);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

// Each model has the factors of its own samples; a step has as many updates by them as lie between two means.
TEST(Curvature, IsOfEachOfSeveralModels) {
    if (ranks() == 8) GTEST_SKIP() << "its plans are for 2, 3 and 4 ranks";
    const std::vector<Network> networks{test::dropping(), test::images()};
    if (ranks() == 2) expect_as_written_out({"data:local=2:kfac=2:damping=1"}, Optimizer::adam, networks);
    if (ranks() == 3)
        expect_as_written_out({"data:local=3:elastic=0.25:kfac=3:damping=1:bucket=1kB"}, Optimizer::sgd, networks);
    if (ranks() == 4) {
        expect_as_written_out({"data:local=1:elastic=0.25:average_momentum=0.5:kfac=1:damping=1"}, Optimizer::sgd,
                              networks);
    }
    EXPECT_THROW(test::schedule_of(test::dropping(), "data:local=2:kfac=3", ranks(), 6), InputError);
}

// Of each learner of a device, too, by the first of its parts of a step, also where who is idle takes the next.
TEST(Curvature, IsOfEachOfADevicesModels) {
    if (ranks() == 8) GTEST_SKIP() << "its plans are for 2, 3 and 4 ranks";
    const std::vector<Network> networks{test::dropping(), test::images()};
    if (ranks() == 3) expect_as_written_out({"data:learners=2:kfac=1:damping=1"}, Optimizer::adam, networks);
    if (ranks() == 4)
        expect_as_written_out({"data:learners=3:kfac=1:damping=1:average_momentum=0.5"}, Optimizer::sgd, networks);
    if (ranks() != 2) return;
    for (const bool first_idle : {false, true}) {
        Options options{.learning_rate = 0.001F};
        options.first_idle = first_idle;
        if (first_idle) options.learner_paces = {1, 2};
        for (const Network& network : networks) {
            const Result result =
                train_checked(network, "data:learners=2:local=2:kfac=2:damping=1", 16, 3, Optimizer::sgd, options);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, 1e-3);
        }
    }
}

// Directions of what Adasum makes of the ranks' own means: factors are of all rows either way.
TEST(Curvature, TakesWhatAdasumCombines) {
    if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "its plans are for 2 and 4 ranks";
    if (ranks() == 2) expect_as_written_out({"data:kfac=2:damping=1:allreduce=adasum"}, Optimizer::adam);
    if (ranks() == 4) expect_as_written_out({"data:kfac=1:damping=1:allreduce=adasum"});
}

// What becomes of 16 bits behind the inverses is measured; bits are sent of gradients at weights that inverses made.
TEST(Curvature, TakesGradientsInFewerBits) {
    if (ranks() != 2 && ranks() != 4) GTEST_SKIP() << "its plans are for 2 and 4 ranks";
    const Network network = test::dropping();
    for (const std::string by : {"fp16", "1bit", "top(0.25)"}) {
        const std::string plan = fmt::format("data:kfac={}:damping=1:compress={}", ranks() == 2 ? 2 : 1, by);
        SCOPED_TRACE(plan);
        const Result result = train_checked(network, plan, 6, 3);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, by == "fp16" ? 0.05 : 1e-3);
    }
}

// A worker's factors are of its own samples, a group's of those of its ranks, which share out the layers.
TEST(Curvature, GivesServersDirections) {
    if (ranks() == 2 || ranks() == 4) GTEST_SKIP() << "its plans are for 3 and 8 ranks";
    if (ranks() == 3)
        expect_as_written_out({"server=1,data=2:kfac=1:damping=1", "server=1,groups=1,data=2:kfac=1:damping=1"});
    if (ranks() == 8) expect_as_written_out({"server=2,groups=3,data=2:kfac=1:damping=1:bucket=1kB"});
}

/// Two classes, drawn by a logistic model of three features, whose deviations are 1, 0.1 and 0.01.
struct IllConditioned {
    static constexpr std::size_t samples = 512, features = 3;
    std::vector<float> inputs, labels;
    std::vector<double> weights = std::vector<double>(features);  // of class 1 less class 0

    IllConditioned() {
        std::uint64_t state = 1;
        const auto draw = [&state] {  // Knuth's MMIX generator
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            return static_cast<double>(state >> 11U) * 0x1p-53;
        };
        for (std::size_t i = 0; i < samples; ++i) {
            double score = 0;
            for (const double scale : {1.0, 0.1, 0.01}) {
                const double normed = 2 * draw() - 1;
                inputs.push_back(static_cast<float>(scale * normed));
                score += 2 * normed;
            }
            labels.push_back(draw() < 1 / (1 + std::exp(-score)) ? 1.0F : 0.0F);
        }
    }
    /// The loss; errors of each sample, and the gradient.
    double loss(std::vector<float>& errors, std::vector<double>& gradient) const {
        double sum = 0;
        gradient.assign(features, 0);
        errors.clear();
        for (std::size_t i = 0; i < samples; ++i) {
            double score = 0;
            for (std::size_t f = 0; f < features; ++f) score += weights[f] * inputs[i * features + f];
            const double error = 1 / (1 + std::exp(-score)) - labels[i];
            errors.push_back(static_cast<float>(error));
            sum += std::log(1 + std::exp(labels[i] > 0 ? -score : score)) / samples;
            for (std::size_t f = 0; f < features; ++f) gradient[f] += error * inputs[i * features + f] / samples;
        }
        return sum;
    }
    /// sum of rows times rows, as kernels give it.
    static std::vector<float> products(const std::vector<float>& rows, std::size_t size) {
        std::vector<float> sums(size * size);
        for (std::size_t r = 0; r < rows.size(); r += size) {
            for (std::size_t i = 0; i < size * size; ++i) sums[i] += rows[r + i / size] * rows[r + i % size];
        }
        return sums;
    }
    void step_by_curvature() {
        constexpr double damping = 1e-6;
        std::vector<float> errors, packed(features * (features + 1) / 2), a(features * features), g(1);
        std::vector<double> gradient;
        loss(errors, gradient);
        pack_factor(products(inputs, features), inputs, features, false, 1.0 / samples, packed);
        invert_factor(packed, damping, a);
        pack_factor(products(errors, 1), errors, 1, false, 1.0 / samples, std::span{packed}.first(1));
        invert_factor(std::span<const float>{packed}.first(1), damping, g);
        for (std::size_t i = 0; i < features; ++i) {
            for (std::size_t j = 0; j < features; ++j) weights[i] -= a[i * features + j] * gradient[j] * g[0];
        }
    }
};

// The flattest direction of the loss is 10^4 times as flat as the steepest: gradients of any one size crawl along it.
TEST(Curvature, NeedsFewStepsWhereGradientsNeedThousands) {
    if (ranks() != 2) GTEST_SKIP() << "on one rank it is the same";
    std::vector<float> errors;
    std::vector<double> gradient;
    IllConditioned by_curvature;
    for (int step = 0; step < 15; ++step) by_curvature.step_by_curvature();
    const double reached = by_curvature.loss(errors, gradient);
    IllConditioned best = by_curvature;
    for (int step = 0; step < 200; ++step) best.step_by_curvature();
    const double least = best.loss(errors, gradient);
    EXPECT_LT(reached - least, 1e-5);
    for (const double rate : {0.5, 2.0, 8.0, 12.0, 24.0}) {
        IllConditioned by_gradient;
        for (int step = 0; step < 1500; ++step) {
            by_gradient.loss(errors, gradient);
            for (std::size_t f = 0; f < gradient.size(); ++f) by_gradient.weights[f] -= rate * gradient[f];
        }
        EXPECT_GT(by_gradient.loss(errors, gradient) - least, 1e-3) << "at a rate of " << rate;
    }
}

TEST(Curvature, InvertsAPackedTriangle) {
    std::vector<float> inverse(4);
    invert_factor(std::vector<float>{3, 1, 1}, 1, inverse);  // (4 1; 1 2), of determinant 7
    const std::vector<float> expected{2 / 7.0F, -1 / 7.0F, -1 / 7.0F, 4 / 7.0F};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(inverse[i], expected[i]);
    std::vector<float> packed(6);  // of inputs (1 2) and (3 4), a bias, and half of all
    pack_factor(std::vector<float>{10, 14, 14, 20}, std::vector<float>{1, 2, 3, 4}, 2, true, 0.5, packed);
    EXPECT_EQ(packed, (std::vector<float>{5, 7, 10, 2, 3, 1}));
}

}  // namespace
}  // namespace rehearse::run
