// SPDX-License-Identifier: Apache-2.0
// An .onnx file, read and checked, with the shapes that we infer: what the importer asks of it. Only files of this
// folder include it; libonnx's types go no further, and of libonnx only its protobuf is used.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <onnx/onnx_pb.h>

#include "core/op.hpp"
#include "models/models.hpp"
#include "models/onnx/places.hpp"

namespace rehearse::models {

/// "Conv node 'n0'", or by what it makes when it has no name.
std::string describe(const onnx::NodeProto& node);

bool has(const onnx::NodeProto& node, std::string_view attribute);
std::int64_t integer(const onnx::NodeProto& node, std::string_view attribute, std::int64_t otherwise);
double number(const onnx::NodeProto& node, std::string_view attribute, double otherwise);
std::string text(const onnx::NodeProto& node, std::string_view attribute, std::string_view otherwise);
/// Nothing when the attribute is absent.
std::optional<std::vector<std::int64_t>> list(const onnx::NodeProto& node, std::string_view attribute);
const onnx::TensorProto* tensor(const onnx::NodeProto& node, std::string_view attribute);
bool floating(int element);
/// Whether only training has the node.
bool trains(const onnx::NodeProto& node);
/// Whether the node is a product, whose multiply-adds count.
bool multiplies(const onnx::NodeProto& node);

/// What is known of a value of the graph.
struct Value {
    /// `constant`: of initializers and shapes alone. `side`: made of integers that are fed in (ids, masks). Else the
    /// value is made of samples, and some layer makes it.
    enum class Kind { unknown, constant, side, activation };
    Kind kind = Kind::unknown;
    int element = 0;              // its type, as onnx::TensorProto numbers them
    std::optional<Shape> dims{};  // batch included
    int batch = -1;               // the dimension that holds the samples; -1: none does
    std::int64_t lead = 1;        // of that dimension, what lies outside of the samples: L of L * N
    std::shared_ptr<const std::vector<double>> data{};  // of a small constant
    std::vector<std::string> weights{};                 // of a constant: the initializers that it has a slope in
    /// Whether it is nothing but elements of the one initializer of `weights`, and which of them each is; null: as they
    /// lie. Of a large one these and the initializer's `data` stand for its own.
    bool moved = false;
    bool computed = false;    // of weights by more than moving them
    bool multiplied = false;  // of weights by products, whose multiply-adds count
    std::shared_ptr<const Places> places{};
    const onnx::NodeProto* maker = nullptr;
};

/// Which dimension of a file with fixed sizes is taken for the samples; `others`: of a file that leaves their number
/// open in some of its inputs, as many as the other inputs have.
enum class Samples { first, second, none, others };

/// Large: the file as libonnx has it is kept from all others, who ask for what they need by a method each.
class OnnxGraph {
public:
    /// InputError for whatever is wrong with the file.
    OnnxGraph(const std::string& path, const ImportOptions& options, Samples samples = Samples::first);

    /// In their order, functions of the file put in.
    const std::vector<const onnx::NodeProto*>& nodes() const { return nodes_; }
    std::int64_t opset() const { return opset_; }
    bool open_batch() const { return open_batch_; }
    /// Whether --sizes says how large the dimension of the samples is.
    bool sized_batch() const { return sized_batch_; }
    /// What the file calls the number of samples, where it is left open and has a name.
    const std::string& batch_word() const { return batch_word_; }
    /// The node that makes something of each pair of samples, whose number the file leaves open; null: none does.
    const onnx::NodeProto* pairs_of() const { return pairs_of_; }
    /// How many samples the other inputs have of a file that leaves their number open in some, if these agree.
    std::optional<std::int64_t> batch_of_others() const { return batch_of_others_; }
    /// Whether matrices of weights lie in the file, so that constants of its program are none.
    bool stores_weights() const { return stores_weights_; }
    /// What is fed in.
    const std::vector<std::string>& inputs() const { return inputs_; }
    const std::vector<std::string>& outputs() const { return outputs_; }
    /// A value's entry; one that nobody makes has Kind::unknown.
    const Value& value(const std::string& name) const;
    /// The sizes of a value of any kind, batch included; nothing where they cannot be known.
    std::optional<Shape> dims(const std::string& value) const { return this->value(value).dims; }
    /// Of one sample; at least one dimension.
    std::optional<Shape> sample(const std::string& value) const;
    bool activation(const std::string& name) const { return value(name).kind == Value::Kind::activation; }
    /// Weights, shapes and whatever is computed from them alone.
    bool constant(const std::string& name) const { return value(name).kind == Value::Kind::constant; }
    bool side(const std::string& name) const { return value(name).kind == Value::Kind::side; }
    std::optional<double> scalar(const std::string& value) const;
    /// Whether all its values are known and equal, as of tensors that no training has touched: exporters store such
    /// tensors once, though several layers have one each.
    bool uniform(const std::string& value) const;
    /// A constant of integers whose values are known.
    std::optional<std::vector<std::int64_t>> numbers(const std::string& value) const;
    /// The elements of a constant, in their order; empty where they are not known.
    std::vector<float> floats(const std::string& value) const;
    /// Lets go of an initializer's elements, and of what has nothing but them: nobody asks for them any more.
    void forget(const std::string& tensor);
    /// Whether large tensors' values are kept, too, for who runs the network.
    bool keeps_values() const { return keeps_values_; }
    /// The size of dimension Value::batch, of a sample 1.
    std::int64_t batch() const { return batch_; }
    /// How many nodes and outputs of the graph read it.
    int readers(const std::string& value) const;
    const std::vector<const onnx::NodeProto*>& readers_of(const std::string& value) const;
    /// `otherwise` stands for each of `size` values; InputError when there is another number of them.
    std::vector<std::int64_t> integers(const onnx::NodeProto& node, std::string_view attribute, std::size_t size,
                                       std::int64_t otherwise) const;
    /// Why some sizes could not be inferred; empty when nothing is wrong with the node.
    std::string why_unknown(const onnx::NodeProto& node) const;
    /// What was guessed of the file, and how often.
    const std::map<std::string, int>& notes() const { return notes_; }

