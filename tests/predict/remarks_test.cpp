// SPDX-License-Identifier: Apache-2.0
// What is said beside the figures. Oracle: the figures themselves, given by hand.
#include "predict/remarks.hpp"

#include <gmock/gmock.h>

namespace rehearse::predict {
namespace {

using namespace rehearse::literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Point point(std::int64_t devices, Bytes peak, Bytes capacity) {
    Point made;
    made.figures.devices = devices;
    made.memory = {peak, capacity, peak <= capacity};
    return made;
}

TEST(Remarks, NameTheNumbersOfDevicesThatAJobDoesNotFitOn) {
    EXPECT_THAT(memory_warnings({point(6, 12_GB, 16_GB)}), IsEmpty());
    EXPECT_THAT(memory_warnings({point(2, 40_GB, 16_GB), point(4, 20_GB, 16_GB), point(8, 10_GB, 16_GB)}),
                ElementsAre(HasSubstr("does not fit on 2, 4 devices: a device has 16 GB and would take 40 GB")));
}

TEST(Remarks, SayWhatWouldExplainAPilot) {
    Prediction prediction;
    EXPECT_THAT(pilot_warnings(prediction), IsEmpty());
    ComparedPilot pilot{.devices = 6, .measured = 2_s, .predicted = 1_s};
    pilot.likely = {Seconds{0.5}, 3_s};
    pilot.computation = 2;
    pilot.met = 2_s;
    prediction.pilots = {pilot};
    EXPECT_THAT(pilot_warnings(prediction), IsEmpty()) << "within the band, and met";
    prediction.pilots.front().likely.high = Seconds{1.5};
    EXPECT_THAT(pilot_warnings(prediction),
                ElementsAre(AllOf(HasSubstr("the pilot of 6 devices, 2 s a step, lies outside the 99 % band"),
                                  HasSubstr("computation 2 times as slow as priced"))));
    prediction.pilots.front().likely.high = 3_s;
    prediction.pilots.front().met = Seconds{2.5};
    EXPECT_THAT(pilot_warnings(prediction),
                ElementsAre(HasSubstr("no scale of computation meets the pilot of 6 devices, 2 s a step: communication "
                                      "and waiting alone take longer; the nearest, 2, gives 2.5 s")));
}

}  // namespace
}  // namespace rehearse::predict
