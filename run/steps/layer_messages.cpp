// SPDX-License-Identifier: Apache-2.0
// Steps that send: sums, pieces and whole tensors, made ready.
#include "run/program.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "kernels/comm/reduction.hpp"
#include "kernels/convert.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

namespace {

/// Memory of its own for so many elements.
kernels::View room(std::vector<std::byte>& bytes, std::size_t count, DataType type) {
    bytes.resize(count * static_cast<std::size_t>(size_of(type).value));
    return {bytes.data(), count, type};
}

}  // namespace

void Program::prepare(ReadyStep& ready, const Communicate& communicate) {
    if (communicate.bucket >= 0) return prepare_bucket(ready, communicate);
    if (communicate.kind == CollectiveKind::halo) return prepare_halo(ready, communicate);
    if (communicate.kind == CollectiveKind::all_to_all) return prepare_exchange(ready, communicate);
    if (communicate.kind != CollectiveKind::all_reduce) return prepare_pieces(ready, communicate);
    const LayerTensors own = tensors_->layer(communicate.layer, communicate.micro_batch);
    if (communicate.pass == Pass::forward) {
        ready.data = own.output;
    } else {
        ready.data = own.diff;
        pass_on(ready, communicate.layer, communicate.micro_batch);
    }
}

// all_gather joins the ranks' pieces, reduce_scatter adds the ranks' wholes and leaves each its piece; forward from the
// input's output to the layer's, backward from the layer's gradient to the input's.
void Program::prepare_pieces(ReadyStep& ready, const Communicate& communicate) {
    const Layer& layer = part().network.layers[at(communicate.layer)];
    const Joint joint = joint_of(std::get<Communication>(layer.op), micro_batch_size(schedule_, rank_class_));
    const bool forward = communicate.pass == Pass::forward, gathers = communicate.kind == CollectiveKind::all_gather;
    const LayerTensors own = tensors_->layer(communicate.layer, communicate.micro_batch);
    const int input = layer.inputs.front();
    const kernels::ConstView from = forward ? tensors_->layer(input, communicate.micro_batch).output : own.diff;
    const std::size_t size = at(joint.outer * joint.inner);
    ready.data = room(joints_[at(communicate.layer)], at(joint.parts) * size, from.type());
    const auto place = [data = ready.data, size](std::int64_t part) { return data.subspan(at(part) * size, size); };
    const std::int64_t coordinate = coordinates_[at(communicate.axis)];
    if (gathers) {
        ready.before = [from, to = place(coordinate)] { copy(from, to); };
    } else {
        ready.before = [joint, from, place] {
            for (std::int64_t part = 0; part < joint.parts; ++part) take(joint, part, from, place(part));
        };
    }
    const kernels::View to =
        forward ? own.output : room_for_gradient(ready, communicate.layer, communicate.micro_batch);
    if (gathers) {
        ready.after = [joint, data = ready.data, to] { join(joint, data, to); };
    } else {
        ready.after = [mine = place(coordinate), to] { copy(mine, to); };
    }
}

// Piece after piece to its rank, and what comes from each rank into its place: of a layer's input's output to its own
// forward, of its gradient to its input's backward, when the samples of a rank become those of all again.
void Program::prepare_exchange(ReadyStep& ready, const Communicate& communicate) {
    const Layer& layer = part().network.layers[at(communicate.layer)];
    const Joint joint = joint_of(std::get<Communication>(layer.op), micro_batch_size(schedule_, rank_class_));
    const bool forward = communicate.pass == Pass::forward;
    const LayerTensors own = tensors_->layer(communicate.layer, communicate.micro_batch);
    const kernels::ConstView from =
        forward ? tensors_->layer(layer.inputs.front(), communicate.micro_batch).output : own.diff;
    const std::size_t size = at(joint.outer * joint.inner), all = at(joint.parts) * size;
    const kernels::View both = room(joints_[at(communicate.layer)], 2 * all, from.type());
    ready.data = both.first(all);
    const kernels::View come = both.subspan(all, all);
    ready.room = {static_cast<std::byte*>(come.bytes()), come.size_bytes()};
    ready.before = [joint, from, size, data = ready.data] {
        for (std::int64_t part = 0; part < joint.parts; ++part) {
            take(joint, part, from, data.subspan(at(part) * size, size));
        }
    };
    const kernels::View to =
        forward ? own.output : room_for_gradient(ready, communicate.layer, communicate.micro_batch);
    ready.after = [joint, come, to] { join(joint, come, to); };
}

