// SPDX-License-Identifier: Apache-2.0
#include "run/steps/layer_messages.hpp"

#include "run/pieces.hpp"
#include "run/steps/halo.hpp"

namespace rehearse::run {

void LayerMessages::prepare(ReadyStep& ready, const Communicate& communicate) {
    if (communicate.kind == CollectiveKind::halo) {
        return prepare_halo(rank_, gradients_, joints_[at(communicate.layer())], ready, communicate);
    }
    if (communicate.kind == CollectiveKind::all_to_all) return prepare_exchange(ready, communicate);
    if (communicate.kind != CollectiveKind::all_reduce) return prepare_pieces(ready, communicate);
    const LayerTensors own = rank_.tensors.layer(communicate.layer(), communicate.micro_batch);
    if (communicate.pass == Pass::forward) {
        ready.data = own.output;
    } else {
        ready.data = own.diff;
        gradients_.pass_on(ready, communicate.layer(), communicate.micro_batch);
    }
}

// all_gather joins the ranks' pieces, reduce_scatter adds the ranks' wholes and leaves each its piece; forward from the
// input's output to the layer's, backward from the layer's gradient to the input's.
void LayerMessages::prepare_pieces(ReadyStep& ready, const Communicate& communicate) {
    const Layer& layer = rank_.part().network.layers[at(communicate.layer())];
    const Joint joint = joint_of(std::get<Communication>(layer.op), rank_.micro_batch());
    const bool forward = communicate.pass == Pass::forward, gathers = communicate.kind == CollectiveKind::all_gather;
    const LayerTensors own = rank_.tensors.layer(communicate.layer(), communicate.micro_batch);
    const int input = layer.inputs.front();
    const kernels::ConstView from = forward ? rank_.tensors.layer(input, communicate.micro_batch).output : own.diff;
    const std::size_t size = at(joint.outer * joint.inner);
    ready.data = room(joints_[at(communicate.layer())], at(joint.parts) * size, from.type());
    const auto place = [data = ready.data, size](std::int64_t part) { return data.subspan(at(part) * size, size); };
    const std::int64_t coordinate = rank_.coordinates[at(communicate.axis)];
    if (gathers) {
        ready.before = [from, to = place(coordinate)] { copy(from, to); };
    } else {
        ready.before = [joint, from, place] {
            for (std::int64_t part = 0; part < joint.parts; ++part) take(joint, part, from, place(part));
        };
    }
    const kernels::View to =
        forward ? own.output : gradients_.give_received(ready, communicate.layer(), 0, communicate.micro_batch);
    if (gathers) {
        ready.after = [joint, data = ready.data, to] { join(joint, data, to); };
    } else {
        ready.after = [mine = place(coordinate), to] { copy(mine, to); };
    }
}

// Piece after piece to its rank, and what comes from each rank into its place: of a layer's input's output to its own
// forward, of its gradient to its input's backward, when the samples of a rank become those of all again.
void LayerMessages::prepare_exchange(ReadyStep& ready, const Communicate& communicate) {
    const Layer& layer = rank_.part().network.layers[at(communicate.layer())];
    const Joint joint = joint_of(std::get<Communication>(layer.op), rank_.micro_batch());
    const bool forward = communicate.pass == Pass::forward;
    const LayerTensors own = rank_.tensors.layer(communicate.layer(), communicate.micro_batch);
    const kernels::ConstView from =
        forward ? rank_.tensors.layer(layer.inputs.front(), communicate.micro_batch).output : own.diff;
    const std::size_t size = at(joint.outer * joint.inner), all = at(joint.parts) * size;
    const kernels::View both = room(joints_[at(communicate.layer())], 2 * all, from.type());
    ready.data = both.first(all);
    const kernels::View come = both.subspan(all, all);
    ready.room = {static_cast<std::byte*>(come.bytes()), come.size_bytes()};
    ready.before = [joint, from, size, data = ready.data] {
        for (std::int64_t part = 0; part < joint.parts; ++part) {
            take(joint, part, from, data.subspan(at(part) * size, size));
        }
    };
    const kernels::View to =
        forward ? own.output : gradients_.give_received(ready, communicate.layer(), 0, communicate.micro_batch);
    ready.after = [joint, come, to] { join(joint, come, to); };
}

void LayerMessages::prepare(ReadyStep& ready, const Send& send) const {
    const LayerTensors own = rank_.tensors.layer(send.layer, send.micro_batch);
    ready.data = movement(send.layer) == Movement::send ? own.output : own.diff;
}

void LayerMessages::prepare(ReadyStep& ready, const Recv& recv) {
    const LayerTensors own = rank_.tensors.layer(recv.layer, recv.micro_batch);
    ready.data = movement(recv.layer) == Movement::receive ? own.output : own.diff;
    if (movement(recv.layer) == Movement::send) gradients_.pass_on(ready, recv.layer, recv.micro_batch);
}

Movement LayerMessages::movement(int layer) const {
    return std::get<Communication>(rank_.part().network.layers[at(layer)].op).movement;
}

}  // namespace rehearse::run
