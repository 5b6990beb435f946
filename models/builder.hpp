// SPDX-License-Identifier: Apache-2.0
// Builds a Network layer by layer. Each method returns the new layer's index and takes the sizes of its Op from the
// shape of the layer it reads, so that a family of networks is a few loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/network.hpp"

namespace rehearse::models {

/// Slope and shift of PyTorch's hardsigmoid, ReLU6(x + 3) / 6, as .onnx files have them; Elementwise takes ONNX's slope
/// of 0.2 where it has no numbers.
inline const std::vector<double> hardsigmoid_numbers{0.16666667, 0.5};

/// A square window with the same padding on all sides.
Window square(std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0);

/// The same in all three directions.
Window cube(std::int64_t kernel, std::int64_t stride = 1, std::int64_t pad = 0);

/// The window of a pool that keeps the last, overhanging window (Caffe's pools, ONNX's ceil_mode): what overhangs the
/// image of `height` x `width`, or the volume of `depth` such planes, is said as padding at the end.
Window keep_last(Window window, std::int64_t height, std::int64_t width, std::int64_t depth = 0);

/// Large: one method a kind of layer.
class NetworkBuilder {
public:
    NetworkBuilder(std::string name, Shape input);
    NetworkBuilder(std::string name, Input input);

    /// Any operator; the methods below are short for it. Those on images take volumes too.
    int layer(std::string name, Op op, std::vector<int> inputs);

    /// 2-D of an image, 3-D of a volume.
    int conv(std::string name, int from, std::int64_t filters, Window window, bool bias = false,
             std::int64_t groups = 1);
    int conv_transpose(std::string name, int from, std::int64_t filters, Window window, bool bias = false);
    int batch_norm(std::string name, int from);
    int relu(std::string name, int from);
    int max_pool(std::string name, int from, Window window);
    int average_pool(std::string name, int from, Window window);
    int global_average_pool(std::string name, int from);
    int lrn(std::string name, int from, std::int64_t size = 5, double alpha = 1e-4, double beta = 0.75);
    int dropout(std::string name, int from, double keep);
    int flatten(std::string name, int from);
    /// A dense layer with bias on a flat input.
    int dense(std::string name, int from, std::int64_t features);
    /// Scores of every row of an embedding's table, which it shares.
    int tied_dense(std::string name, int from, int embedding);
    int add(std::string name, int a, int b);
    int concat(std::string name, std::vector<int> from);
    int channel_pad(std::string name, int from, std::int64_t before, std::int64_t after);
    /// Bilinear, to `height` x `width`.
    int resize(std::string name, int from, std::int64_t height, std::int64_t width);
    /// Softmax cross-entropy over all features of `from`; every network of the zoo ends in one.
    int loss(int from);
    /// The same at each pixel: the channels of `from` are its classes.
    int pixel_loss(int from, std::vector<double> class_weights = {});

    /// Gives a convolution or dense layer that has none a bias; false when it is neither or has one.
    bool add_bias(int layer);
    /// Counts elements that are stored but not trained.
    void add_state(std::int64_t elements) { network_.state += elements; }

    static constexpr int input = 0;
    Layer& at(int layer) { return network_.layers.at(static_cast<std::size_t>(layer)); }
    const Shape& shape(int layer) const { return network_.layers.at(static_cast<std::size_t>(layer)).output; }
    /// The finished network, checked.
    Network build();

private:
    Network network_;
};

}  // namespace rehearse::models
