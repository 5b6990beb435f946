// SPDX-License-Identifier: Apache-2.0
// How full links are, against sums by hand.
#include "picture/link_load.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "picture/lanes.hpp"

namespace rehearse::picture {
namespace {

// A link of 10 GB/s carries 5 GB/s for 10 ms and 10 GB/s for 5 more, of 20: half, all, and 100 MB of 200.
TEST(LinkLoads, AreSharesAtAMomentOnAverageAndAtMost) {
    Timeline timeline{"t", false, 1, {}, {}, {}};
    timeline.events.push_back(
        {RankIndex{0}, Stream::compute, "a", "a", "forward", 0, 0, Seconds{0}, Seconds{0.020}, {}, {}});
    timeline.counters.push_back(
        {"mean of links nic:up", "B/s", {{Seconds{0}, 5e9}, {Seconds{0.010}, 10e9}, {Seconds{0.015}, 0}}});
    timeline.counters.push_back({"memory rank 0", "bytes", {{Seconds{0}, 1e9}}});
    timeline.links.push_back({"nic:up", "nic:up", 4, Bandwidth{10e9}, Bytes{400e6}, Bytes{100e6}});
    timeline.links.push_back({"node0:nic0:up", "nic:up", 1, Bandwidth{10e9}, Bytes{100e6}, Bytes{100e6}});
    const Lanes lanes = lanes_of(timeline);
    const auto loads = link_loads(lanes);
    ASSERT_EQ(loads.size(), 2U);
    EXPECT_TRUE(loads[0].is_kind());
    EXPECT_DOUBLE_EQ(loads[0].mean, 0.5);
    EXPECT_DOUBLE_EQ(loads[0].peak, 1);
    EXPECT_FALSE(loads[1].is_kind());
    EXPECT_DOUBLE_EQ(loads[1].peak, 0.5);  // only its sum is known
    EXPECT_DOUBLE_EQ(share_at(loads[0], lanes, Seconds{-1}), 0);
    EXPECT_DOUBLE_EQ(share_at(loads[0], lanes, Seconds{0}), 0.5);
    EXPECT_DOUBLE_EQ(share_at(loads[0], lanes, Seconds{0.0099}), 0.5);
    EXPECT_DOUBLE_EQ(share_at(loads[0], lanes, Seconds{0.012}), 1);
    EXPECT_DOUBLE_EQ(share_at(loads[0], lanes, Seconds{0.019}), 0);
    EXPECT_EQ(shares_of(loads, lanes, LoadOf::moment, Seconds{0.012}),
              (LinkShares{{{"node0:nic0:up", 0.5}}, {{"nic:up", {1, 4, false}}}}));
    const auto picture = link_loads_picture(loads, lanes, Seconds{0.005}, {600, 300}, Theme::light);
    EXPECT_GT(picture.marks.size(), 10U);
    EXPECT_THROW(link_loads_picture({loads[1]}, lanes, Seconds{0}, {600, 300}, Theme::light), InputError);
}

}  // namespace
}  // namespace rehearse::picture
