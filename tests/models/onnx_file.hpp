// SPDX-License-Identifier: Apache-2.0
// Small ONNX files for tests, written with libonnx's own messages.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

namespace rehearse::models {

using Dims = std::vector<std::int64_t>;

inline std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Of this process alone, since ctest runs the cases side by side; it goes when the process ends.
struct Folder {
    std::string path = testing::TempDir() + "rehearse-onnx-" + std::to_string(getpid());
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() { std::filesystem::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

inline std::string write_file(const std::string& name, const std::string& bytes) {
    static const Folder folder;
    std::string path = folder.path + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
}

/// A graph that reads "x" and makes "y".
class OnnxFile {
public:
    explicit OnnxFile(const Dims& input, std::int64_t opset = 11) {
        model.set_ir_version(7);
        model.add_opset_import()->set_version(opset);
        tensor(model.mutable_graph()->add_input(), "x", &input);
        tensor(model.mutable_graph()->add_output(), "y", nullptr);
    }

    onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs, const std::string& output) {
        auto& added = *model.mutable_graph()->add_node();
        added.set_op_type(type);
        added.set_name("the_" + output);
        for (const auto& name : inputs) added.add_input(name);
        added.add_output(output);
        return added;
    }

    /// Of the graph's output.
    void say_shape(const Dims& dims) {
        auto& output = *model.mutable_graph()->mutable_output(0);
        const std::string name = output.name();
        tensor(&output, name, &dims);
    }

    OnnxFile& numbers(const std::string& name, const std::vector<float>& values) {
        auto& added = *model.mutable_graph()->add_initializer();
        added.set_name(name);
        added.set_data_type(onnx::TensorProto::FLOAT);
        if (values.size() != 1) added.add_dims(static_cast<std::int64_t>(values.size()));
        for (const float value : values) added.add_float_data(value);
        return *this;
    }

    /// Of a Constant node: no weights.
    OnnxFile& constant(const std::string& name, float value) {
        auto& attribute = *node("Constant", {}, name).add_attribute();
        attribute.set_name("value_float");
        attribute.set_type(onnx::AttributeProto::FLOAT);
        attribute.set_f(value);
        return *this;
    }

    OnnxFile& weights(const std::string& name, const Dims& dims) {
        auto& added = *model.mutable_graph()->add_initializer();
        added.set_name(name);
        added.set_data_type(onnx::TensorProto::FLOAT);
        for (const auto dim : dims) added.add_dims(dim);  // the importer never reads the values
        return *this;
    }

    OnnxFile& integers(const std::string& name, const Dims& values) {
        auto& added = *model.mutable_graph()->add_initializer();
        added.set_name(name);
        added.set_data_type(onnx::TensorProto::INT64);
        added.add_dims(static_cast<std::int64_t>(values.size()));
        for (const auto value : values) added.add_int64_data(value);
        return *this;
    }

    std::string save(const std::string& name) const { return write_file(name, model.SerializeAsString()); }

    onnx::ModelProto model;

private:
    static void tensor(onnx::ValueInfoProto* value, const std::string& name, const Dims* dims) {
        value->set_name(name);
        auto& type = *value->mutable_type()->mutable_tensor_type();
        type.set_elem_type(onnx::TensorProto::FLOAT);
        if (dims == nullptr) return;
        for (const auto dim : *dims) {
            auto& added = *type.mutable_shape()->add_dim();
            if (dim < 0) {
                added.set_dim_param("open");
            } else {
                added.set_dim_value(dim);
            }
        }
    }
};

inline void set(onnx::NodeProto& node, const std::string& name, const Dims& values) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const auto value : values) attribute.add_ints(value);
}

inline void set(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
}

inline void set_text(onnx::NodeProto& node, const std::string& name, const std::string& value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
}

/// Each layer's operator as a problem string has it.
inline std::vector<std::string> operators(const Network& network) {
    std::vector<std::string> all;
    for (const Layer& layer : network.layers) all.push_back(to_string(layer.op));
    return all;
}

/// Counts of each layer are not below zero, and its problem strings say the same when they are read again.
inline void expect_counts(const Network& network) {
    EXPECT_NO_THROW(check(network));
    for (const Layer& layer : network.layers) {
        SCOPED_TRACE(to_string(layer.op));
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            const Problem problem{computed(layer.op), pass, 3, DataType::f32};
            EXPECT_GE(flops(layer.op, pass, 3).value, 0);
            if (std::holds_alternative<Flatten>(layer.op)) continue;  // it computes nothing
            EXPECT_EQ(parse_problem(to_string(problem)), problem);
        }
    }
}

}  // namespace rehearse::models
