// SPDX-License-Identifier: Apache-2.0
// The import under way, and the table of ONNX operators that become ours.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "models/builder.hpp"
#include "models/onnx/graph.hpp"

namespace rehearse::models {

/// A value has not as many elements a sample as it should: the samples were looked for in the wrong dimension.
class MixedSamples : public InputError {
public:
    using InputError::InputError;
};

/// How much is computed depends on data.
class DependsOnData : public InputError {
public:
    using InputError::InputError;
};

/// Where a value lies: a layer's output, perhaps seen as another shape.
struct Place {
    int layer = 0;
    std::string via{};    // the node that sees it so, for the layer that does, where one is needed
    bool turned = false;  // of several images a sample: channels first, as a volume has them
};

/// Operands of a node, as Elementwise has them.
struct Operands {
    std::vector<int> layers;
    std::vector<Shape> inputs, weights, constants;
    std::vector<double> numbers;
    std::vector<std::string> tensors;  // the initializers behind `weights`
    bool layer_first = true;
    std::string order{};               // see Elementwise
    Given given{};                     // what the constants hold, and where weights are taken from
    std::vector<std::string> start{};  // what is known of the values that `weights` begin with; see Start
};

/// A value of the graph that a trainable tensor of a layer begins as; `turned` where it is a matrix that the layer has
/// the other way round.
struct Start {
    std::string value;
    bool turned = false;
};

/// An integer input of the graph, and which elements of a sample of it a value is; `places` empty: all, as they lie.
struct Picked {
    std::string input;
    std::vector<std::int32_t> places{};
};

/// A part of a loss: `factor` times the mean, over the samples, of what a layer makes of each.
struct LossTerm {
    int layer = 0;
    double factor = 1;
};

/// What an import knows while it goes through a graph, node after node.
/// Large: one method a kind of node or value that patterns and operators share, over one state.
struct Import {
    const OnnxGraph& graph;
    const ImportOptions& options;
    NetworkBuilder builder;
    std::unordered_map<std::string, Place> places{};  // by the name of the value
    std::unordered_map<std::string, int> names{};     // how often a layer's name was asked for
    std::map<std::pair<int, Shape>, int> views{};
    std::map<int, bool> once{};                        // by layer: see made_once
    std::map<int, int> volumes{};                      // by the layer of several images: the same with channels first
    std::map<int, int> straight{};                     // and the other way round
    std::unordered_map<std::string, int> ids{};        // Input layers of integers
    std::unordered_map<std::string, int> first_ids{};  // of each integer input that is fed in: the first of these
    std::map<int, std::string> numbers{};              // Input layers that read an integer input as numbers, and which
    std::map<std::string, int> owners{};               // of initializers: the layer that trains them
    bool ends_in_softmax = false;                      // left out: the loss takes its place
    int brought = 0;                                   // constants that are computed of constants, under way
    int folded = 0;                                    // convolutions that a batch normalization went into
    std::map<int, int> put_back{};                     // by such a convolution's layer: the normalization
    std::vector<int> own_bias{};                       // of them those that begin with a bias, as far as values show
    bool begins = true;                                // whether none of them holds what no network begins with
    bool seen_to_begin = false;                        // whether weights of theirs show that nobody trained them
    int with_lengths = 0;                              // weights whose lengths weight_norm trains
    std::map<std::string, int> notes{};                // and how often
    std::set<std::string> left_out{};                  // values that follow from what depends on data
    std::string left_out_since{};                      // the first node that makes such
    std::map<int, Given> given{};                      // by layer
    std::map<int, std::vector<Start>> starts{};        // of its tensors, one after the other
    std::unordered_map<std::string, std::vector<LossTerm>> losses{};  // by values that are means over the samples

