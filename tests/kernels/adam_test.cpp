// SPDX-License-Identifier: Apache-2.0
// Adam and LAMB on cases worked out by hand, on every backend that has them.
#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>

#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::ElementsAre;

std::vector<const Backend*> backends_of(const Op& op) {
    std::vector<const Backend*> found;
    for (const Backend* backend : backends()) {
        if (backend->supports({op, Pass::update, 1, DataType::f32}).yes) {
            found.push_back(backend);
        }
    }
    return found;
}

Buffers adam_buffers(Tensors& t) {
    Buffers b = t.buffers();
    b.learning_rate = 0.25F;
    b.momentum_factor = 0.5F;
    b.second_factor = 0.75F;
    b.epsilon = 0;
    b.weight_decay = 0.5F;
    return b;
}

// The first step: both moments are corrected to g and g^2, the direction is the sign of g plus decay w.
TEST(AdamByHand, FirstGoesAgainstTheSignOfTheGradient) {
    const AdamUpdate op{3};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 1, *backend};
        t.weights = {8, 8, -8};
        t.diff_weights = {4, -4, 2};
        Buffers b = adam_buffers(t);
        backend->prepare({op, Pass::update, 1, DataType::f32})->run(b);
        EXPECT_THAT(t.weights, ElementsAre(8 - 0.25F * (1 + 4), 8 - 0.25F * (-1 + 4), -8 - 0.25F * (1 - 4)));
        EXPECT_THAT(t.momentum, ElementsAre(2, -2, 1));
        EXPECT_THAT(t.second_moment, ElementsAre(4, 4, 1));
        // The second step with gradient 0: m = 1, corrected by 1 / (1 - 1/4); v = 3, corrected by 1 / (1 - 9/16).
        t.weights = {0, 0, 0};
        t.diff_weights = {0, 0, 0};
        b.update_count = 2;
        backend->prepare({op, Pass::update, 1, DataType::f32})->run(b);
        EXPECT_FLOAT_EQ(t.weights[0], -0.25F * (1 / 0.75F) / std::sqrt(3 / (7 / 16.0F)));
    }
}

// The direction of every weight is +-1 with decay 0: a tensor of n weights has a direction of norm sqrt(n).
TEST(LambByHand, StepsAsFarAsTheTensorIsLong) {
    const LambUpdate op{5, 2};
    for (const Backend* backend : backends_of(op)) {
        SCOPED_TRACE(full_name(*backend));
        Tensors t{op, 1, *backend};
        t.tensor_sizes = {4, 1};
        t.weights = {2, 2, -2, 2, 0};
        t.diff_weights = {1, -1, 5, 8, 3};
        Buffers b = adam_buffers(t);
        b.weight_decay = 0;
        backend->prepare({op, Pass::update, 1, DataType::f32})->run(b);
        // ||w|| = 4, ||direction|| = 2: ratio 2. The second tensor is 0 long: its ratio is 1.
        EXPECT_THAT(t.weights, ElementsAre(1.5F, 2.5F, -2.5F, 1.5F, -0.25F));
    }
}

TEST(LambByHand, NeedsTheSizesOfAllTensors) {
    const LambUpdate op{5, 2};
    for (const Backend* backend : backends_of(op)) {
        Tensors t{op, 1, *backend};
        t.tensor_sizes = {4, 2};
        EXPECT_THROW(t.run(*backend, Pass::update), std::logic_error);
        t.tensor_sizes = {5};
        EXPECT_THROW(t.run(*backend, Pass::update), std::logic_error);
    }
}

}  // namespace
}  // namespace rehearse::kernels
