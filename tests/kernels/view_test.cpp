// SPDX-License-Identifier: Apache-2.0
// Views know their type: what they are made from, what they convert to, and that the wrong type is caught.
#include "kernels/view.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "kernels/memory.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

static_assert(std::is_convertible_v<View, ConstView> && !std::is_convertible_v<ConstView, View>);
static_assert(std::is_convertible_v<View, std::span<float>> && std::is_convertible_v<View, std::span<const float>>);
static_assert(!std::is_convertible_v<ConstView, std::span<float>>);
static_assert(!std::is_convertible_v<const std::vector<float>&, View>, "what is const is not written");
static_assert(!std::is_convertible_v<std::vector<double>&, View>);

TEST(View, OfFloatsIsARangeOfThem) {
    std::vector<float> values{1, 2, 3, 4};
    const View view = values;
    const std::span<float> span = view;
    EXPECT_EQ(span.data(), values.data());
    EXPECT_EQ(span.size(), 4U);
    view[1] = 7;
    EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0.0F), 1 + 7 + 3 + 4);
    const ConstView rest = view.subspan(1, 2);
    EXPECT_EQ(rest.data(), values.data() + 1);
    EXPECT_EQ(std::vector<float>(rest.begin(), rest.end()), (std::vector<float>{7, 3}));
}

TEST(View, OfHalvesStepsByTwoBytesAndIsNotTakenForFloats) {
    std::vector<Float16> values{Float16(1), Float16(2), Float16(3)};
    const ConstView view = values;
    EXPECT_EQ(view.type(), DataType::f16);
    EXPECT_EQ(view.size_bytes(), 6U);
    EXPECT_EQ(static_cast<float>(view.subspan(2, 1).as<Float16>()[0]), 3);
    EXPECT_THAT([&] { (void)view.data(); }, ThrowsMessage<std::logic_error>(HasSubstr("view of f16 is taken for f32")));
    EXPECT_THROW((void)view.as<BFloat16>(), std::logic_error);
    EXPECT_THROW((void)std::span<const float>(view), std::logic_error);
}

TEST(View, OfNothingIsOfEveryType) {
    EXPECT_TRUE(View{}.as<Float16>().empty());
    EXPECT_TRUE(std::span<const float>(ConstView{}).empty());
}

TEST(ViewsOfBuffers, OfAnotherTypeAreNamed) {
    const Op op = MatMul{2, 3, 4, false};
    Tensors t{op, 1, *backends().back()};
    const auto kernel = backends().back()->prepare({op, Pass::forward, 1, DataType::f32});
    std::vector<BFloat16> dst(6);
    Buffers b = t.buffers();
    b.dst = dst;
    EXPECT_THAT([&] { kernel->run(b); }, ThrowsMessage<std::logic_error>(HasSubstr("dst holds bf16")));
}

TEST(HostMemory, BeginsACacheLineAndIfLargeAHugePage) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{(4 << 20) - 1}}) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(allocate_host(bytes).get()) % 64, 0U) << bytes;
    }
    HostVector<float> large((4 << 20) / sizeof(float) + 1, 1.0F);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % (2 << 20), 0U);
    large.resize(2 * large.size(), 2.0F);
    EXPECT_EQ(std::accumulate(large.begin(), large.end(), 0.0), 1.5 * static_cast<double>(large.size()));
}

TEST(HostMemory, ThatIsNotThereIsSaid) {
    EXPECT_THROW(allocate_host(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
}

}  // namespace
}  // namespace rehearse::kernels
