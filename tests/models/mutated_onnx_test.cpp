// SPDX-License-Identifier: Apache-2.0
// Damaged ONNX files: graphs whose nodes, names, sizes and attributes were changed by chance are refused with a
// message, or are networks that pass their check. Bytes alone rarely get past protobuf; these changes do.
// REHEARSE_FILES=N tries N files (a file is imported in one of three ways), REHEARSE_SEED=S others; what fails is kept
// and named.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/network.hpp"
#include "models/models.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

std::int64_t number(const char* variable, std::int64_t otherwise) {
    const char* const said = std::getenv(variable);
    return said == nullptr ? otherwise : std::atoll(said);
}

/// Small graphs that reach what the importer does: each is changed again and again.
std::vector<onnx::ModelProto> seeds() {
    std::vector<onnx::ModelProto> all;
    const auto take = [&](const std::filesystem::path& path) {
        onnx::ModelProto model;
        if (model.ParseFromString(bytes_of(path.string())) && model.graph().node_size() > 0) all.push_back(model);
    };
    for (const char* folder : {"onnx", "fuzz/onnx"})
        for (const auto& entry :
             std::filesystem::directory_iterator(std::filesystem::path{REHEARSE_TEST_DATA} / folder))
            if (entry.is_regular_file() && entry.file_size() < 40000) take(entry.path());
    std::ranges::sort(all, {}, [](const auto& model) { return model.ByteSizeLong(); });
    return all;
}

class Damage {
public:
    explicit Damage(std::uint64_t seed) : random_(seed) {}

