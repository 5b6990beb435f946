// SPDX-License-Identifier: Apache-2.0
#include "run/methods/lag.hpp"

#include <utility>

#include "core/methods/lag.hpp"

namespace rehearse::run {

void LagMethod::begin_step() {
    rank_.tensors.keep_gradients();
    rank_.scale.set_applied(std::exchange(made_scale_, rank_.scale.now()));
    ++begun_;
}

void LagMethod::save(ProgramState& state) const {
    state.begun = begun_;
    state.made_scale = made_scale_;
}

void LagMethod::restore(const ProgramState& state) {
    begun_ = state.begun;
    if (rank_.scale.on()) made_scale_ = state.made_scale;
}

extern const MethodRow lag;  // a row of methods.cpp
constinit const MethodRow lag{.name = "lag",
                              .used = [](const Schedule& s) { return s.methods.get<Lag>().steps > 0; },
                              .make = make_method<LagMethod>};

}  // namespace rehearse::run
