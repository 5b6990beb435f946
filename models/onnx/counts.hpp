// SPDX-License-Identifier: Apache-2.0
// What PyTorch itself counted of a network when it was exported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rehearse::models {

/// Of the module, and of one sample's forward pass at the operators that PyTorch dispatched.
struct Counts {
    std::optional<std::int64_t> parameters;
    std::optional<double> multiply_adds;  // of one of `samples`
    std::int64_t samples = 1;
};

/// The metadata "rehearse.parameters", "rehearse.multiply_adds" and "rehearse.samples" of an .onnx file, which
/// scripts/export_onnx.py writes. InputError when the file cannot be read, or a count is no number.
Counts counts_in(const std::string& path);

}  // namespace rehearse::models
