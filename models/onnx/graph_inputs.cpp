// SPDX-License-Identifier: Apache-2.0
// What is fed into an ONNX graph, which of its dimensions holds the samples, and its initializers.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

// A batch that is left open gets one of these sizes: whatever is a multiple of it holds the batch.
constexpr std::array primes{10007, 10009, 10037, 10039};

constexpr std::int64_t largest_batch = 1'000'000'000;  // as of a step

}  // namespace

void OnnxGraph::find_inputs(const ImportOptions& options) {
    std::unordered_set<std::string> initialized;
    for (auto& tensor : *model_.mutable_graph()->mutable_initializer()) {
        initialized.insert(tensor.name());
        const Value& value = given_[tensor.name()] = initializer(tensor, true);
        if (value.data) held_ += static_cast<double>(value.data->size());
        if (keeps_values_) std::string{}.swap(*tensor.mutable_raw_data());  // what it held is in the value
    }
    for (const auto& sparse : model_.graph().sparse_initializer()) {
        const auto& dims = sparse.dims();
        initialized.insert(sparse.values().name());
        Value value = initializer(sparse.values(), true);
        value.dims = Shape(dims.begin(), dims.end());
        value.data = nullptr;
        given_[sparse.values().name()] = value;
    }
    std::unordered_set<std::string> asked;
    for (const auto& value : model_.graph().input()) {
        if (initialized.contains(value.name())) continue;
        if (given_.contains(value.name())) fail(fmt::format("two inputs are called '{}'", value.name()));
        const auto& type = value.type().tensor_type();
        Value input{.kind = floating(type.elem_type()) ? Value::Kind::activation : Value::Kind::side,
                    .element = type.elem_type()};
        if (!value.type().has_tensor_type()) fail(fmt::format("input '{}' is not a tensor", value.name()));
        if (!type.has_shape()) fail(fmt::format("input '{}' has no shape of the form batch x ...", value.name()));
        if (type.elem_type() == onnx::TensorProto::STRING) fail(fmt::format("input '{}' holds strings", value.name()));
        input.dims.emplace();
        for (const auto& dim : type.shape().dim()) {
            std::int64_t size = dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : 0;
            const auto given = options.sizes.find(dim.dim_param());
            if (!dim.dim_param().empty() && given != options.sizes.end()) {
                size = given->second;
                asked.insert(dim.dim_param());
            }
            input.dims->push_back(size);
        }
        inputs_.push_back(value.name());
        given_[value.name()] = input;
    }
    if (inputs_.empty()) fail("it has no input: every tensor is a constant");
    for (const auto& [name, size] : options.sizes) {
        if (!asked.contains(name) && name != "batch") {
            fail(fmt::format("--sizes {}={}: no input has an open dimension of that name", name, size));
        }
    }
    find_batch(options);
    if (batch_ > largest_batch)
        fail(fmt::format("a batch of {} samples: at most {} are possible", batch_, largest_batch));
    // Weights that were left out of the file are fed in: what a node reads where weights belong.
    for (std::string& input : inputs_) {
        const Value& value = given_[input];
        double product = 1;
        for (std::size_t i = 0; i < value.dims->size(); ++i) {
            const std::int64_t dim = (*value.dims)[i];
            if (dim < 1) {
                const auto& graph_inputs = model_.graph().input();
                const auto proto =
                    std::ranges::find_if(graph_inputs, [&](const auto& each) { return each.name() == input; });
                const std::string name = proto->type().tensor_type().shape().dim(static_cast<int>(i)).dim_param();
                fail(fmt::format("input '{}': dimension {} ('{}') is left open; {}", input, i, name,
                                 name.empty() ? "export the network with fixed sizes"
                                              : fmt::format("give its size: --sizes {}=SIZE", name)));
            }
            product *= static_cast<double>(dim);
        }
        if (product / static_cast<double>(batch_) > largest_tensor)
            fail(fmt::format("input '{}' is impossibly large", input));
    }
}

