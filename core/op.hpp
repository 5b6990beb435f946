// SPDX-License-Identifier: Apache-2.0
// Operators as plain values. An Op holds the sizes of ONE sample; the batch is given beside it, so that a Schedule can
// split a batch without touching the network. Layout is NCHW, row-major, everywhere outside kernels/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/halo.hpp"
#include "core/op_experts.hpp"
#include "core/op_general.hpp"
#include "core/op_transformer.hpp"
#include "core/units.hpp"

namespace rehearse {

/// Sizes of one sample, outermost first: {channels, height, width} for images, {channels, depth, height, width} for
/// volumes, {features} for vectors. Operators on either have a depth, which is 0 for an image.
using Shape = std::vector<std::int64_t>;
std::int64_t elements(const Shape& shape);
std::string to_string(const Shape& shape);  // "64x56x56"
Shape image_shape(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width);
/// Of one channel of an operator on images or volumes.
constexpr std::int64_t pixels(const auto& op) { return (op.depth == 0 ? 1 : op.depth) * op.height * op.width; }

/// tf32: f32 in memory, of which products of tensor cores read 10 bits of mantissa. fp8: a product's operands in 8 bits
/// (E4M3 forward, E5M2 for gradients), each tensor with a scale of its own; what it makes has 16 bits.
enum class DataType { f32, f16, bf16, tf32, fp8 };
Bytes size_of(DataType type);
std::string_view to_string(DataType type);

/// What is computed of an operator. backward_data: d loss / d inputs. backward_weights: d loss / d weights. update: the
/// optimizer's step on the operator's weights. An operator whose two gradients come from one kernel (BatchNorm,
/// LayerNorm) has only backward_data, which then gives both.
enum class Pass { forward, backward_data, backward_weights, update };
std::string_view to_string(Pass pass);

/// A sliding window over height and width, and in volumes over depth, as in ONNX: explicit padding on each side,
/// dilation 1 means dense.
struct Window {
    std::int64_t kernel_h = 1, kernel_w = 1;
    std::int64_t stride_h = 1, stride_w = 1;
    std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
    std::int64_t dilation_h = 1, dilation_w = 1;
    std::int64_t kernel_d = 1, stride_d = 1, pad_front = 0, pad_back = 0, dilation_d = 1;
    std::int64_t taps() const { return kernel_d * kernel_h * kernel_w; }
    bool operator==(const Window&) const = default;
};

enum class PoolKind { max, average };
enum class Nonlinearity { relu, sigmoid, tanh, gelu };
std::string_view to_string(Nonlinearity kind);

/// The network's input of one sample; integers in [0, vocabulary) where `vocabulary` is not 0.
struct Input {
    Shape shape;
    std::int64_t vocabulary = 0;
    bool operator==(const Input&) const = default;
};

/// Convolution of images or, where `depth` is not 0, of volumes: weights {filters, channels / groups, (kernel_d,)
/// kernel_h, kernel_w} and, with bias, {filters}. With `relu`, of images only, its negative results are 0; the backward
/// passes take ReLU's slope from the sign of the output.
struct Conv {
    std::int64_t channels = 1, height = 1, width = 1, filters = 1;
    Window window;
    std::int64_t groups = 1;
    bool bias = false;
    bool relu = false;
    std::int64_t depth = 0;
    bool operator==(const Conv&) const = default;
};

/// dst {m, n} = src {m, k} x weights {k, n} (+ bias {n}): a dense layer. m counts rows of one sample. `activation` is
/// relu or gelu of the result; of gelu, forward keeps for the backward passes as many values as dst has.
/// `tied`: no weights of its own, but the transpose of the first {n, k} of another layer's (Layer::weights_of), as a
/// language model's scores come from its table of embeddings (Press and Wolf 2017).
struct MatMul {
    std::int64_t m = 1, n = 1, k = 1;
    bool bias = true;
    std::optional<Nonlinearity> activation{};
    bool tied = false;
    bool operator==(const MatMul&) const = default;
};

/// Max or average pooling. An average divides by the window's size, or by its part inside the image when
/// `count_padding` is false (ONNX's default). Windows that start inside the padded image are all kept.
struct Pool {
    PoolKind kind = PoolKind::max;
    std::int64_t channels = 1, height = 1, width = 1;
    Window window;
    bool count_padding = false;
    std::int64_t depth = 0;
    bool operator==(const Pool&) const = default;
};

/// Batch normalization over N, (D,) H, W in training mode; weights gamma {channels}, beta {channels}, none where it is
/// not `affine`; running mean and variance are state, not weights, and move towards this batch's by `momentum`. With
/// `add` there is a second input of the same shape, a residual network's shortcut, that is added to the result; with
/// `relu`, what is negative then is 0, and backward_data takes ReLU's slope from the sign of the output. Where an image
/// lies in `parts` blocks on as many ranks, the last input is the sum of all ranks' ChannelSums: the statistics are the
/// whole image's, the gradients of gamma and beta a part of theirs.
struct BatchNorm {
    std::int64_t channels = 1, height = 1, width = 1, depth = 0;
    bool relu = false, add = false;
    std::int64_t parts = 1;
    double epsilon = 1e-5;  // Ioffe and Szegedy 2015; also the default of PyTorch and ONNX, as is the momentum
    double momentum = 0.1;
    bool affine = true;
    bool operator==(const BatchNorm&) const = default;
};

/// Of each channel of a sample the sum of its values, then of each the sum of their squares: {2 channels}.
struct ChannelSums {
    std::int64_t channels = 1, height = 1, width = 1, depth = 0;
    bool operator==(const ChannelSums&) const = default;
};

/// Local response normalization across `size` channels (Krizhevsky et al. 2012, section 3.3).
struct Lrn {
    std::int64_t channels = 1, height = 1, width = 1, size = 5;
    double alpha = 1e-4, beta = 0.75, bias = 1.0;
    bool operator==(const Lrn&) const = default;
};

struct Activation {
    Nonlinearity kind = Nonlinearity::relu;
    Shape shape;
    bool operator==(const Activation&) const = default;
};

/// Sum of `inputs` tensors of one shape.
struct Add {
    Shape shape;
    std::int64_t inputs = 2;
    bool operator==(const Add&) const = default;
};

/// Concatenation along the channels: inputs {channels[i], (depth,) height, width}.
struct Concat {
    std::vector<std::int64_t> channels;
    std::int64_t height = 1, width = 1, depth = 0;
    bool operator==(const Concat&) const = default;
};

/// Zero channels before and after: the parameter-free shortcut of ResNet for CIFAR (He et al. 2016, option A).
struct ChannelPad {
    std::int64_t channels = 1, height = 1, width = 1, before = 0, after = 0;
    bool operator==(const ChannelPad&) const = default;
};

/// Inverted dropout. Deterministic per (seed, layer, step) in kernels; `keep` is the probability to survive.
struct Dropout {
    Shape shape;
    double keep = 0.5;
    bool operator==(const Dropout&) const = default;
};

/// {a, b, c} seen as {a*b*c}, or as the shape `to` where that is not empty: no work, no bytes.
struct Flatten {
    Shape shape;
    Shape to{};
    bool operator==(const Flatten&) const = default;
};

/// Probabilities over `classes`, for networks that end in one (ONNX inference graphs).
struct Softmax {
    std::int64_t classes = 1;
    bool operator==(const Softmax&) const = default;
};

/// Mean softmax cross-entropy over the batch against one label a sample; its forward output is the loss of a sample
/// {1}. With an `image` ({height, width} or {depth, height, width}), input {classes, image...}: one label a pixel, the
/// loss of a sample is the mean over its pixels, each weighed by its label's `class_weights` (none: all 1). With more
/// than one of `rows` (the tokens of a sequence), input {rows, classes}: one label a row, the mean over the rows.
struct SoftmaxLoss {
    std::int64_t classes = 1;
    Shape image{};
    std::vector<double> class_weights{};
    std::int64_t rows = 1;
    bool operator==(const SoftmaxLoss&) const = default;
};

/// SGD with momentum over `count` parameters: v = mu v + g; w = w - lr v.
struct SgdUpdate {
    std::int64_t count = 0;
    bool operator==(const SgdUpdate&) const = default;
};

/// Transposed convolution ("deconvolution") of images or volumes, as in ONNX: the backward_data of a convolution as an
/// operator of its own, weights {channels, filters / groups, (kernel_d,) kernel_h, kernel_w} and, with bias, {filters}.
/// Each size becomes stride (size - 1) + dilation (kernel - 1) + 1 - padding + output padding, the last below stride.
struct ConvTranspose {
    std::int64_t channels = 1, height = 1, width = 1, filters = 1;
    Window window;
    std::int64_t groups = 1;
    bool bias = false;
    std::int64_t depth = 0;
    std::int64_t output_pad_d = 0, output_pad_h = 0, output_pad_w = 0;
    bool operator==(const ConvTranspose&) const = default;
};

enum class Interpolation { nearest, linear };

/// An image or volume of another size. The centre of pixel i lies at (i + 1/2) / size (ONNX's half_pixel), or, with
/// `align_corners`, at i / (size - 1); nearest takes the pixel whose cell holds the centre. Linear is bi- or trilinear.
struct Resize {
    Interpolation kind = Interpolation::linear;
    std::int64_t channels = 1, height = 1, width = 1, out_height = 1, out_width = 1;
    std::int64_t depth = 0, out_depth = 0;
    bool align_corners = false;
    bool operator==(const Resize&) const = default;
};

/// dst = src + bias along dimension `dim` of `shape`; weights {shape[dim]}. Split layers need it: a partial product
/// gets its bias after the sum over the ranks, once.
struct Bias {
    Shape shape;
    std::int64_t dim = 0;
    bool operator==(const Bias&) const = default;
};

/// What a layer of one rank's part of a network gets from, or gives to, the other ranks along a mesh axis.
///
///                   forward                                       backward
///   sum             adds the ranks' tensors                       passes the gradient on (every rank has all of it)
///   copy            passes the tensor on (every rank has it)      adds the ranks' gradients
///   gather          joins the ranks' pieces along `dim`           takes its own piece of the gradient
///   slice           takes its own piece along `dim`               joins the ranks' pieces of the gradient
///   reduce_scatter  adds the ranks' tensors, each gets its piece  joins the ranks' pieces of the gradient
///   all_gather      joins the ranks' pieces along `dim`           adds the ranks' gradients, each gets its piece
///   send            gives the tensor to the rank `offset` on      receives its gradient from there
///   receive         gets the tensor from the rank `offset` on     sends its gradient there
///   halo            its piece becomes the rows along `dim` that   gives the gradients of the others' rows back to
///                   `halo` says, some of them the others'         them, who add them
///   all_to_all      gives each rank its piece along `dim` of the  the same, back
///                   tensor, joins the pieces that it gets
/// sum and copy are g and f of Shoeybi et al. 2019 ("Megatron-LM", section 3), reduce_scatter and all_gather those of
/// sequence parallelism (Korthikanti et al. 2022, section 4.2.2). The values of their input and output lie as they do
/// for gather. all_to_all is DLRM's, of tables' sums for the samples of all ranks (Naumov et al. 2019, section 4), and
/// that of a mixture of experts, of the slots of each group (Lepikhin et al. 2021, section 3.2).
enum class Movement { sum, copy, gather, slice, reduce_scatter, all_gather, send, receive, halo, all_to_all };
/// As layers' names and files have them: scatter, spread and exchange are reduce_scatter, all_gather and all_to_all.
std::string_view to_string(Movement movement);

struct Communication {
    Movement movement = Movement::sum;
    std::string axis;         // of the mesh
    Shape shape;              // of one sample of the input; of what is received
    std::int64_t parts = 1;   // ranks along the axis
    std::int64_t dim = 0;     // of gather, slice, reduce_scatter, all_gather, halo and all_to_all
    std::int64_t offset = 0;  // send and receive, along the axis
    bool gradient = true;     // send and receive: some layer before has weights, so that a gradient goes back
    Halo halo{};
    bool lowest = false;     // halo: rows outside of the image are lower than any number (max pooling); else 0
    std::int64_t kept = 0;   // all_to_all: of `dim`, what is not there only to fill up the last ranks' pieces; 0: all
    std::int64_t group = 1;  // all_to_all, of dimension 0: samples whose rows, one after the other, are cut together
    bool operator==(const Communication&) const = default;
};

/// An imported operator that we do not know, let in by --allow-unknown: costed by the bytes it touches, cannot be run.
struct Unknown {
    std::string type;
    std::int64_t input_elements = 0, weight_elements = 0;
    Shape output;
    bool operator==(const Unknown&) const = default;
};

using AnyOp =
    std::variant<Input, Conv, MatMul, Pool, BatchNorm, Lrn, Activation, Add, Concat, ChannelPad, Dropout, Flatten,
                 Softmax, SoftmaxLoss, SgdUpdate, ConvTranspose, Resize, Bias, Communication, Attention, LayerNorm,
                 Embedding, EmbeddingBag, Interaction, AdamUpdate, LambUpdate, Unknown, SoftmaxTerms, TermsLoss,
                 ChannelSums, DispatchTokens, CombineTokens, GroupedMatMul, Elementwise, Reduction, Rearrangement,
                 Gather, BatchedMatMul, Recurrent, Normalization, SoftmaxAlong, Parameter, Shared>;

/// What a layer computes. It copies, moves and ends in op.cpp: done in every file, that took a third of the build.
struct Op : AnyOp {
    using AnyOp::AnyOp;
    using AnyOp::operator=;
    Op();
    Op(const Op& other);
    Op(Op&& other) noexcept;
    Op& operator=(const Op& other);
    Op& operator=(Op&& other) noexcept;
    ~Op();
};

struct SharedOp {
    Op op;
};
/// What a layer computes: the operator itself, or that which a Shared repeats. Problems hold this.
const Op& computed(const Op& op);

/// The convolution without bias that leads back from a transposed one's dst to its src: its backward_data is the
/// transposed one's forward, and the other way round.
Conv mirrored(const ConvTranspose& op);
/// The same convolution, of an image as of the volume of one plane that it is.
Conv as_volume(Conv op);
/// A convolution of volumes.
Conv conv3d(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width, std::int64_t filters,
            const Window& window, std::int64_t groups = 1, bool bias = false);
/// A convolution of images; null of volumes, and of all other operators.
const Conv* as_conv2d(const Op& op);

/// A trainable tensor of an operator: "weights", "bias", "gamma", "beta".
struct WeightTensor {
    std::string name;
    Shape shape;
    bool operator==(const WeightTensor&) const = default;
};

/// One of op_general.hpp.
bool is_general(const Op& op);
/// Conv or ConvTranspose.
bool is_convolution(const Op& op);

/// The one-word kind used in problem strings and price tables: "conv2d", "matmul", "pool", "batchnorm", ...
std::string_view kind_of(const Op& op);
std::span<const std::string_view> op_kinds();

/// Shape of one sample of the output. Checks that `inputs` are what the operator was made for: InputError otherwise.
Shape output_shape(const Op& op, const std::vector<Shape>& inputs);
/// Shapes of one sample of the inputs and of the output, as the operator's own sizes imply them.
std::vector<Shape> input_shapes(const Op& op);
Shape output_shape(const Op& op);

std::vector<WeightTensor> weights(const Op& op);
std::int64_t parameters(const Op& op);
/// Elements of weights that the operator reads: its parameters, and another layer's where it is tied.
std::int64_t weights_read(const Op& op);
/// How many parameters an optimizer's operator updates; nothing for all other operators.
std::optional<std::int64_t> updated(const Op& op);
/// SoftmaxLoss, or TermsLoss: what training makes small.
bool is_loss(const Op& op);
/// Whether the operator's one input is integers: Embedding, EmbeddingBag.
bool reads_integers(const Op& op);
/// An EmbeddingBag that is updated in place of a gradient.
bool updates_directly(const Op& op);
/// Rows that go through each expert of a GroupedMatMul, of `batch` samples.
std::int64_t rows_of_expert(const GroupedMatMul& op, std::int64_t batch);
/// Of how many samples in a row the tokens compete for experts: 1, but for mixtures of experts.
std::int64_t routing_group(const Op& op);
/// Whether backward_data makes the weights' gradient too: BatchNorm, LayerNorm, Normalization.
bool gradients_together(const Op& op);

/// Which of an operator's input and output a backward pass reads. Outputs rather than inputs where either would do
/// (activations), as PyTorch saves them; both for max pooling, as cuDNN's takes them.
struct Reads {
    bool src = false, dst = false;
};
Reads reads(const Op& op, Pass pass);
/// What our kernels' backward_data reads: of activations the input, of max pooling the input alone.
bool gradient_reads_src(const Op& op);
bool gradient_reads_dst(const Op& op);
/// Bytes that forward keeps for backward beside inputs and output, of `batch` samples in a type of `size` bytes: masks,
/// slopes, attention's probabilities.
double kept_bytes(const Op& op, double size, double batch);

/// Whether the operator has anything to compute in this pass (ReLU has no weights; Input has nothing at all; of a
/// Communication, taking one's own piece is computed).
bool has_pass(const Op& op, Pass pass);

/// Whether a fused ReLU's slope comes from the sign of the output, so that backward passes read that.
bool has_fused_relu(const Op& op);
/// Whether forward keeps what gives the slope of a fused GELU, as many values as the output has.
bool keeps_slope(const Op& op);

/// Of one sample's forward pass, the products' alone: what tools that count by hooks report.
double multiply_adds(const Op& op);

/// Floating-point operations, 2 a multiply-add, of `batch` samples. `update` does not depend on the batch.
Flops flops(const Op& op, Pass pass, std::int64_t batch = 1);

/// Bytes that must cross the memory interface once: inputs read, outputs written, weights and their gradients.
Bytes bytes_moved(const Op& op, Pass pass, DataType type, std::int64_t batch = 1);
/// Of these, what turns a product's operands into 8 bits: an input before forward, a gradient before backward_data.
/// The weights' are made once a step and left out.
Bytes conversion_bytes(const Op& op, Pass pass, DataType type, std::int64_t batch = 1);

/// The operator's part of a problem string: "conv2d:c64h56w56k64r3s3:pad1:stride1". Injective.
std::string to_string(const Op& op);

/// One case that can be timed: it names a row of a price table, a benchmark and a failed test.
struct Problem {
    Op op;
    Pass pass = Pass::forward;
    std::int64_t batch = 1;
    DataType type = DataType::f32;
    bool operator==(const Problem&) const = default;
};

/// "conv2d:n32c64h56w56k64r3s3:pad1:stride1:f32:forward"; parse_problem reads it back, InputError says what is wrong.
std::string to_string(const Problem& problem);
Problem parse_problem(std::string_view text);

}  // namespace rehearse
