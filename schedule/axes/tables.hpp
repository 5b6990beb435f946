// SPDX-License-Identifier: Apache-2.0
// Tables of embeddings shared among ranks that have samples of their own (DLRM: Naumov et al. 2019, section 4; on CPU
// clusters: Kalamkar et al. 2020).
#pragma once

#include <string>

#include "core/schedule.hpp"

namespace rehearse::schedule {

/// Each of `parts` ranks along mesh axis `axis` keeps as many whole tables of each EmbeddingBag, and looks up in them
/// for the samples of all ranks; everything else it does for its own samples.
///
///   rank 0   ids of all for tables 0 1 ─► sums {rank, 2} ─┐ exchange ┌─► sums of own samples, tables 0 1 2 3 ─► ...
///   rank 1   ids of all for tables 2 3 ─► sums {rank, 2} ─┘          └─► ...
///
/// Tables come first, so that their sums travel beside the layers in between, and so do, back, the gradients of these,
/// which update the rows that were picked at once: no rank has a gradient of a table. Tables of a bag are of one size,
/// so that equally many of them are equally many lookups and bytes. Where they are not a multiple of the ranks, each
/// has as many as the fullest, and `kept` of the exchange says how many there are. InputError when the network has no
/// EmbeddingBag, or one whose ids others read.
///
/// With `bottom_on_one` a single rank also has the layers that lead to tables' readers without reading a table (DLRM's
/// bottom MLP), for the samples of all, and sends what comes out to all (NVIDIA's example of 2020). What is made is
/// that rank's part, which the others wait for; as where tables are no multiple, only for predictions. Dense layers and
/// activations only, else InputError.
Part share_tables(const Network& network, const std::string& axis_name, int axis, std::int64_t parts,
                  bool bottom_on_one = false);

/// Whether ranks update the layers of a bucket in place of making their gradients.
bool updates_directly(const Network& network, const Bucket& bucket);

}  // namespace rehearse::schedule