// Which dimension of the inputs holds the samples: one that is called so, else the first.
void OnnxGraph::find_batch(const ImportOptions& options) {
    const auto& protos = model_.graph().input();
    const auto dim_of = [&](const std::string& input, std::size_t i) -> const onnx::TensorShapeProto_Dimension& {
        const auto proto = std::ranges::find_if(protos, [&](const auto& each) { return each.name() == input; });
        return proto->type().tensor_type().shape().dim(static_cast<int>(i));
    };
    std::string word;
    for (const std::string& input : inputs_) {
        for (std::size_t i = 0; i < given_[input].dims->size(); ++i) {
            const std::string& name = dim_of(input, i).dim_param();
            if (word.empty() && (name.find("batch") != std::string::npos || name == "N" || name == "n")) word = name;
        }
    }
    const Value& first = given_[inputs_.front()];
    if (first.dims->empty()) {
        batch_ = 1;
        return;
    }
    if (word.empty() && (first.dims->front() == 0 || dim_of(inputs_.front(), 0).has_dim_param()))
        word = dim_of(inputs_.front(), 0).dim_param();
    open_batch_ = !word.empty() || first.dims->front() == 0;
    batch_word_ = word;
    sized_batch_ = open_batch_ && !word.empty() && options.sizes.contains(word);
    if (sized_batch_ && samples_ == Samples::none) open_batch_ = false;
    const auto samples_at = [&](const std::string& input, std::size_t i) {
        return word.empty() ? i == 0 && (*given_[input].dims)[0] == 0 : dim_of(input, i).dim_param() == word;
    };
    if (open_batch_) {
        std::unordered_set<std::int64_t> fixed;
        for (const std::string& input : inputs_) {
            const std::size_t rank = given_[input].dims->size();
            bool open = false;
            for (std::size_t i = 0; i < rank; ++i) open = open || samples_at(input, i);
            if (!open) fixed.insert(rank == 0 ? 0 : given_[input].dims->front());
        }
        if (fixed.size() == 1 && *fixed.begin() > 0 && (!sized_batch_ || options.sizes.at(word) == *fixed.begin()))
            batch_of_others_ = *fixed.begin();
        if (samples_ == Samples::others) open_batch_ = false;
    }
    if (samples_ == Samples::others) {
        batch_ = *batch_of_others_;
    } else if (open_batch_) {
        const auto clashes = [&](std::int64_t prime) {
            for (const auto& [name, value] : given_) {
                for (const std::int64_t dim : value.dims.value_or(Shape{}))
                    if (dim > 0 && dim % prime == 0) return true;
            }
            return false;
        };
        batch_ = *std::ranges::find_if_not(primes, clashes);
    } else {
        batch_ = first.dims->front();
    }
    if (!open_batch_ && samples_ == Samples::none) {
        batch_ = 1;
        return;
    }
    // Of fixed sizes that differ in the first dimension, the second may be what all have in common (sequence first).
    std::size_t axis = 0;
    if (!open_batch_ && inputs_.size() > 1) {
        const auto same = [&](std::size_t i) {
            return std::ranges::all_of(inputs_, [&](const auto& each) {
                const Shape& dims = *given_[each].dims;
                return dims.size() > i && dims[i] == (*given_[inputs_.front()].dims)[i];
            });
        };
        if (samples_ == Samples::first && !same(0) && first.dims->size() > 1 && same(1)) {
            axis = 1;
            batch_ = (*first.dims)[1];
        }
    }
    if (!open_batch_ && samples_ == Samples::second && first.dims->size() > 2) {
        axis = 1;
        batch_ = (*first.dims)[1];
    }
    for (const std::string& input : inputs_) {
        Value& value = given_[input];
        for (std::size_t i = 0; i < value.dims->size() && value.batch < 0; ++i) {
            if (samples_at(input, i) || (!open_batch_ && i == axis && (*value.dims)[i] == batch_))
                value.batch = static_cast<int>(i);
        }
        if (value.batch >= 0) (*value.dims)[static_cast<std::size_t>(value.batch)] = batch_;
    }
}

Value OnnxGraph::initializer(const onnx::TensorProto& tensor, bool trained) const {
    Value value{.kind = Value::Kind::constant, .element = tensor.data_type()};
    value.dims = Shape(tensor.dims().begin(), tensor.dims().end());
    double product = 1;
    for (const std::int64_t dim : *value.dims) {
        if (dim < 0) fail(fmt::format("'{}' has a size of {}", tensor.name(), dim));
        product *= static_cast<double>(std::max<std::int64_t>(dim, 1));
    }
    if (product > largest_tensor)
        fail(fmt::format("'{}' is impossibly large: {}", tensor.name(), to_string(*value.dims)));
    value.data = data_of(tensor, keeps_values_ ? path_ : std::string{});
    // A single number without a name of its own is a constant of the program, unless it is a slope.
    const bool number = elements(*value.dims) == 1 && tensor.name().starts_with("onnx::") &&
                        std::ranges::none_of(model_.graph().node(), [&](const auto& node) {
                            return node.op_type() == "PRelu" && node.input_size() > 1 && node.input(1) == tensor.name();
                        });
    const bool buffer = says_buffers_ ? buffers_.contains(tensor.name()) : is_buffer(tensor.name(), value);
    if (trained && floating(value.element) && !number && elements(*value.dims) > 0 && !buffer)
        value.weights = {tensor.name()}, value.moved = true;
    return value;
}

}  // namespace rehearse::models
