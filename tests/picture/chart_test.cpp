// SPDX-License-Identifier: Apache-2.0
// Where data come to stand, by algebra from the frame of the chart.
#include "picture/chart.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "picture/cells.hpp"
#include "picture/plane.hpp"
#include "picture/roofline.hpp"
#include "picture/scaling.hpp"
#include "picture/stairs.hpp"
#include "picture/text.hpp"

namespace rehearse::picture {
namespace {

template <typename Kind>
std::vector<const Mark*> marks_of(const Picture& picture) {
    std::vector<const Mark*> found;
    for (const Mark& mark : picture.marks) {
        if (std::holds_alternative<Kind>(mark.shape)) found.push_back(&mark);
    }
    return found;
}

// The last rectangle is the frame of the axes.
Box frame(const Picture& picture) {
    const auto& r = std::get<Rectangle>(marks_of<Rectangle>(picture).back()->shape);
    return {r.at.x, r.at.y, r.width, r.height};
}

std::vector<std::string> texts(const Picture& picture) {
    std::vector<std::string> found;
    for (const Mark* mark : marks_of<Text>(picture)) found.push_back(std::get<Text>(mark->shape).text);
    return found;
}

Chart roofline_like() {
    Chart chart;
    chart.title = "t";
    chart.x = {"x", Scale::log, Unit::intensity, Range{1, 100}, {}};
    chart.y = {"y", Scale::linear, Unit::flop_rate, Range{0, 8e9}, {}};
    return chart;
}

TEST(XyChart, PlacesDotsOnLinearAndLogarithmicAxes) {
    Chart chart = roofline_like();
    chart.series.push_back(
        {.name = "a", .points = {{10, 2e9}, {100, 8e9}, {0, 1e9}, {200, 1e9}}, .line = false, .titles = {"first"}});
    const Picture picture = xy_chart(chart);
    const Box box = frame(picture);
    const auto dots = marks_of<Circle>(picture);
    ASSERT_EQ(dots.size(), 2U);  // nothing at 0 on a logarithmic axis, nothing outside the frame
    const Point first = std::get<Circle>(dots[0]->shape).center;
    EXPECT_NEAR(first.x, box.left + box.width / 2, 1e-9);  // 10 is half way from 1 to 100
    EXPECT_NEAR(first.y, box.bottom() - box.height / 4, 1e-9);
    EXPECT_EQ(dots[0]->title, "first");
    EXPECT_EQ(dots[1]->title, "a");
    const Point second = std::get<Circle>(dots[1]->shape).center;
    EXPECT_NEAR(second.x, box.right(), 1e-9);
    EXPECT_NEAR(second.y, box.top, 1e-9);
    EXPECT_THAT(texts(picture), testing::IsSupersetOf({"t", "x", "y", "1 FLOP/B", "10 FLOP/B", "100 FLOP/B", "0 FLOP/s",
                                                       "2 GFLOP/s", "8 GFLOP/s"}));
}

TEST(XyChart, CutsLinesAtTheFrame) {
    Chart chart;
    chart.x.range = chart.y.range = Range{0, 10};
    chart.series.push_back({.points = {{-10, 5}, {20, 5}}, .dots = false, .width = 7});
    const Picture picture = xy_chart(chart);
    const Box box = frame(picture);
    for (const Mark* mark : marks_of<Path>(picture)) {
        if (!mark->stroke || mark->stroke->width != 7) continue;
        EXPECT_THAT(std::get<Path>(mark->shape).points,
                    testing::ElementsAre(Point{box.left, box.top + box.height / 2},
                                         Point{box.right(), box.top + box.height / 2}));
        return;
    }
    FAIL() << "no line";
}

TEST(XyChart, EveryMarkStaysInsideThePicture) {
    Chart chart = roofline_like();
    chart.subtitle = "what was measured, where and how";
    for (int i = 0; i < 9; ++i) {
        Series series{.name = "algorithm number " + std::to_string(i)};
        for (double x = 1; x <= 100; x *= 1.5) series.points.push_back({x, 1e9 * (i + x / 50)});
        for (const Point& point : series.points) {
            series.low.push_back(0.8 * point.y);
            series.high.push_back(1.2 * point.y);
        }
        chart.series.push_back(series);
    }
    const Size size{640, 420};
    const Picture picture = xy_chart(chart, size, Theme::dark);
    for (const Mark* mark : marks_of<Path>(picture)) {
        for (const Point& p : std::get<Path>(mark->shape).points) {
            EXPECT_TRUE(p.x >= 0 && p.x <= size.width && p.y >= 0 && p.y <= size.height) << p.x << ' ' << p.y;
        }
    }
    for (const Mark* mark : marks_of<Text>(picture)) {
        const auto& text = std::get<Text>(mark->shape);
        if (text.anchor != Anchor::start || text.rotation != 0) continue;
        EXPECT_LE(text.at.x + text_width(text.text, text.size, text.bold), size.width) << text.text;
    }
}

TEST(XyChart, WithNothingToShowIsAnInputError) {
    Chart chart;
    EXPECT_THROW(xy_chart(chart), InputError);
    chart.y.scale = Scale::log;
    chart.series.push_back({.points = {{1, 0}, {2, -1}, {3, std::numeric_limits<double>::quiet_NaN()}}});
    EXPECT_THROW(xy_chart(chart), InputError);
}

TEST(Labels, AlongALineHaveItsSlopeAndMakeRoomForEachOther) {
    Chart chart;
    chart.x.range = chart.y.range = Range{0, 10};
    chart.labels = {{{1, 1}, "first", Anchor::start, Point{9, 9}, {}},
                    {{1, 1}, "second", Anchor::start, Point{9, 9}, {}}};
    const Picture picture = xy_chart(chart);
    const Box box = frame(picture);
    const auto all = marks_of<Text>(picture);
    const auto& first = std::get<Text>(all.at(all.size() - 2)->shape);
    const auto& second = std::get<Text>(all.back()->shape);
    EXPECT_EQ(first.text, "first");
    EXPECT_EQ(second.text, "second");
    EXPECT_NEAR(std::tan(first.rotation * std::acos(-1.0) / 180), -box.height / box.width, 1e-9);
    EXPECT_EQ(first.rotation, second.rotation);
    EXPECT_GE(std::hypot(second.at.x - first.at.x, second.at.y - first.at.y), text_width("first", first.size));
}

TEST(Labels, ThatFindNoRoomAreLeftOut) {
    Chart chart;
    chart.x.range = chart.y.range = Range{0, 10};
    chart.labels = {{{5, 5}, "seen", Anchor::middle, {}, {}}, {{5, 5}, "hidden", Anchor::middle, {}, {}}};
    EXPECT_THAT(texts(xy_chart(chart)),
                testing::AllOf(testing::Contains("seen"), testing::Not(testing::Contains("hidden"))));
}

TEST(Labels, OfADotStandBesideIt) {
    Chart chart;
    chart.x.range = chart.y.range = Range{0, 10};
    chart.series.push_back({.points = {{5, 5}, {9.9, 2}}, .line = false, .radii = {4, 8}});
    chart.labels = {{{5, 5}, "right", Anchor::middle, {}, {}}, {{9.9, 2}, "left", Anchor::middle, {}, {}}};
    const Picture picture = xy_chart(chart);
    const Box box = frame(picture);
    const auto dots = marks_of<Circle>(picture);
    EXPECT_EQ(std::get<Circle>(dots.at(0)->shape).radius, 4);
    for (const Mark* mark : marks_of<Text>(picture)) {
        const auto& text = std::get<Text>(mark->shape);
        if (text.text == "right") {
            EXPECT_GT(text.at.x, box.left + box.width / 2 + 4);
        } else if (text.text == "left") {  // no room at the right
            EXPECT_LT(text.at.x, box.left + 0.99 * box.width - 8);
        }
    }
    EXPECT_THAT(texts(picture), testing::IsSupersetOf({"right", "left"}));
}

TEST(XyChart, SaysThousandsAsItSaysMillions) {
    Chart chart;
    chart.x = {"devices", Scale::log, Unit::none, Range{1e3, 1e6}, {}};
    chart.y.range = Range{0, 10};
    EXPECT_THAT(texts(xy_chart(chart)), testing::IsSupersetOf({"1000", "10 k", "100 k", "1 M"}));
}

// The steps of a band of 4 to 6 about 5, on an axis from 0 to 10; a band of one point is no area.
TEST(XyChart, BandOfASinglePointIsAWhisker) {
    Chart chart;
    chart.x.range = chart.y.range = Range{0, 10};
    chart.series.push_back({.points = {{5, 5}}, .low = {4}, .high = {6}});
    const Picture picture = xy_chart(chart);
    const Box box = frame(picture);
    const Path whisker{{{box.left + box.width / 2, box.bottom() - 0.4 * box.height},
                        {box.left + box.width / 2, box.bottom() - 0.6 * box.height}}};
    const auto paths = marks_of<Path>(picture);
    const auto found = std::ranges::find_if(paths, [&](const Mark* mark) {
        const auto& points = std::get<Path>(mark->shape).points;
        return points.size() == 2 && std::abs(points[0].y - whisker.points[0].y) < 1e-9 &&
               std::abs(points[1].y - whisker.points[1].y) < 1e-9;
    });
    EXPECT_NE(found, paths.end());
}

// A thousand dots on a curve of 700 points do not cover it: they are as wide as the curve, without an edge of the
// ground's colour. Ten dots are as large as ever.
TEST(XyChart, DenseDotsDoNotHideTheCurve) {
    const auto dot_of = [](int points) {
        Chart chart;
        chart.series.push_back({.name = "a"});
        for (int i = 0; i < points; ++i) chart.series[0].points.push_back({1.0 * i, 1});
        return *marks_of<Circle>(xy_chart(chart)).front();
    };
    EXPECT_EQ(std::get<Circle>(dot_of(10).shape).radius, 4);
    EXPECT_TRUE(dot_of(10).stroke);
    EXPECT_LE(std::get<Circle>(dot_of(1000).shape).radius, 1);
    EXPECT_FALSE(dot_of(1000).stroke);
}

TEST(XyChart, LongNamesInTheLegendAreCut) {
    const std::string name(400, 'n');
    Chart chart;
    chart.series = {{.name = name, .points = {{1, 1}, {2, 2}}}, {.name = "b", .points = {{1, 1}}}};
    const Picture picture = xy_chart(chart, {600, 400});
    const auto all = marks_of<Text>(picture);
    const auto entry = std::ranges::find(all, name, &Mark::title);
    ASSERT_NE(entry, all.end());
    const auto& text = std::get<Text>((*entry)->shape);
    EXPECT_LE(text.at.x + text_width(text.text, text.size), 600);
    EXPECT_THAT(text.text, testing::EndsWith("…"));
}

// A curve that begins an hour after zero and lasts 2 ms.
TEST(XyChart, TellsLateTimesApart) {
    Chart chart;
    chart.x.unit = Unit::seconds;
    chart.series.push_back({.points = {{3600, 0}, {3600.002, 1}}});
    EXPECT_THAT(texts(xy_chart(chart)), testing::IsSupersetOf({"3600.0000 s", "3600.0005 s"}));
}

TEST(Scaling, ShowsEfficienciesAboveTheUsualAndWhatPerfectWouldBe) {
    const ScalingCurve curve{"c", {{1, 1, 1, 1, 100, 1}, {2, 0.5, 0.5, 0.5, 200, 1.5}, {4, 9, 9, 9, 10, {}, false}}};
    const Chart chart = scaling_chart({curve}, ScalingMetric::efficiency, "t");
    EXPECT_GE(chart.y.range->high, 1.5);
    EXPECT_EQ(chart.series.at(0).points.size(), 2U);
    const Series& perfect = chart.series.back();
    EXPECT_FALSE(perfect.dash.empty());
    EXPECT_THAT(perfect.points, testing::ElementsAre(Point{1, 1}, Point{2, 1}, Point{4, 1}));
    for (const Series& series : chart.series) {  // of what does not fit there is no efficiency
        for (const Point& point : series.points) EXPECT_NE(point.y, 0);
    }
    EXPECT_THAT(title_of(curve, curve.points[1]), testing::HasSubstr("efficiency 150.0 %"));
    EXPECT_THAT(title_of(curve, curve.points[2]), testing::Not(testing::HasSubstr("efficiency")));
    // 100 samples a step of 1 s, and of 0.5 s on twice as many devices: perfect is 0.5 s.
    EXPECT_EQ(scaling_chart({curve}, ScalingMetric::step, "t").series.back().points.at(1).y, 0.5);
    EXPECT_EQ(
        scaling_chart({{"c", {{1, 1, 1, 1, 100, 1}, {2, 1, 1, 1, 200, 1}}}}, ScalingMetric::efficiency, "t").y.range,
        (Range{0, 1.2}));
}

// The bands of 4 devices reach from 0.5 to 2 times the efficiency of 0.8: to 160 %. Two are the baseline, whose own
// efficiency is 1 whatever its step takes; perfect are 100 samples a second of each device, as its are, on all sizes.
TEST(Scaling, BandsOfEfficienciesAreInSightAndTheBaselineHasNone) {
    const ScalingCurve curve{"c",
                             {{1, 1, 0.5, 2, 110, 1.1}, {2, 1, 0.5, 2, 200, 1, true, true}, {4, 1, 0.5, 2, 320, 0.8}}};
    const Chart chart = scaling_chart({curve}, ScalingMetric::efficiency, "t");
    EXPECT_GE(chart.y.range->high, 2.2);
    EXPECT_THAT(chart.series.at(0).high, testing::ElementsAre(2.2, 1, 1.6));
    EXPECT_THAT(chart.series.at(0).low, testing::ElementsAre(0.55, 1, 0.4));
    const Series perfect = scaling_chart({curve}, ScalingMetric::throughput, "t").series.back();
    ASSERT_EQ(perfect.points.size(), 3U);
    for (const Point& point : perfect.points) EXPECT_DOUBLE_EQ(point.y, 100 * point.x);
}

// A hundred thousand values of 1 with one peak of 9.
TEST(Stairs, OfManyValuesKeepThePeak) {
    Counter counter{"c", "bytes", {}};
    for (int i = 0; i < 100'000; ++i) counter.points.emplace_back(Seconds{1.0 * i}, i == 51'234 ? 18 : 2);
    const std::vector<Point> stairs = stairs_of(counter, 2);
    EXPECT_LT(stairs.size(), 20'000U);
    EXPECT_EQ(std::ranges::max_element(stairs, {}, &Point::y)->y, 9);
    EXPECT_EQ(stairs.back(), (Point{99'999, 1}));
    EXPECT_THAT(stairs_of({"c", "bytes", {{Seconds{0}, 1}, {Seconds{2}, 3}}}),
                testing::ElementsAre(Point{0, 1}, Point{2, 1}, Point{2, 3}));
}

TEST(Clipped, ByHand) {
    const Box box{0, 0, 10, 10};
    EXPECT_EQ(clipped({1, 1}, {2, 2}, box), std::pair(Point{1, 1}, Point{2, 2}));
    EXPECT_EQ(clipped({-5, 5}, {5, 5}, box), std::pair(Point{0, 5}, Point{5, 5}));
    EXPECT_EQ(clipped({-5, -5}, {15, 15}, box), std::pair(Point{0, 0}, Point{10, 10}));
    EXPECT_EQ(clipped({-1, 5}, {-1, 6}, box), std::nullopt);
    EXPECT_EQ(clipped({-6, 5}, {5, -6}, box), std::nullopt);  // past the corner
    EXPECT_EQ(clipped({3, 3}, {3, 3}, box), std::pair(Point{3, 3}, Point{3, 3}));
}

TEST(CellsChart, ColoursTheWinnerAndNamesTheRest) {
    Cells cells{"title", "", "shape", "filter", {"r1", "r2"}, {"1", "3", "5"}, {"direct", "fft"}, {}};
    cells.cells = {{{0, 1, "10", "", "tip"}, {1, 1, "20", "x 2", ""}, {{}, 1, "", "", ""}}, {{0, 1, "1", "", ""}}};
    const Picture picture = cells_chart(cells);
    const auto areas = marks_of<Rectangle>(picture);
    ASSERT_EQ(areas.size(), 1U + 2U + 4U);  // the ground, two in the legend, four cells
    const Palette& colors = palette(Theme::light);
    EXPECT_EQ(areas[3]->fill, colors.series[0]);
    EXPECT_EQ(areas[3]->title, "tip");
    EXPECT_EQ(areas[4]->fill, colors.series[1]);
    EXPECT_EQ(areas[5]->fill, colors.grid);
    EXPECT_THAT(texts(picture),
                testing::IsSupersetOf({"title", "shape", "filter", "r1", "r2", "direct", "fft", "x 2"}));
    const auto& last = std::get<Rectangle>(areas[6]->shape);
    EXPECT_LT(last.at.y + last.height, picture.height);
}

// 100 GFLOP/s and 10 and 100 GB/s meet at 10 and 1 operations a byte: there the slopes end and the flat begins.
TEST(Roofline, SlopesAndFlatsMeetAtTheirRidges) {
    Chart chart;
    chart.series.push_back({.name = "dots", .points = {{50, 9e10}}, .line = false});
    const std::vector<Roof> roofs{{"f32", 1e11, false, true},
                                  {"f64", 5e10, false, false},
                                  {"L1", 1e11, true, true},
                                  {"memory", 1e10, true, true}};
    add_roofs(chart, roofs, palette(Theme::light));
    ASSERT_EQ(chart.series.size(), 5U);
    const auto& flat = chart.series[1].points;
    EXPECT_DOUBLE_EQ(flat[0].x, 1);
    EXPECT_DOUBLE_EQ(flat[0].y, 1e11);
    EXPECT_DOUBLE_EQ(flat[1].y, 1e11);
    EXPECT_TRUE(chart.series[1].dash.empty());
    EXPECT_DOUBLE_EQ(chart.series[2].points[0].x, 0.5);  // of what no dot has: dashed
    EXPECT_FALSE(chart.series[2].dash.empty());
    const auto& memory = chart.series[4].points;
    EXPECT_DOUBLE_EQ(memory[0].y / memory[0].x, 1e10);
    EXPECT_DOUBLE_EQ(memory[1].x, 10);
    EXPECT_DOUBLE_EQ(memory[1].y, 1e11);
    EXPECT_LE(chart.x.range->low, 0.25);
    EXPECT_GE(chart.x.range->high, 150);  // behind the dot
    EXPECT_GE(chart.y.range->high, 2e11);
    EXPECT_EQ(chart.labels[3].text, "memory 10 GB/s");
    EXPECT_GT(xy_chart(chart).marks.size(), 20U);
    add_roofs(chart, {}, palette(Theme::light));
    EXPECT_EQ(chart.series.size(), 5U);
}

}  // namespace
}  // namespace rehearse::picture
