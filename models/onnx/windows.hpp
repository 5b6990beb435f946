// SPDX-License-Identifier: Apache-2.0
// The sliding windows of ONNX's convolutions and pools, and what else changes an image's size.
#pragma once

#include "models/onnx/importer.hpp"

namespace rehearse::models {

/// InputError unless the shape is that of an image or volume.
Shape image(Import& import, const onnx::NodeProto& node);

/// The layer that a window moves over, of this shape.
int image_source(Import& import, const onnx::NodeProto& node, const Shape& shape);

/// strides, dilations, pads, auto_pad and ceil_mode as explicit padding; a kernel of two or three sizes.
Window window_of(const Import& import, const onnx::NodeProto& node, const Shape& image,
                 const std::vector<std::int64_t>& kernel);

/// What a convolution of the file does, its weights aside.
struct Convolution {
    Window window;
    std::int64_t groups = 1;
    bool bias = false, transposed = false;
    Shape output;
};

/// The convolution of `from`, an image of this shape, as a product with its patches, with weights that a layer makes.
std::string unfolded(Import& import, const onnx::NodeProto& node, const Convolution& conv, const Shape& image,
                     int from);

/// A recurrent layer step by step, with the states that it begins with and those that it ends in.
void put_unrolled(Import& import, const onnx::NodeProto& node, const Recurrent& op);

/// A GridSample as operators that kernels know; false, and nothing is made, where its operands are no image or volume
/// and a grid for it.
bool put_sampled(Import& import, const onnx::NodeProto& node);

/// Whether some layer makes an operand, or stands for it; else it is a tensor of the file.
bool in_a_layer(const Import& import, const onnx::NodeProto& node, int input);
/// Whether a value is elements of a trained table that are picked more than once, as those of relative positions are
/// (MViT v2): a layer then, of which the table alone is trained.
bool picks_again(const Import& import, const std::string& value);

/// Whether an operand is the same for each sample, and no training changes it.
bool is_fixed(const Import& import, const onnx::NodeProto& node, int input);

// The operators of onnx_windows.cpp, for the table in onnx_ops.cpp.
std::string conv(Import& import, const onnx::NodeProto& node);
std::string conv_transpose(Import& import, const onnx::NodeProto& node);
std::string max_pool(Import& import, const onnx::NodeProto& node);
std::string average_pool(Import& import, const onnx::NodeProto& node);
std::string global_average_pool(Import& import, const onnx::NodeProto& node);
std::string global_max_pool(Import& import, const onnx::NodeProto& node);
std::string resize(Import& import, const onnx::NodeProto& node);

}  // namespace rehearse::models
