// SPDX-License-Identifier: Apache-2.0
// Max pooling by vectors held to the reference's loops, on each SIMD target: whole numbers from -4 to 4, so that many
// windows have several largest pixels, of which the first one takes the gradient. Most volumes are of one plane.
#include <limits>

#include "tests/kernels/cpu_convolutions.hpp"

namespace rehearse::kernels {
namespace {

class CpuPool : public OnEachTarget {};

INSTANTIATE_TEST_SUITE_P(EachTarget, CpuPool,
                         testing::Combine(testing::ValuesIn(simd_targets()), testing::Values(1, 3)), target_name);

constexpr Window square(std::int64_t kernel, std::int64_t pad, std::int64_t stride = 1, std::int64_t dilation = 1) {
    return {kernel, kernel, stride, stride, pad, pad, pad, pad, dilation, dilation};
}

void expect_same(const Pool& op, std::int64_t batch) {
    SCOPED_TRACE(to_string(Problem{op, Pass::forward, batch, DataType::f32}));
    const Backend& pool = cpu_algorithm("pool");
    Tensors expected{op, batch, reference::backend()}, actual{op, batch, pool};
    expected.run_forward_and_backward(reference::backend());
    actual.run_forward_and_backward(pool);
    EXPECT_EQ(actual.dst, expected.dst);
    EXPECT_EQ(actual.diff_src, expected.diff_src);
}

// Rows shorter and longer than a vector of outputs, windows that overlap, leave pixels out, stick out of the image,
// jump and lie wholly in the padding.
TEST_P(CpuPool, TakesTheFirstOfTheLargestPixels) {
    const std::vector<Window> windows{square(2, 0, 2),
                                      square(3, 1, 2),
                                      square(3, 1),
                                      square(1, 0),
                                      square(2, 0, 3),
                                      square(5, 2, 4),
                                      square(2, 1, 1, 2),
                                      square(3, 2, 2, 3),
                                      {3, 3, 2, 2, 0, 0, 1, 1, 1, 1},
                                      {2, 3, 1, 2, 1, 0, 0, 2, 1, 1},
                                      {2, 2, 1, 1, 2, 2, 0, 0, 1, 1},
                                      {1, 5, 1, 1, 0, 4, 0, 4, 1, 1}};
    for (const Window& window : windows) {
        for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{7, 8}, {5, 71}, {9, 36}})
            for (const std::int64_t batch : {1, 3})
                expect_same(Pool{PoolKind::max, 3, height, width, window, false, 1}, batch);
    }
}

TEST_P(CpuPool, TakesTheLargestVoxels) {
    for (Window window : {square(2, 0, 2), square(3, 1, 2), square(3, 1), square(2, 1, 3, 2)}) {
        window.kernel_d = window.kernel_h, window.stride_d = window.stride_h, window.dilation_d = window.dilation_h;
        window.pad_front = window.pad_back = window.pad_top;
        expect_same(Pool{PoolKind::max, 2, 6, 37, window, false, 5}, 2);
    }
}

// The reference compares by "less than", which nothing is that is not a number: it stays where it comes first. Of
// pixels that are all minus infinity the first one takes the gradient.
TEST_P(CpuPool, ComparesWhatIsNoNumberAsTheReference) {
    const float none = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
    const Pool op{PoolKind::max, 1, 6, 40, square(3, 1, 2), false, 1};
    const Backend& pool = cpu_algorithm("pool");
    Tensors expected{op, 1, reference::backend()}, actual{op, 1, pool};
    for (Tensors* t : {&expected, &actual}) {
        for (const std::size_t i : {0, 3, 44, 81, 239}) t->src[0][i] = none;
        for (const std::size_t i : {10, 11, 12, 50, 51, 52}) t->src[0][i] = -infinite;
    }
    expected.run_forward_and_backward(reference::backend());
    actual.run_forward_and_backward(pool);
    for (std::size_t i = 0; i < expected.dst.size(); ++i) {
        EXPECT_EQ(std::isnan(actual.dst[i]), std::isnan(expected.dst[i])) << i;
        const float right = std::isnan(expected.dst[i]) ? 0.0F : expected.dst[i];
        EXPECT_EQ(std::isnan(actual.dst[i]) ? 0.0F : actual.dst[i], right) << i;
    }
    EXPECT_EQ(actual.diff_src, expected.diff_src);
}

TEST(ChooseForPooling, TakesTheLargestVoxelByVectorsAndAllElseByALibrary) {
    const Pool image{PoolKind::max, 2, 8, 8, square(2, 0, 2)};
    Pool volume = image, mean = image;
    volume.depth = mean.depth = 4;
    mean.kind = PoolKind::average;
    EXPECT_EQ(full_name(choose(volume, 1, DataType::f32)), "cpu pool");
    EXPECT_EQ(choose(volume, 1, DataType::f32).workspace(volume, 1), 0);
    const auto reason = [](const Pool& op) { return cpu_algorithm("pool").supports({op, Pass::forward, 1}).reason; };
    EXPECT_NE(reason(image).find("not images"), std::string::npos);
    EXPECT_NE(reason(mean).find("not the average"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::kernels
