// SPDX-License-Identifier: Apache-2.0
#include "predict/other_software.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/schedule.hpp"
#include "prices/prices.hpp"

namespace rehearse::predict {

namespace {

// calibrate writes which backend it measured; one made of a profile says so (calibrate/recorded_prices.cpp).
bool is_own(const Measured& measured) {
    constexpr std::array<std::string_view, 3> backends{"(onednn)", "(cpu)", "(reference)"};
    return std::ranges::any_of(backends, [&](std::string_view name) { return measured.source.ends_with(name); });
}

double own_share(const Setup& setup) {
    const DeviceClass& device = setup.machine.classes.front();
    Seconds own, all;
    for (const Step& step : setup.schedule.classes.front().steps) {
        const Problem* problem = problem_of(step);
        if (problem == nullptr) continue;
        const Seconds time = price(*problem, device).time;
        const auto found = device.measured.find(to_string(*problem));
        all += time;
        if (found != device.measured.end() && is_own(found->second)) own += time;
    }
    return all > Seconds{} ? own / all : 0;
}

}  // namespace

OtherSoftware other_software(const Prediction& prediction, bool foreign, bool sockets) {
    const Setup& setup = prediction.setup;
    if (!foreign || setup.anchor) return {};
    const bool several_nodes = setup.devices > 1 && locate(setup.machine, setup.devices - 1).node > 0;
    const Messaging& messaging = several_nodes ? setup.machine.across : setup.machine.inside;
    const std::string& source = messaging.overhead.source;
    const bool measured = source.starts_with("measured") && source.find("sockets") == std::string::npos;
    return {own_share(setup), sockets && setup.devices > 1 && class_of(setup.machine, 0).host && measured};
}

}  // namespace rehearse::predict
