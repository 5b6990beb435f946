// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings: by hand with angles of a quarter turn, by their base against sine and cosine, and on all cores
// like the plain loops.
#include <cmath>

#include "core/rotary.hpp"
#include "kernels/cpu/general/general.hpp"
#include "tests/kernels/gradients.hpp"

namespace rehearse::kernels {
namespace {

const Rotation halves{.size = 4, .turned = 4}, neighbours{.size = 4, .turned = 4, .neighbours = true};

// Row 0 stays; row 1 is turned by a quarter: (x, y) becomes (-y, x).
Tensors quarter(const Rotation& rotation, const Backend& backend) {
    Tensors t{rotary({2, 4}, rotation, 1, {{2, 4}, {2, 4}}), 1, backend};
    t.fixed = {{1, 1, 1, 1, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 1, 1, 1}};
    t.src[0] = {1, 2, 3, 4, 5, 6, 7, 8};
    return t;
}

TEST(Rotary, TurnsHalvesOrNeighbours) {
    for (const Backend* backend : {&reference::backend(), &cpu::general()}) {
        Tensors t = quarter(halves, *backend);
        t.run(*backend, Pass::forward);
        EXPECT_EQ(t.dst, (std::vector<float>{1, 2, 3, 4, -7, -8, 5, 6}));
        Tensors u = quarter(neighbours, *backend);
        u.run(*backend, Pass::forward);
        EXPECT_EQ(u.dst, (std::vector<float>{1, 2, 3, 4, -6, 5, -8, 7}));
    }
}

// Two heads of four, of which the last two numbers of the first head are turned: by 1 in row 1, by 2 in row 2.
TEST(Rotary, TurnsAPartOfSomeHeads) {
    const Rotation last{.size = 4, .turned = 2, .first = 2, .base = 100};
    const Op op = rotary({3, 8}, last, 1, {{3, 2}});
    for (const Backend* backend : {&reference::backend(), &cpu::general()}) {
        Tensors t{op, 1, *backend};
        for (std::size_t i = 0; i < t.src[0].size(); ++i) t.src[0][i] = static_cast<float>(i % 8 == 2 ? 1 : 0);
        t.run(*backend, Pass::forward);
        for (std::size_t row = 0; row < 3; ++row) {
            for (std::size_t i = 0; i < 8; ++i) {
                const auto angle = static_cast<float>(row);
                const float expected = i == 2 ? std::cos(angle) : i == 3 ? std::sin(angle) : 0.0F;
                EXPECT_NEAR(t.dst[row * 8 + i], expected, 1e-7) << row << ", " << i;
            }
        }
    }
}

// Pair i of Llama's 128 numbers turns by base^(-2 i / 128) a row.
TEST(Rotary, LaterPairsTurnMoreSlowly) {
    const Op op = rotary({2, 8}, {.size = 8, .turned = 8, .base = 10000}, 1, {{2, 8}});
    Tensors t{op, 1, reference::backend()};
    t.src[0] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};
    t.run(reference::backend(), Pass::forward);
    const double angles[] = {1, 0.1, 0.01, 0.001};
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(t.dst[8 + i], std::cos(angles[i]), 1e-6);
        EXPECT_NEAR(t.dst[12 + i], std::sin(angles[i]), 1e-6);
    }
}

// A rank that has rows 2 and 3 of four turns them as the whole's.
TEST(Rotary, RowsOfAWholeAreTurnedByTheirPlaceInIt) {
    const Rotation rotation{.size = 4, .turned = 4, .base = 100};
    for (const Backend* backend : {&reference::backend(), &cpu::general()}) {
        Tensors whole{rotary({4, 4}, rotation, 1, {{4, 4}}), 1, *backend},
            part{rotary({2, 4}, rotation, 1, {{2, 4}}), 1, *backend};
        for (std::size_t i = 0; i < 16; ++i) whole.src[0][i] = static_cast<float>(i + 1);
        part.src[0] = {9, 10, 11, 12, 13, 14, 15, 16};
        part.first_row = 2;
        whole.run(*backend, Pass::forward);
        part.run(*backend, Pass::forward);
        EXPECT_EQ(part.dst, (std::vector<float>(whole.dst.begin() + 8, whole.dst.end())));
    }
}

TEST(Rotary, GradientsAreTurnedBack) {
    for (const Rotation& rotation : {halves, neighbours}) {
        Tensors t{rotary({2, 3, 4}, rotation, 1, {{3, 4}, {3, 4}}), 2, reference::backend()};
        t.fixed.assign(2, {});
        for (int i = 0; i < 12; ++i) {  // cosines and sines of pairs need not agree
            t.fixed[0].push_back(static_cast<float>(i % 5));
            t.fixed[1].push_back(static_cast<float>(i % 3 - 1));
        }
        expect_gradients(t, slope_of_line, 0);
        Tensors fast{t.op, 2, cpu::general()};
        fast.fixed = t.fixed;
        fast.src = t.src;
        fast.diff_dst = t.diff_dst;
        t.run_forward_and_backward(reference::backend());
        fast.run_forward_and_backward(cpu::general());
        EXPECT_EQ(fast.dst, t.dst);
        EXPECT_EQ(fast.diff_src, t.diff_src);
    }
}

TEST(Rotary, SaysWhyItCannotBeRun) {
    const auto reason = [](const Op& op) { return reference::backend().supports({op, Pass::forward, 1}).reason; };
    EXPECT_NE(reason(Elementwise{"rotary", {2, 4}, {{2, 4}}, {}, {{2, 4}}}).find("priced only"), std::string::npos);
    EXPECT_NE(reason(rotary({2, 6}, halves, 1, {{2, 4}})).find("whole heads"), std::string::npos);
    EXPECT_NE(reason(rotary({2, 8}, halves, 3, {{2, 4}})).find("a part of a head"), std::string::npos);
    EXPECT_NE(reason(rotary({2, 6}, {.size = 3, .turned = 3}, 1, {})).find("pairs"), std::string::npos);
}

// Of each head two numbers of its own and the row's one.
TEST(Rotary, ARowBesideEachHead) {
    Tensors t{Rearrangement{"pack", {{2, 4}, {2, 1}}, {2, 6}, {2}}, 1, reference::backend()};
    t.src = {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20}};
    t.run(reference::backend(), Pass::forward);
    EXPECT_EQ(t.dst, (std::vector<float>{1, 2, 10, 3, 4, 10, 5, 6, 20, 7, 8, 20}));
    expect_gradients(t, slope_of_line, 0);
}

}  // namespace
}  // namespace rehearse::kernels
