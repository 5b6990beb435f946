// SPDX-License-Identifier: Apache-2.0
// What the certificate says against a timeline.
#pragma once

#include <stdexcept>
#include <string>

#include "sim/check/certificate.hpp"

namespace rehearse::sim::test {

/// "nothing" where it passes.
inline std::string refusal(const Timeline& timeline, const Schedule& schedule, const Machine& machine) {
    const Wiring wiring{machine};
    const Steps steps{schedule, wiring, nominal};
    try {
        certify(timeline, steps, wiring);
    } catch (const std::logic_error& error) {
        return error.what();
    }
    return "nothing";
}

}  // namespace rehearse::sim::test
