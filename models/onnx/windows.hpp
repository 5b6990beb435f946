// SPDX-License-Identifier: Apache-2.0
// The sliding windows of ONNX's convolutions and pools, and what else changes an image's size.
#pragma once

#include "models/onnx/importer.hpp"

namespace rehearse::models {

/// InputError unless the shape is that of an image or volume.
Shape image(const Import& import, const onnx::NodeProto& node);

/// strides, dilations, pads, auto_pad and ceil_mode as explicit padding; a kernel of two or three sizes.
Window window_of(const Import& import, const onnx::NodeProto& node, const Shape& image,
                 const std::vector<std::int64_t>& kernel);

// The operators of onnx_windows.cpp, for the table in onnx_ops.cpp.
std::string conv(Import& import, const onnx::NodeProto& node);
std::string conv_transpose(Import& import, const onnx::NodeProto& node);
std::string max_pool(Import& import, const onnx::NodeProto& node);
std::string average_pool(Import& import, const onnx::NodeProto& node);
std::string global_average_pool(Import& import, const onnx::NodeProto& node);
std::string global_max_pool(Import& import, const onnx::NodeProto& node);
std::string resize(Import& import, const onnx::NodeProto& node);

}  // namespace rehearse::models
