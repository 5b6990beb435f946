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

void LagMethod::visit_state(const UseNumbers& use) {
    use(rank_.tensors.gradients());
    auto begun = static_cast<float>(begun_);  // exact to 2^24
    use({&begun, 1});
    begun_ = static_cast<std::int64_t>(begun);
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
