// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/idle.hpp"

#include <sys/prctl.h>

#include <ctime>

namespace rehearse::kernels {

namespace {

void nap(long nanoseconds) {
    // The kernel may round sleeps up by 50 us, unless a thread asks for better.
    thread_local const int asked = prctl(PR_SET_TIMERSLACK, 1000UL);
    static_cast<void>(asked);
    const timespec pause{0, nanoseconds};
    nanosleep(&pause, nullptr);
}

}  // namespace

Idle attentive() {
    return [looks = 0]() mutable {
        if (++looks % 20 == 0) nap(1'000);
    };
}

Idle considerate() {
    return [] { nap(50'000); };
}

}  // namespace rehearse::kernels