    /// The layer behind a node's input, with the shape of one sample; InputError when nothing before the node makes it.
    int source(const onnx::NodeProto& node, int input);
    /// The same seen as `shape`, which has as many elements.
    int source(const onnx::NodeProto& node, int input, const Shape& shape);
    int layer_of(const onnx::NodeProto& node, const std::string& value, const Shape& shape);
    /// Of an input's sample.
    Shape sample(const onnx::NodeProto& node, const std::string& value) const;
    Operands operands(const onnx::NodeProto& node);
    bool is_computed(const std::string& name) const;
    void take_weights(const onnx::NodeProto& node, const std::string& name, Operands& all) const;
    void take_constant(const onnx::NodeProto& node, const std::string& name, Operands& all) const;
    /// The sizes of a constant input; InputError when it is absent, not constant or of another rank.
    Shape weights(const onnx::NodeProto& node, int input, std::size_t rank) const;
    /// Adds a layer named after the node for its output `output`; InputError when it has another number of elements
    /// than inferred. `tensors`: the initializers that the operator's weights are, all of them; where an earlier layer
    /// has them, the new one shares its weights.
    int put(const onnx::NodeProto& node, Op op, std::vector<int> inputs, std::vector<std::string> tensors = {},
            int output = 0);
    bool adds_bias_of(const onnx::NodeProto& node, int owner);
    void alias(const onnx::NodeProto& node, const std::string& value, const std::string& from);
    /// The layer that stands for a constant, which is made where there is none yet: a tensor of the file, a table, or
    /// what is computed of such. InputError where no operator of ours computes it.
    int bring(const onnx::NodeProto& reader, const std::string& value);
    int parameter(const std::string& tensor);
    int moved_parameter(const onnx::NodeProto& reader, const std::string& value);
    /// Before a product of what the file repeats for each sample: a copy of its first operand for each.
    void repeat_for_each(const onnx::NodeProto& node, const Op& op, std::vector<int>& inputs);
    bool is_made_once(int layer);
    int fixed_constant(const onnx::NodeProto& reader, const std::string& value);
    /// Integers that are fed in and nothing but moved; nothing for all other values.
    std::optional<Picked> picked_of(const std::string& value) const;
    /// Whether a value that is made of integers that are fed in can be a layer, which reads them as numbers.
    bool can_be_fed(const std::string& value, int depth = 0) const;
    /// That layer.
    void feed(const onnx::NodeProto& reader, const std::string& value);
    /// The integers that pick rows of a table of so many.
    int indices(const std::string& value, std::int64_t count, std::int64_t vocabulary);
    /// A layer that has the same values for each sample, which no training changes. None: not known, and so not run.
    int fixed_layer(const onnx::NodeProto& node, const std::string& what, const Shape& shape,
                    std::vector<float> values);
    [[noreturn]] void mixed(const onnx::NodeProto& node, const std::string& what) const;
    /// A sample's several images {n, channels, sizes...} as a volume {channels, n, sizes...}, and back.
    int volume_of(const onnx::NodeProto& node, int input);
    int straightened(int volume);
    bool turned(const onnx::NodeProto& node, int input) const;
    std::string name_for(const onnx::NodeProto& node, const std::vector<std::string>& tensors = {});
    /// The initializers, or pieces of them, behind a value, and behind the inputs `first` to `last` of a node.
    std::vector<std::string> tensors_of(const std::string& value) const;
    std::vector<std::string> tensors(const onnx::NodeProto& node, int first, int last) const;
    /// Says which values of the graph the tensors of a layer begin as, where it trains tensors of its own; empty names
    /// are passed over.
    void begin_as(int layer, const std::vector<std::string>& values);
    std::string part_of(const std::string& value, const std::string& tensor) const;
    /// A layer that is priced, but that nobody runs as the file means it; the first reason stays.
    void not_run(int layer, const std::string& why);
    /// The sizes of a constant beside samples of what the node makes: without the dimension of the samples.
    /// Nothing where it has more than one of these.
    std::optional<Shape> beside_samples(const onnx::NodeProto& node, const Shape& dims) const;
    /// The values of a constant beside one sample: those of one, where it is repeated for each. Nothing where they are
    /// not known, or differ from sample to sample.
    struct Beside {
        Shape shape;
        std::vector<float> values;
    };
    std::optional<Beside> values_beside(const onnx::NodeProto& node, const Value& value) const;
    /// Tensors behind computed weights that no layer has, as the lengths that weight_norm splits off: each a Parameter.
    void count_unseen();
    void count_unread();
    /// Calls what reads ids as numbers after their layer, whose data set it reads.
    void name_numbers();
    /// What the file says of each layer's values, once all are there.
    void give(Network& network, OnnxGraph& from) const;
    void begin_with(const Layer& layer, const std::vector<Start>& start, Given& all,
                    std::map<std::string, std::int64_t>& taken) const;
};

/// Dimension `axis` of a value in that of one sample; -1 where it is the samples'.
std::int64_t in_sample(const Value& value, const Shape& sample, std::int64_t axis);

/// The same of the sample's own axes; nothing where it is the samples'.
std::optional<std::size_t> axis_of_sample(const Value& value, const Shape& sample, std::int64_t axis);

/// Whether a sample has several images, sequences or vectors of channels: {n, channels, ...}.
bool several(const Import& import, const onnx::NodeProto& node);

/// A tensor of the file as a layer beside each sample: trained, or fixed; -1 where it is neither.
int beside(Import& import, const onnx::NodeProto& node, int input);

/// Empty when the node was taken over; else why this form of the operator is unknown to us.
using Translate = std::string (*)(Import& import, const onnx::NodeProto& node);
/// Null for an operator that we do not know.
Translate translation(std::string_view op_type);

/// Several nodes that are one operator of ours: those inside make nothing, the last makes the operator.
struct Patterns {
    std::unordered_map<const onnx::NodeProto*, std::function<void(Import&)>> at;
    std::unordered_set<const onnx::NodeProto*> inside;
};
void find_functions(const OnnxGraph& graph, Patterns& patterns);
void find_normalizations(const OnnxGraph& graph, Patterns& patterns);
void find_attention(const OnnxGraph& graph, Patterns& patterns);
void find_rotary(const OnnxGraph& graph, Patterns& patterns);

// Of unfolded_weights.cpp: what an export for inference folded into weights.
/// Whether a convolution's weights and bias were computed of a batch normalization after it.
bool holds_normalization(const Import& import, const onnx::NodeProto& node);
/// That normalization, behind the convolution.
void put_normalization(Import& import, const onnx::NodeProto& node, int conv);
/// Of weights that were computed of others, with as many lengths as the weights have in `axis`: these lengths, which
/// weight_norm trains (Salimans and Kingma 2016).
void add_lengths(Import& import, const onnx::NodeProto& node, std::size_t axis);
/// The biases that convolutions had before a normalization, where the file's values show them.
void add_lost_biases(Import& import);

// Of remarks.cpp.
/// With --allow-unknown the network ends where it no longer is known how much is computed, as before the boxes of a
/// detector are told apart; DependsOnData without it.
void leave_out(Import& import, const onnx::NodeProto& node);
/// Whether the node reads what was left out; then so is what it makes.
bool follows_from_data(Import& import, const onnx::NodeProto& node);
/// What was guessed of the file, as notes of the network.
void say_what_was_seen(Import& import, Network& network);

/// Of ops_rare.cpp.
Translate rare_translation(std::string_view op_type);

/// Of losses.cpp. Whether all that reads a value adds up losses, or it is what the graph gives out.
bool only_added(const OnnxGraph& graph, const std::string& value, int depth = 0);
/// Whether the node's value is a sum of means over the samples, which then is no layer.
bool adds_losses(Import& import, const onnx::NodeProto& node);
/// Makes a layer of such a sum, for who computes more of it.
void put_losses(Import& import, const std::string& value);
/// Whether a graph is trained for what it computes itself: the loss layers of the first output that is one.
bool ends_in_own_loss(Import& import);

// ops_*.cpp, for the table in ops.cpp.
std::string labelled_loss(Import& import, const onnx::NodeProto& node);
std::string elementwise(Import& import, const onnx::NodeProto& node);
std::string add(Import& import, const onnx::NodeProto& node);
std::string product(Import& import, const onnx::NodeProto& node);
std::string gemm(Import& import, const onnx::NodeProto& node);
std::string einsum(Import& import, const onnx::NodeProto& node);
std::string reshape(Import& import, const onnx::NodeProto& node);
std::string rearrange(Import& import, const onnx::NodeProto& node);
std::string split(Import& import, const onnx::NodeProto& node);
std::string concat(Import& import, const onnx::NodeProto& node);
std::string gather(Import& import, const onnx::NodeProto& node);
std::string scatter(Import& import, const onnx::NodeProto& node);
std::string reduce(Import& import, const onnx::NodeProto& node);
std::string softmax(Import& import, const onnx::NodeProto& node);
std::string batch_norm(Import& import, const onnx::NodeProto& node);
std::string normalize(Import& import, const onnx::NodeProto& node);
std::string recurrent(Import& import, const onnx::NodeProto& node);

}  // namespace rehearse::models
