// SPDX-License-Identifier: Apache-2.0
// HDF5 files of volumes, to be read as samples.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/op.hpp"

namespace rehearse::run {

/// Writes `count` samples of this shape, one stretch of the file each, as data sets "data" and "labels" that open_h5
/// reads. BackendError where this build has no HDF5, or the disk no room.
void write_volumes(const std::filesystem::path& path, const Shape& sample, std::int64_t count);

}  // namespace rehearse::run