// The gradient of a Communication's input: where it lies, or, when another reader of that input has given to it, memory
// beside it, to be added.
kernels::View Program::room_for_gradient(ReadyStep& ready, int layer, int micro_batch) {
    const int stored = tensors_->diff_stored_as(part().network.layers[at(layer)].inputs.front());
    const kernels::View diff = tensors_->layer(stored, micro_batch).diff;
    if (diff.empty() || has_gradient_.insert({stored, micro_batch}).second) return diff;
    const kernels::View beside = room(beside_[at(layer)], diff.size(), diff.type());
    ready.additions.push_back({diff, beside});
    return beside;
}

void Program::prepare_bucket(ReadyStep& ready, const Communicate& communicate) {
    if (communicate.content != Content::usual) return prepare_own_way(ready, communicate);
    const BucketTensors& bucket = tensors_->bucket(communicate.bucket);
    if (communicate.axis == part().buckets[at(communicate.bucket)].tie) return prepare_tie(ready, communicate);
    const bool weights = communicate.kind == CollectiveKind::all_gather;
    ready.data = weights ? bucket.read() : bucket.applied;
    const kernels::View kept = ready.data;
    if (device_ != nullptr) stage(ready);
    if (!weights && kept.type() == communicate.type) ready.on_device = kept;
    if (!weights) send_as(ready, communicate.type);
    require(ready.data.type() == communicate.type, "what is sent is of the type that is sent");
    const auto sum = sums_.find(communicate.bucket);
    if (communicate.kind != CollectiveKind::reduce_scatter || sum == sums_.end()) return;
    const Range own = own_piece(communicate.bucket);
    const kernels::View mine = kept.subspan(at(own.begin), at(own.end - own.begin));
    const kernels::View so_far{sum->second.data(), mine.size(), mine.type()};
    if (communicate.micro_batch > 0) ready.additions.push_back({so_far, mine});
    if (communicate.micro_batch == 0) ready.additions.push_back({so_far, mine, true});
    if (communicate.micro_batch + 1 == schedule_.micro_batches) ready.additions.push_back({mine, so_far, true});
}

// The host sends what it has of a device's memory in memory of its own; both copies run beside the device's kernels.
void Program::stage(ReadyStep& ready) {
    const kernels::View there = ready.data;
    staging_.push_back(device_->allocate_staging(there.size_bytes()));
    const kernels::View here{staging_.back().get(), there.size(), there.type()};
    ready.data = here;
    ready.before = [this, there, here] { device_->copy_beside(here.bytes(), there.bytes(), here.size_bytes()); };
    ready.after = [this, there, here] { device_->copy_beside(there.bytes(), here.bytes(), here.size_bytes()); };
}

// The gradient of a table that another stage has, too: its first elements, as the table's owner has them.
void Program::prepare_tie(ReadyStep& ready, const Communicate& communicate) {
    ready.data = tensors_->bucket(communicate.bucket).applied.first(at(communicate.elements));
    const int layer = part().buckets[at(communicate.bucket)].layers.front();
    if (!part().origins[at(layer)].transposed) return send_as(ready, communicate.type);
    const kernels::View kept = ready.data;
    ready.data = room(sent_[at(communicate.bucket)], kept.size(), communicate.type);
    // Here it lies {width, words}.
    const Shape shape = weights(part().network.layers[at(layer)].op).front().shape;
    ready.before = [kept, sent = ready.data, width = shape[0]] {
        assign(sent, transposed<float>(floats_of(kept), width));
    };
    ready.after = [kept, sent = ready.data, words = shape[1]] {
        assign(kept, transposed<float>(floats_of(sent), words));
    };
}

// Gradients that are kept in another type are rounded to what is sent, and the sums taken back.
void Program::send_as(ReadyStep& ready, DataType type) {
    const kernels::View kept = ready.data;
    if (type == kept.type()) return;
    const kernels::View sent = room(sent_[at(std::get<Communicate>(ready.step->action).bucket)], kept.size(), type);
    ready.data = sent;
    ready.before = [kept, sent, first = std::move(ready.before)] {
        if (first) first();
        kernels::convert(kept, sent);
    };
    ready.after = [kept, sent, last = std::move(ready.after)] {
        kernels::convert(sent, kept);
        if (last) last();
    };
}

void Program::prepare(ReadyStep& ready, const Send& send) {
    const LayerTensors own = tensors_->layer(send.layer, send.micro_batch);
    ready.data = movement(send.layer) == Movement::send ? own.output : own.diff;
}

void Program::prepare(ReadyStep& ready, const Recv& recv) {
    const LayerTensors own = tensors_->layer(recv.layer, recv.micro_batch);
    ready.data = movement(recv.layer) == Movement::receive ? own.output : own.diff;
    if (movement(recv.layer) == Movement::send) pass_on(ready, recv.layer, recv.micro_batch);
}

}  // namespace rehearse::run
