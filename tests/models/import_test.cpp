// SPDX-License-Identifier: Apache-2.0
// Oracles: libonnx's own shape inference, the sizes of the tensors in the file, and the published parameter counts.
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/shape_inference/implementation.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string data(const std::string& file) { return std::string(REHEARSE_TEST_DATA) + "/onnx/" + file; }

onnx::ModelProto inferred(const std::string& path) {
    onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(bytes_of(path)));
    onnx::shape_inference::InferShapes(model);
    return model;
}

std::map<std::string, Shape> sample_shapes(const onnx::ModelProto& model) {
    std::map<std::string, Shape> shapes;
    for (const auto& value : model.graph().value_info())
        for (int i = 1; i < value.type().tensor_type().shape().dim_size(); ++i)
            shapes[value.name()].push_back(value.type().tensor_type().shape().dim(i).dim_value());
    return shapes;
}

std::int64_t product(const auto& dims) {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>{});
}

// Float initializers that some node reads (two files carry a forgotten one), and what each ConstantOfShape makes: its
// shape is an int64 initializer, raw and little-endian.
std::int64_t elements_of_weights(const onnx::ModelProto& model) {
    std::int64_t sum = 0;
    std::map<std::string, std::int64_t> made;
    std::set<std::string> read;
    for (const auto& node : model.graph().node()) read.insert(node.input().begin(), node.input().end());
    for (const auto& tensor : model.graph().initializer()) {
        if (tensor.data_type() == onnx::TensorProto::FLOAT && read.contains(tensor.name()))
            sum += product(tensor.dims());
        if (tensor.data_type() != onnx::TensorProto::INT64) continue;
        std::vector<std::int64_t> values(tensor.raw_data().size() / sizeof(std::int64_t));
        std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(std::int64_t));
        made[tensor.name()] = product(values);
    }
    for (const auto& node : model.graph().node())
        if (node.op_type() == "ConstantOfShape") sum += made.at(node.input(0));
    return sum;
}

struct File {
    const char* name;
    std::int64_t parameters;  // as published for the network
    std::size_t compared;     // nodes that are layers: all but generators, reshaped weights and the final Softmax
};

void PrintTo(const File& it, std::ostream* out) { *out << it.name; }

class LightModel : public testing::TestWithParam<File> {};

TEST_P(LightModel, HasTheShapesThatLibonnxInfers) {
    const std::string path = data(GetParam().name);
    const Network network = import_onnx(path);
    EXPECT_NO_THROW(check(network));
    const onnx::ModelProto model = inferred(path);
    const auto shapes = sample_shapes(model);
    std::size_t compared = 0;
    for (const auto& node : model.graph().node()) {
        const auto layer = find_layer(network, node.name());
        if (!layer || node.op_type() == "Softmax") continue;
        EXPECT_EQ(network.layers[static_cast<std::size_t>(*layer)].output, shapes.at(node.output(0))) << node.name();
        ++compared;
    }
    EXPECT_EQ(compared, GetParam().compared);
}

TEST_P(LightModel, HasTheParametersOfItsFileAndOfThePaper) {
    const std::string path = data(GetParam().name);
    const Network network = import_onnx(path);
    EXPECT_EQ(parameters(network), GetParam().parameters);
    EXPECT_EQ(parameters(network) + network.state, elements_of_weights(inferred(path)));
}

TEST_P(LightModel, EndsInALossOverAThousandClasses) {
    const Network network = import_onnx(data(GetParam().name));
    EXPECT_EQ(network.layers.back().op, Op{SoftmaxLoss{1000}});
    for (const Layer& layer : network.layers) EXPECT_NE(kind_of(layer.op), "softmax");
}

// 60,965,224: Caffe's two-column AlexNet. 1,235,496: SqueezeNet 1.1. ZFNet-512 (Zeiler and Fergus 2014 with 512 filters
// in the last three convolutions, as Caffe2 ships it), summed by hand: 96*3*49+96 + 256*96*25+256 + 512*256*9+512
// + 2*(512*512*9+512) + 4096*512*36+4096 + 1024*4096+1024 + 1000*1024+1000.
INSTANTIATE_TEST_SUITE_P(
    Files, LightModel,
    testing::Values(File{"light_bvlc_alexnet.onnx", 60'965'224, 23}, File{"light_inception_v1.onnx", 6'998'552, 142},
                    File{"light_resnet50.onnx", 25'557'032, 175}, File{"light_squeezenet.onnx", 1'235'496, 65},
                    File{"light_vgg19.onnx", 143'667'240, 45}, File{"light_zfnet512.onnx", 87'250'536, 21}),
    [](const auto& test) {
        const std::string name = test.param.name;
        return name.substr(0, name.find('.'));
    });

