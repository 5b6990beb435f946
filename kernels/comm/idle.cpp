// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/idle.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "core/looks.hpp"

namespace rehearse::kernels {

namespace {

using namespace std::chrono_literals;
using Nanoseconds = std::chrono::nanoseconds;

void nap(Nanoseconds time) {
    // The kernel may round sleeps up by 50 us, unless a thread asks for better.
    thread_local const int asked = prctl(PR_SET_TIMERSLACK, 1000UL);
    static_cast<void>(asked);
    const timespec pause{0, time.count()};  // less than a second
    nanosleep(&pause, nullptr);
}

/// Since it was first asked.
class Waited {
public:
    Nanoseconds operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (!start_) start_ = now;
        return now - *start_;
    }

private:
    std::optional<std::chrono::steady_clock::time_point> start_;
};

}  // namespace

Nanoseconds nap_beside(Nanoseconds waited) { return std::clamp<Nanoseconds>(waited / 8, 50us, 400us); }

Idle attentive() {
    return [looks = 0, waited = Waited{}]() mutable {
        const Nanoseconds pause = attentive_nap(waited());
        if (++looks % 20 == 0 || pause >= nap_at_each_look) nap(pause);
    };
}

Idle considerate() {
    return [waited = Waited{}]() mutable { nap(nap_beside(waited())); };
}

}  // namespace rehearse::kernels
