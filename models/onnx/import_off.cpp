// SPDX-License-Identifier: Apache-2.0
// import_onnx of a build without libonnx.
#include <fmt/format.h>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::models {

Network import_onnx(const std::string& path, const ImportOptions&) {
    throw InputError(
        fmt::format("{}: this build cannot read ONNX files: install libonnx (libonnx-dev) and configure "
                    "again with -DREHEARSE_ONNX=ON",
                    path));
}

}  // namespace rehearse::models