    void change(onnx::ModelProto& model, const onnx::ModelProto& other) {
        for (std::int64_t left = 1 + pick(4); left > 0; --left) {
            using Way = void (Damage::*)(onnx::GraphProto&, const onnx::GraphProto&);
            constexpr std::array<Way, 12> ways{
                &Damage::other_input,   &Damage::other_type,    &Damage::other_attribute,  &Damage::more_attributes,
                &Damage::other_size,    &Damage::other_element, &Damage::no_node,          &Damage::node_again,
                &Damage::node_of_other, &Damage::other_number,  &Damage::other_input_size, &Damage::less_input};
            (this->*ways[pick(ways.size())])(*model.mutable_graph(), other.graph());
        }
        if (pick(20) == 0) model.mutable_opset_import(0)->set_version(static_cast<std::int64_t>(pick(22)));
    }
    std::size_t pick(std::size_t count) { return std::uniform_int_distribution<std::size_t>{0, count - 1}(random_); }

private:
    using Graph = onnx::GraphProto;
    std::int64_t integer() {
        constexpr std::array<std::int64_t, 16> some{0, 1,  -1, 2,  3,    4,     5,       7,
                                                    8, 16, 64, -2, 1000, 10007, 1 << 20, std::int64_t{1} << 40};
        return pick(40) == 0 ? std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(pick(2))
                             : some[pick(some.size())];
    }
    onnx::NodeProto& node(Graph& graph) {
        return *graph.mutable_node(static_cast<int>(pick(static_cast<std::size_t>(graph.node_size()))));
    }
    std::string name(const Graph& graph) {
        std::vector<std::string> all{""};
        for (const auto& each : graph.node()) all.insert(all.end(), each.output().begin(), each.output().end());
        for (const auto& each : graph.initializer()) all.push_back(each.name());
        for (const auto& each : graph.input()) all.push_back(each.name());
        return all[pick(all.size())];
    }
    void other_input(Graph& graph, const Graph&) {
        auto& one = node(graph);
        if (one.input_size() == 0) return one.add_input(name(graph));
        *one.mutable_input(static_cast<int>(pick(static_cast<std::size_t>(one.input_size())))) = name(graph);
    }
    void less_input(Graph& graph, const Graph&) {
        auto& one = node(graph);
        if (pick(3) == 0) return one.add_input(name(graph));
        if (one.input_size() > 0) one.mutable_input()->RemoveLast();
    }
    void other_type(Graph& graph, const Graph&) {
        constexpr std::array some{"Add",
                                  "Mul",
                                  "MatMul",
                                  "Gemm",
                                  "Conv",
                                  "ConvTranspose",
                                  "Reshape",
                                  "Transpose",
                                  "Slice",
                                  "Gather",
                                  "Concat",
                                  "Split",
                                  "Expand",
                                  "Tile",
                                  "Pad",
                                  "Resize",
                                  "Softmax",
                                  "ReduceMean",
                                  "ReduceSum",
                                  "TopK",
                                  "LSTM",
                                  "GRU",
                                  "RNN",
                                  "Loop",
                                  "If",
                                  "Einsum",
                                  "Where",
                                  "Cast",
                                  "Identity",
                                  "Squeeze",
                                  "Unsqueeze",
                                  "Flatten",
                                  "BatchNormalization",
                                  "InstanceNormalization",
                                  "LayerNormalization",
                                  "MaxPool",
                                  "AveragePool",
                                  "GlobalAveragePool",
                                  "PRelu",
                                  "Clip",
                                  "ScatterElements",
                                  "ScatterND",
                                  "GatherElements",
                                  "GatherND",
                                  "ConstantOfShape",
                                  "Range",
                                  "Shape",
                                  "DepthToSpace",
                                  "CumSum",
                                  "OneHot",
                                  "Trilu",
                                  "SequenceConstruct",
                                  "SequenceInsert",
                                  "ConcatFromSequence",
                                  "SequenceAt",
                                  "Dropout",
                                  "Relu",
                                  "Erf",
                                  "Pow",
                                  "Sqrt",
                                  "Div"};
        node(graph).set_op_type(some[pick(some.size())]);
    }
    void other_attribute(Graph& graph, const Graph&) {
        auto& one = node(graph);
        if (one.attribute_size() == 0) return;
        auto& attribute =
            *one.mutable_attribute(static_cast<int>(pick(static_cast<std::size_t>(one.attribute_size()))));
        if (pick(6) == 0) return attribute.Clear();
        if (attribute.ints_size() > 0 && pick(3) > 0) {
            attribute.set_ints(static_cast<int>(pick(static_cast<std::size_t>(attribute.ints_size()))), integer());
        } else if (attribute.ints_size() > 0) {
            pick(2) == 0 ? attribute.mutable_ints()->RemoveLast() : attribute.add_ints(integer());
        } else {
            attribute.set_i(integer());
            attribute.set_f(static_cast<float>(integer()));
        }
    }
    void more_attributes(Graph& graph, const Graph&) {
        constexpr std::array some{"axis", "axes",        "perm",       "group",      "keepdims",     "strides",
                                  "pads", "dilations",   "transA",     "transB",     "kernel_shape", "blocksize",
                                  "to",   "hidden_size", "num_groups", "batch_dims", "layout",       "split"};
        auto& attribute = *node(graph).add_attribute();
        attribute.set_name(some[pick(some.size())]);
        attribute.set_i(integer());
        for (std::size_t i = pick(4); i > 0; --i) attribute.add_ints(integer());
    }
    void other_size(Graph& graph, const Graph&) {
        if (graph.initializer_size() == 0) return;
        auto& tensor =
            *graph.mutable_initializer(static_cast<int>(pick(static_cast<std::size_t>(graph.initializer_size()))));
        if (tensor.dims_size() == 0 || pick(4) == 0) return tensor.add_dims(integer());
        if (pick(4) == 0) return tensor.mutable_dims()->RemoveLast();
        tensor.set_dims(static_cast<int>(pick(static_cast<std::size_t>(tensor.dims_size()))), integer());
    }
    void other_element(Graph& graph, const Graph&) {
        if (graph.initializer_size() == 0) return;
        auto& tensor =
            *graph.mutable_initializer(static_cast<int>(pick(static_cast<std::size_t>(graph.initializer_size()))));
        tensor.set_data_type(static_cast<int>(pick(17)));
        if (pick(3) == 0) tensor.mutable_raw_data()->resize(pick(64));
    }
    void other_number(Graph& graph, const Graph&) {
        if (graph.initializer_size() == 0) return;
        auto& tensor =
            *graph.mutable_initializer(static_cast<int>(pick(static_cast<std::size_t>(graph.initializer_size()))));
        if (tensor.int64_data_size() > 0)
            tensor.set_int64_data(static_cast<int>(pick(static_cast<std::size_t>(tensor.int64_data_size()))),
                                  integer());
        if (!tensor.raw_data().empty())
            (*tensor.mutable_raw_data())[pick(tensor.raw_data().size())] = static_cast<char>(pick(256));
    }
    void other_input_size(Graph& graph, const Graph&) {
        if (graph.input_size() == 0) return;
        auto& type = *graph.mutable_input(static_cast<int>(pick(static_cast<std::size_t>(graph.input_size()))))
                          ->mutable_type()
                          ->mutable_tensor_type();
        auto& shape = *type.mutable_shape();
        if (shape.dim_size() == 0 || pick(5) == 0) return shape.add_dim()->set_dim_value(integer());
        auto& dim = *shape.mutable_dim(static_cast<int>(pick(static_cast<std::size_t>(shape.dim_size()))));
        pick(4) == 0 ? dim.set_dim_param("batch") : dim.set_dim_value(integer());
        if (pick(8) == 0) type.set_elem_type(static_cast<int>(pick(17)));
    }
    void no_node(Graph& graph, const Graph&) {
        if (graph.node_size() > 1)
            graph.mutable_node()->DeleteSubrange(static_cast<int>(pick(static_cast<std::size_t>(graph.node_size()))),
                                                 1);
    }
    void node_again(Graph& graph, const Graph&) {
        const onnx::NodeProto copy = node(graph);
        auto& one = node(graph);
        const std::string made = one.output_size() > 0 ? one.output(0) : "";
        one = copy;
        if (one.output_size() > 0 && !made.empty()) one.set_output(0, made);
    }
    // In the place of one of ours, reading what ours makes.
    void node_of_other(Graph& graph, const Graph& other) {
        onnx::NodeProto copy = other.node(static_cast<int>(pick(static_cast<std::size_t>(other.node_size()))));
        auto& one = node(graph);
        for (auto& input : *copy.mutable_input()) input = name(graph);
        if (copy.output_size() > 0 && one.output_size() > 0) copy.set_output(0, one.output(0));
        one = copy;
    }

