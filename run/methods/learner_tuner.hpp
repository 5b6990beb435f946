// SPDX-License-Identifier: Apache-2.0
// Crossbow's auto-tuner (Koliousis et al. 2019, section 3.4): how many learners a device trains, found while they
// train, by what they come to.
#pragma once

#include <optional>
#include <string_view>

namespace rehearse::run {

/// What follows from a measurement.
enum class Tuning { add, remove, stay };
std::string_view to_string(Tuning tuning);

/// Climbs from its first number of learners: one is added as long as that gains `gain` of the samples a second, and
/// taken back where it did not. Then it stays, until these change by more than `gain` (other programs came or went):
/// when there are fewer it tries one learner less, and keeps to that where it comes to as many; when there are more it
/// tries one more.
class LearnerTuner {
public:
    LearnerTuner(int learners, int most, double gain) : learners_(learners), most_(most), gain_(gain) {}

    int learners() const { return learners_; }
    /// Samples a second that this many learners came to; learners() follows the answer.
    Tuning measured(double samples_per_s);

private:
    Tuning move(Tuning tuning);

    int learners_, most_;
    double gain_;
    Tuning tried_ = Tuning::stay;  // by which it came to be at this number, if that is not sure yet
    double before_ = 0;            // samples a second before that
    std::optional<double> settled_;
};

}  // namespace rehearse::run