    [[noreturn]] void fail(std::string_view what) const;
    [[noreturn]] void fail(const onnx::NodeProto& node, std::string_view what) const;

private:
    friend class Inference;
    void read();
    void inline_functions();
    void expand(const onnx::NodeProto& node, int depth);
    void check_attributes() const;
    void check_names() const;
    void check_attributes(const onnx::NodeProto& node) const;
    bool put_branch(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open);
    bool put_bags(const onnx::NodeProto& loop, std::vector<const onnx::NodeProto*>& open);
    bool put_turns(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open);
    bool put_cast(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open);
    bool put_unreduced(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open);
    bool put_scaled(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open);
    bool put_sequence(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open);
    void open_up(std::vector<onnx::NodeProto> nodes, std::vector<const onnx::NodeProto*>& open);
    bool goes_on(const onnx::NodeProto& loop, const onnx::GraphProto& body) const;
    void find_inputs(const ImportOptions& options);
    void find_batch(const ImportOptions& options);
    void declare();
    void infer();
    const onnx::NodeProto* first_of_pairs() const;
    void drop_unread();
    void count_readers();
    std::vector<onnx::NodeProto> moved_tensors();
    std::vector<onnx::NodeProto> distance_tables();
    void unfold_tensors();
    bool is_table(const std::string& tensor) const;
    bool is_buffer(const std::string& name, const Value& value) const;
    bool is_ruled(const std::string& name, const Value& value) const;
    bool is_copy(const onnx::NodeProto& identity) const;
    bool tells_copies() const;
    bool folds_weights() const;
    Value initializer(const onnx::TensorProto& tensor, bool trained) const;

    std::string path_;
    bool keeps_values_ = false;
    double held_ = 0;  // numbers of the initializers
    onnx::ModelProto model_;
    std::deque<onnx::NodeProto> made_;             // of functions
    std::size_t put_bytes_ = 0;                    // of what calls of functions made
    std::vector<const onnx::NodeProto*> written_;  // functions put in
    std::vector<const onnx::NodeProto*> nodes_;    // branches too
    std::unordered_set<std::string> buffers_;      // initializers that the file says are not trained
    bool says_buffers_ = false;                    // whether it says which these are
    bool for_training_ = false;                    // exported with the operators of training
    bool tells_copies_ = false;                    // tensors of the same values have names of their own
    std::int64_t opset_ = 0;
    Samples samples_ = Samples::first;
    std::int64_t batch_ = 1;
    std::optional<std::int64_t> batch_of_others_;
    bool open_batch_ = false, sized_batch_ = false, stores_weights_ = false;
    std::string batch_word_;
    const onnx::NodeProto* pairs_of_ = nullptr;
    std::vector<std::string> inputs_, outputs_;
    std::unordered_map<std::string, Value> given_;  // inputs and initializers
    std::unordered_map<std::string, Value> values_;
    std::unordered_map<std::string, std::vector<std::string>> sequences_;  // of known lengths, by what they hold
    std::unordered_map<const onnx::NodeProto*, std::string> why_;
    std::unordered_map<std::string, std::vector<const onnx::NodeProto*>> readers_;
    std::unordered_map<std::string, int> read_as_output_;
    std::unordered_map<std::string, std::vector<Value*>> made_of_;  // initializers that are forgotten
    std::map<std::string, int> notes_;
    std::unordered_map<std::string, Value> declared_;  // value_info: for operators that we do not know
};

}  // namespace rehearse::models
