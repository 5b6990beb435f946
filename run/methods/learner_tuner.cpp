// SPDX-License-Identifier: Apache-2.0
#include "run/methods/learner_tuner.hpp"

namespace rehearse::run {

std::string_view to_string(Tuning tuning) {
    switch (tuning) {
        case Tuning::add:
            return "add";
        case Tuning::remove:
            return "remove";
        case Tuning::stay:
            return "stay";
    }
    return "?";
}

Tuning LearnerTuner::move(Tuning tuning) {
    learners_ += tuning == Tuning::add ? 1 : tuning == Tuning::remove ? -1 : 0;
    return tuning;
}

Tuning LearnerTuner::measured(double samples_per_s) {
    const auto go_on = [&](Tuning tuning) {  // in a direction, as long as there are learners there
        const bool possible = tuning == Tuning::add ? learners_ < most_ : learners_ > 1;
        settled_.reset();
        tried_ = possible ? tuning : Tuning::stay;
        before_ = samples_per_s;
        if (!possible) settled_ = samples_per_s;
        return move(tried_);
    };
    if (tried_ != Tuning::stay) {
        const bool keeps =
            tried_ == Tuning::add ? samples_per_s >= (1 + gain_) * before_ : (1 + gain_) * samples_per_s >= before_;
        if (keeps) return go_on(tried_);
        settled_ = before_;
        const Tuning back = tried_ == Tuning::add ? Tuning::remove : Tuning::add;
        tried_ = Tuning::stay;
        return move(back);
    }
    if (!settled_) return go_on(Tuning::add);
    if ((1 + gain_) * samples_per_s < *settled_) return go_on(Tuning::remove);
    if (samples_per_s > (1 + gain_) * *settled_) return go_on(Tuning::add);
    return Tuning::stay;
}

}  // namespace rehearse::run
