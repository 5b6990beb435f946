// SPDX-License-Identifier: Apache-2.0
// Workers of parameter servers: a rank or several, of a pipeline's stages, of pieces of layers, of a group. Whichever
// of them has weights that none before it has, pushes and pulls these.
#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace rehearse::run {

/// How many workers there are: groups, or ranks along data.
std::int64_t workers(const Mesh& mesh);
/// The first rank of a rank's worker.
RankIndex worker_of(const Mesh& mesh, RankIndex rank);
/// The rank of the first worker that has the same weights.
RankIndex alike_of_first(const Mesh& mesh, RankIndex rank);
/// Whether workers have axes of their own beside a pipeline's, so that ranks have pieces of layers or of samples.
bool shares_layers(const Schedule& schedule);

/// Whether it is this rank that pushes, of those that have the same weights of the bucket.
bool pushes(const Mesh& mesh, RankIndex rank, const PushPull& push_pull);
/// A rank's, in their order.
std::vector<const PushPull*> pushes_of(const Schedule& schedule, RankIndex rank);
/// The ranks that push and pull, of all workers; of the first one and a stage.
std::vector<RankIndex> pushing_ranks(const Schedule& schedule);
std::vector<RankIndex> pushing_ranks_of(const Schedule& schedule, int stage);

/// Of the ranks of a stage.
const RankClass& class_of_stage(const Schedule& schedule, int stage);

/// Returns what is left of a schedule for servers: an Update of each bucket that the rank pushes to one of them, or to
/// all (-1).
Schedule kept_by_server(const Schedule& schedule, int server, RankIndex rank);

}  // namespace rehearse::run
