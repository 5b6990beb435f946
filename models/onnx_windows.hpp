// SPDX-License-Identifier: Apache-2.0
// The sliding windows of ONNX's Conv and pools.
#pragma once

#include "models/onnx_import.hpp"

namespace rehearse::models {

/// InputError unless the shape is that of an image.
Shape image(const Import& import, const onnx::NodeProto& node, int layer);

/// strides, dilations, pads, auto_pad and ceil_mode as explicit padding.
Window window_of(const Import& import, const onnx::NodeProto& node, const Shape& image, std::int64_t kernel_h,
                 std::int64_t kernel_w);

// The operators of onnx_windows.cpp, for the table in onnx_ops.cpp.
std::string conv(Import& import, const onnx::NodeProto& node);
std::string max_pool(Import& import, const onnx::NodeProto& node);
std::string average_pool(Import& import, const onnx::NodeProto& node);
std::string global_average_pool(Import& import, const onnx::NodeProto& node);
std::string global_max_pool(Import& import, const onnx::NodeProto& node);

}  // namespace rehearse::models