// (filters or features, inputs of one of them, height, width) of each layer with weights.
std::vector<Shape> shapes_of_weights(const Network& network) {
    std::vector<Shape> shapes;
    for (const Layer& layer : network.layers)
        if (kind_of(layer.op) == "conv2d" || kind_of(layer.op) == "matmul")
            shapes.push_back(weights(layer.op).front().shape);
    return shapes;
}

TEST(Zoo, AgreesWithTheFilesOnEveryTensorOfWeights) {
    for (const auto& [name, file] :
         {std::pair{"googlenet", "light_inception_v1.onnx"}, std::pair{"vgg19", "light_vgg19.onnx"}}) {
        EXPECT_EQ(shapes_of_weights(load_network(name)), shapes_of_weights(load_network(data(file)))) << name;
    }
}

// --- files that are not networks

TEST(BadFile, IsRefusedWhereverItIsCutOff) {
    const std::string whole = bytes_of(data("light_bvlc_alexnet.onnx"));
    ASSERT_GT(whole.size(), 3000u);
    // Every length near both ends, every 17th between.
    for (std::size_t size = 0; size < whole.size(); size += size < 64 || size + 64 > whole.size() ? 1 : 17) {
        const std::string path = write_file("cut.onnx", whole.substr(0, size));
        EXPECT_THROW(import_onnx(path), InputError) << size << " bytes";
    }
}

TEST(BadFile, DamagedBytesAreRefusedOrHarmless) {
    const std::string whole = bytes_of(data("light_bvlc_alexnet.onnx"));
    unsigned state = 1;  // a linear congruential generator: the same damage on every run
    const auto next = [&] { return state = state * 1664525U + 1013904223U, state >> 8; };
    int refused = 0;
    for (int round = 0; round < 400; ++round) {
        std::string bytes = whole;
        for (int i = 0; i < 3; ++i) bytes[next() % bytes.size()] = static_cast<char>(next());
        try {
            check(import_onnx(write_file("damaged.onnx", bytes)));
        } catch (const InputError&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 40);
}

TEST(BadFile, SaysWhatItIs) {
    EXPECT_THAT([] { import_onnx("/no/such.onnx"); }, ThrowsMessage<InputError>(HasSubstr("No such file")));
    EXPECT_THAT([] { import_onnx(testing::TempDir()); }, ThrowsMessage<InputError>(HasSubstr("is a directory")));
    EXPECT_THAT([] { import_onnx(write_file("empty.onnx", "")); },
                ThrowsMessage<InputError>(HasSubstr("empty.onnx: the file is empty")));
    EXPECT_THAT([] { import_onnx(write_file("text.onnx", "name = \"summit\"\n")); },
                ThrowsMessage<InputError>(HasSubstr("not an ONNX file, or cut off")));
}

TEST(BadFile, PrintsNothingByItself) {
    testing::internal::CaptureStderr();
    EXPECT_THROW(import_onnx(write_file("cut.onnx", bytes_of(data("light_vgg19.onnx")).substr(0, 500))), InputError);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// --- operators we do not know

OnnxFile with_unknown() {
    OnnxFile file({1, 3, 8, 8});
    file.model.add_opset_import()->set_domain("org.example");
    file.weights("slope", {3, 1, 1});
    file.node("Fancy", {"x", "slope"}, "y").set_domain("org.example");
    file.say_shape({1, 3, 8, 8});
    return file;
}

TEST(UnknownOperator, IsNamedWithItsNodeAndTheWayOut) {
    const std::string path = with_unknown().save("fancy.onnx");
    EXPECT_THAT([&] { import_onnx(path); },
                ThrowsMessage<InputError>(
                    AllOf(HasSubstr("fancy.onnx"), HasSubstr("Fancy node 'the_y'"), HasSubstr("--allow-unknown"))));
}

TEST(UnknownOperator, IsCostedByItsBytesWhenAllowed) {
    const Network network = import_onnx(with_unknown().save("fancy.onnx"), {.allow_unknown = true});
    ASSERT_EQ(network.layers.size(), 2u);
    EXPECT_EQ(network.layers[1].op, (Op{Unknown{"Fancy", 192, 3, {3, 8, 8}}}));
    EXPECT_NO_THROW(check(network));
}

TEST(UnknownOperator, OfUnknownShapeStaysAnError) {
    OnnxFile file({1, 3, 8, 8});
    file.model.add_opset_import()->set_domain("org.example");
    file.node("Mystery", {"x"}, "y").set_domain("org.example");
    EXPECT_THAT([&] { import_onnx(file.save("mystery.onnx"), {.allow_unknown = true}); },
                ThrowsMessage<InputError>(HasSubstr("Mystery node 'the_y': cannot be costed")));
}

}  // namespace
}  // namespace rehearse::models