    std::mt19937_64 random_;
};

// Empty where all is well.
std::string what_is_wrong(const onnx::ModelProto& model, std::size_t way) {
    ImportOptions options;
    options.allow_unknown = options.unfold = way == 1;
    options.values = way == 2;
    const std::string path = write_file("mutated.onnx", model.SerializeAsString());
    try {
        check(import_onnx(path, options));
    } catch (const InputError& error) {
        return std::string_view{error.what()}.starts_with(path)
                   ? ""
                   : std::string("a message without the file's name: ") + error.what();
    } catch (const InfeasibleError&) {
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

TEST(DamagedFiles, AreRefusedWithAMessageOrAreNetworks) {
    const std::vector<onnx::ModelProto> whole = seeds();
    ASSERT_GE(whole.size(), 5U);
    const std::int64_t files = number("REHEARSE_FILES", 500);
    const auto seed = static_cast<std::uint64_t>(number("REHEARSE_SEED", 1));
    for (std::int64_t i = 0; i < files; ++i) {
        Damage damage{seed * 1'000'000'007U + static_cast<std::uint64_t>(i)};
        onnx::ModelProto model = whole[damage.pick(whole.size())];
        damage.change(model, whole[damage.pick(whole.size())]);
        const std::string wrong = what_is_wrong(model, damage.pick(3));
        if (wrong.empty()) continue;
        const std::string kept = testing::TempDir() + "damaged.onnx";
        std::ofstream(kept, std::ios::binary) << model.SerializeAsString();
        FAIL() << "file " << i << " of seed " << seed << ", kept in " << kept << ": " << wrong;
    }
}

}  // namespace
}  // namespace rehearse::models
