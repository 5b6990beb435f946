// SPDX-License-Identifier: Apache-2.0
// import_onnx and counts_in of a build without libonnx.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/onnx/counts.hpp"

namespace rehearse::models {
namespace {

InputError cannot_read(const std::string& path) {
    return InputError(
        fmt::format("{}: this build cannot read ONNX files: install libonnx (libonnx-dev) and configure "
                    "again with -DREHEARSE_ONNX=ON",
                    path));
}

}  // namespace

Network import_onnx(const std::string& path, const ImportOptions&) { throw cannot_read(path); }

Counts counts_in(const std::string& path) { throw cannot_read(path); }

}  // namespace rehearse::models
