// SPDX-License-Identifier: Apache-2.0
// Messages along the edges of a graph: rows that integers name, taken or added up.
#pragma once

#include "models/onnx/importer.hpp"

namespace rehearse::models {

/// Whether integers that are not constant lead from one sample to another: nodes of a graph that were taken for
/// samples. In files that leave the batch open and do not say its size, that is a note.
bool picks_samples(Import& import, const onnx::NodeProto& node);

/// Whether a Gather or GatherElements takes whole rows of each sample of `table`, which then is done.
bool takes_rows(Import& import, const onnx::NodeProto& node, int table);

/// Whether a ScatterElements or ScatterND adds whole rows up (reduction = "add"), which then is done.
bool adds_rows(Import& import, const onnx::NodeProto& node);

}  // namespace rehearse::models
