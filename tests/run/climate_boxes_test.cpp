// SPDX-License-Identifier: Apache-2.0
// Boxes round weather. Oracle: a map drawn here, its labels written down by hand; what was planted.
#include "run/data/climate_boxes.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "models/models.hpp"
#include "run/data/samples.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {
namespace {

using testing::ElementsAre;

// Two cyclones, one of them in a cell's corner, and a river.
const std::string map =
    "........"
    "cc......"
    "cc...rrr"
    "......r.";

std::vector<std::int32_t> labels_of_map() {
    std::vector<std::int32_t> labels;
    for (const char pixel : map) labels.push_back(pixel == 'c' ? cyclone : pixel == 'r' ? river : background);
    return labels;
}

TEST(Boxes, GoRoundWhatHangsTogether) {
    EXPECT_THAT(boxes_of(labels_of_map(), 4, 8),
                ElementsAre(WeatherBox{cyclone, 0, 1, 2, 3}, WeatherBox{river, 5, 2, 8, 4}));
    EXPECT_TRUE(boxes_of(std::vector<std::int32_t>(12), 3, 4).empty());
}

// Cells of 4 x 4: the cyclone's centre is (1, 2) in the left one, the river's (6.5, 3) in the right one, 2.5 and 3
// pixels from its corner. Steps are eighths: 1/4 is step 2, 2/4 step 4, 5/8 step 5, 3/4 step 6; sizes 2/8 and 3/8 of
// the width are steps 2 and 3, half of the height step 4.
TEST(Boxes, BecomeLabelsOfTheirCells) {
    const BoxGrid grid{4, 8, 4};
    ASSERT_EQ(grid.labels(), 13);
    std::vector<std::int32_t> labels(13);
    box_labels(boxes_of(labels_of_map(), 4, 8), grid, labels);
    EXPECT_THAT(labels, ElementsAre(1, 1,          // something in both
                                    2 + 1, 2 + 3,  // a cyclone, a river
                                    6 + 2, 6 + 5,  // across
                                    6 + 4, 6 + 6,  // down
                                    6 + 2, 6 + 3,  // wide
                                    6 + 4, 6 + 4,  // high
                                    0));
    box_labels({}, grid, labels);
    EXPECT_THAT(labels, ElementsAre(0, 0, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 0));
}

TEST(Boxes, AreWhatTheNetworkAsksFor) {
    const Network network = models::load_network("climatenet-small");
    const auto grid = box_grid(loss_of(network), 48, 72);
    ASSERT_TRUE(grid.has_value());
    EXPECT_EQ(grid->cell, 8);
    EXPECT_FALSE(box_grid(loss_of(network), 64, 64).has_value());
    EXPECT_FALSE(box_grid(loss_of(models::load_network("tiramisu-small")), 48, 72).has_value());
}

// A cyclone lies in the cell that says so.
TEST(Boxes, OfSamplesLieWherePlanted) {
    const Network network = models::load_network("climatenet-small");
    Samples samples{network, 5, "climate"};
    const Climate climate{{16, 48, 72}, 5};
    std::vector<float> input(16 * 48 * 72);
    std::vector<std::int32_t> labels(6 * 54 + 1);
    int planted = 0, found = 0;
    for (int i = 0; i < 50; ++i) {
        samples.fill(i, input, {}, labels);
        for (const Cyclone& each : climate.weather(i).cyclones) {
            ++planted;
            for (int dy = -1; dy <= 1; ++dy) {
                for (int dx = -1; dx <= 1; ++dx) {  // boxes are of whole pixels: a centre on an edge may lie beyond it
                    const auto cell =
                        static_cast<std::size_t>(std::floor((each.y + dy) / 8) * 9 + std::floor((each.x + dx) / 8));
                    if (labels[cell] == 1 && labels[54 + cell] == 3) {
                        ++found;
                        dy = dx = 1;
                    }
                }
            }
        }
    }
    EXPECT_GT(planted, 20);
    EXPECT_GE(found, 0.95 * planted) << "a river may hide one";
}

}  // namespace
}  // namespace rehearse::run
