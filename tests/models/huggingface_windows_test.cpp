// SPDX-License-Identifier: Apache-2.0
// Windows of an image, by hand: 3 x 3 pixels in windows of 2, filled up to 4 x 4.
#include "models/huggingface/windows.hpp"

#include <gmock/gmock.h>

namespace rehearse::models::huggingface {
namespace {

using testing::ElementsAre;

const std::vector<std::int32_t>& places(const Windows::Told& told) { return told->places.at(0); }

TEST(Windows, PixelsLieWindowByWindow) {
    const Windows windows{3, 2, 0};
    EXPECT_THAT(places(windows.cut(1)), ElementsAre(0, 1, 3, 4, 2, -1, 5, -1, 6, 7, -1, -1, 8, -1, -1, -1));
    EXPECT_THAT(places(windows.cut(2))[9], 5);  // the second number of pixel 2
}

// Up and left by one, around the border: pixel (1, 1) comes first, those of row and column 0 come last.
TEST(Windows, AShiftGoesAroundTheBorder) {
    const Windows windows{3, 2, 1};
    EXPECT_THAT(places(windows.cut(1)), ElementsAre(4, 5, 7, 8, -1, 3, -1, 6, -1, -1, 1, 2, -1, -1, -1, 0));
}

TEST(Windows, JoiningUndoesCutting) {
    for (const Windows windows : {Windows{3, 2, 0}, Windows{3, 2, 1}, Windows{8, 4, 2}, Windows{7, 3, 1}}) {
        const Windows::Told cut = windows.cut(2), joined = windows.joined(2);
        for (std::size_t i = 0; i < places(joined).size(); ++i)
            EXPECT_EQ(places(cut)[static_cast<std::size_t>(places(joined)[i])], static_cast<std::int32_t>(i));
    }
}

// Of 4 x 4 pixels the first window is whole; in the second what came from the left border stays apart.
TEST(Windows, WhatAShiftBroughtTogetherIsHidden) {
    const Windows::Told mask = Windows{4, 2, 1}.mask();
    const std::vector<float>& all = mask->fixed.at(0);
    const auto window = [&](std::size_t i) { return std::vector<float>(&all[16 * i], &all[16 * i] + 16); };
    EXPECT_EQ(window(0), std::vector<float>(16, 0));
    const float h = -100;
    EXPECT_THAT(window(1), ElementsAre(0, h, 0, h, h, 0, h, 0, 0, h, 0, h, h, 0, h, 0));
    EXPECT_THAT(window(2), ElementsAre(0, 0, h, h, 0, 0, h, h, h, h, 0, 0, h, h, 0, 0));
}

// Of a window of 2: no distance is row 4 of 9, one to the right of the other is row 3 from the left one's view.
TEST(Windows, DistancesNameRowsOfTheTable) {
    const Windows::Told told = Windows{4, 2, 0}.distances(1);
    EXPECT_THAT(places(told), ElementsAre(4, 3, 1, 0, 5, 4, 2, 1, 7, 6, 4, 3, 8, 7, 5, 4));
}

TEST(Windows, FourNeighboursLieSideBySide) {
    EXPECT_THAT(places(Windows{3}.neighbours(1)), ElementsAre(0, 3, 1, 4, 2, 5, -1, -1, 6, -1, 7, -1, 8, -1, -1, -1));
}

}  // namespace
}  // namespace rehearse::models::huggingface
