// SPDX-License-Identifier: Apache-2.0
#include "run/rank_context.hpp"

#include "core/precision.hpp"
#include "run/pieces.hpp"

namespace rehearse::run {

RankContext::RankContext(const Schedule& of, RankIndex number, const KernelSelection& selection, std::uint64_t seed,
                         const Hyperparameters& with)
    : schedule(of),
      rank_class(of.classes.at(at(class_of(of, number)))),
      rank(number),
      coordinates(places_on(of.mesh, number)),
      device(selection.device),
      hyperparameters(with),
      kernels(schedule, rank_class, selection),
      tensors(schedule, rank_class, number, kernels.forward_backends(), seed, selection.device),
      scale(scales_loss(schedule.precision), with.loss_scale, with.growth_interval) {}

Range RankContext::own_piece(int bucket) const {
    const Bucket& of = part().buckets[at(bucket)];
    const std::int64_t ranks = size_of(schedule.mesh, of.axis);
    return Collective{CollectiveKind::reduce_scatter, {}, {ranks, ranks}, of.elements}.chunk(
        place_on(schedule.mesh, of.axis, rank));
}

}  // namespace rehearse::run
