// SPDX-License-Identifier: Apache-2.0
// Steps of attention by a ring, of four ranks:
//
//   compute         [attend 0] [attend 1] [attend 2] [attend 3]
//   communication   [keys 1] . [keys 2] . [keys 3]
//   ... backward    [keys 1] . [keys 2][gradients 1] . [keys 3][gradients 2] . [gradients 3] . [gradients 4]
#include <fmt/format.h>

#include <utility>

#include "core/precision.hpp"
#include "schedule/layer_steps.hpp"

namespace rehearse::schedule {

int LayerSteps::handed_on(int i, Pass pass, RingTurn turn, bool again, std::vector<int> after) {
    const bool keys = turn.what == RingTurn::What::keys;
    const auto& op = std::get<Attention>(context_.layers()[at(i)].op);
    const Communicate action{
        .kind = CollectiveKind::halo,
        .axis = AxisIndex{axis_index(context_.schedule.mesh, "context")},
        .elements = context_.samples * 2 * ring_block(op),
        .type = compute_type(context_.schedule.precision),
        .algorithm = {.name = std::string{keys && turn.turn % 2 == 0 ? shift_second : shift_first}},
        .of = LayerIndex{i},
        .pass = pass,
        .micro_batch = context_.item.micro_batch};
    const std::string suffix =
        fmt::format("{}{}{}", pass == Pass::forward || !keys ? "" : ":backward", turn.turn, again ? ":again" : "");
    const int step =
        context_.append(context_.name_of(i, keys ? "keys" : "gradients", suffix),
                        communicator_stream(context_.schedule.mesh, action.axis), action, std::move(after));
    context_.steps.back().recomputed = again;
    return step;
}

// Keys come into the block that the turn before the last one has read; gradients are made in one that was sent two
// turns before. All layers share these blocks.
int LayerSteps::attend_in_turns(int i, Pass pass, bool again) {
    using enum RingTurn::What;
    const auto ranks = static_cast<int>(ring_of(context_.schedule, context_.part, i));
    std::vector<int> first = before(i, pass);
    first.push_back(context_.last_compute);
    std::vector<int> keys_by(at(ranks), none), gradients_by(at(ranks) + 1, none);
    for (const auto [what, turn] : ring_turns(pass, ranks)) {
        std::vector<int> after{context_.last_compute};
        if (what == keys) {
            if (turn == 1) after = first;
            keys_by[at(turn)] = handed_on(i, pass, {what, turn}, again, std::move(after));
        } else if (what == gradients) {
            if (turn == ranks) after_gradients_of_inputs(i, after);
            gradients_by[at(turn)] = handed_on(i, pass, {what, turn}, again, std::move(after));
        } else {
            if (turn == 0) after = first;
            if (turn == 0 && pass != Pass::forward) after.push_back(gradients_home_);
            after.push_back(keys_by[at(turn)]);
            if (turn > 1) after.push_back(gradients_by[at(turn) - 1]);
            const std::string suffix = (turn == 0 ? "" : fmt::format(":turn{}", turn)) + (again ? ":again" : "");
            context_.last_compute = computed_step(i, pass, suffix, again, std::move(after));
        }
    }
    if (pass != Pass::forward) gradients_home_ = gradients_by[at(ranks)];
    return gradients_by[at(ranks)];
}

}  // namespace rehearse::schedule
