// SPDX-License-Identifier: Apache-2.0
// What SimGrid 3.32 to 4 call differently: SimGrid 4 adds hosts, links and actors where 3 created them. Chosen by what
// a type has, not by version numbers, as both names live side by side for a while.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse::sim {

/// A host of a zone that computes `flops` operations a second, not sealed yet.
template <class Zone>
auto* host_in(Zone& zone, const std::string& name, double flops) {
    const std::vector<double> speeds{flops};
    if constexpr (requires { zone.add_host(name, speeds); }) {
        return zone.add_host(name, speeds);
    } else {
        return zone.create_host(name, speeds);
    }
}

/// A link of a zone that carries `bandwidth` bytes a second, not sealed yet.
template <class Zone>
auto* link_in(Zone& zone, const std::string& name, double bandwidth) {
    const std::vector<double> rates{bandwidth};
    if constexpr (requires { zone.add_link(name, rates); }) {
        return zone.add_link(name, rates);
    } else {
        return zone.create_link(name, rates);
    }
}

/// Starts `code` as an actor on a host: by the host since 4.1, by the engine in 4.0, by the class of actors before.
template <class Engine, class Actor, class Host, class Code>
void start_on(Host* host, const std::string& name, Code code) {
    if constexpr (requires { host->add_actor(name, code); }) {
        host->add_actor(name, std::move(code));
    } else if constexpr (requires { Engine::add_actor(name, host, code); }) {
        Engine::add_actor(name, host, std::move(code));
    } else {
        Actor::create(name, host, std::move(code));
    }
}

}  // namespace rehearse::sim
