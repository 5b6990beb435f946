// SPDX-License-Identifier: Apache-2.0
#include "models/price_models.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "core/error.hpp"
#include "core/file.hpp"
#include "models/kernel_samples.hpp"
#include "models/models.hpp"
#include "prices/convolution_price.hpp"
#include "prices/prices.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;

std::string message(const std::function<void()>& call) {
    try {
        call();
    } catch (const InputError& error) {
        return error.what();
    }
    return "no error";
}

const std::string conv_header = "device,precision,direction,W,H,C,N,K,R,S,pad_h,pad_w,stride_h,stride_w,time_us\n";

TEST(Csv, ReadsQuotesCommentsAndCarriageReturns) {
    const Csv table{"# said before\na,b\r\n1,\"x, \"\"y\"\"\"\r\n\n2,z\n", "t.csv"};
    ASSERT_EQ(table.size(), 2U);
    EXPECT_EQ(table.text(0, "b"), "x, \"y\"");
    EXPECT_EQ(table.whole(1, "a", 1), 2);
}

TEST(Csv, TakesBlanksBesideCommasAndNamesOtherSeparators) {
    const Csv table{"a, b\n 1 ,\n", "t.csv"};
    EXPECT_EQ(table.whole(0, "a", 1), 1);
    EXPECT_EQ(table.text(0, "b"), "");
    const Csv quoted{"a, b\n \"x, y \" , 12 \n", "t.csv"};
    EXPECT_EQ(quoted.text(0, "a"), "x, y ");
    EXPECT_EQ(quoted.text(0, "b"), "12");
    EXPECT_THAT(message([] { Csv{"a;b\n1;2\n", "t.csv"}; }), HasSubstr("t.csv:1: fields are separated by ';' here"));
    EXPECT_THAT(message([] { Csv{"a\tb\n1\t2\n", "t.csv"}; }), HasSubstr("separated by tabs here"));
}

TEST(Csv, TellsFileAndLineOfEveryMistake) {
    const auto read = [](const std::string& text) { return message([&] { read_samples(text, "t.csv"); }); };
    EXPECT_THAT(read(""), HasSubstr("t.csv: it is empty"));
    EXPECT_THAT(read(conv_header), HasSubstr("no rows"));
    EXPECT_THAT(read(conv_header + "V100,fp32,fwd,7\n"), HasSubstr("t.csv:2: 4 fields, the header in line 1 has 15"));
    EXPECT_THAT(read("device,precision,direction,W,H,C,N,K,R,S,pad_h,pad_w,stride_h,stride_w,times_us\n"
                     "V100,fp32,fwd,7,7,8,8,8,3,3,1,1,1,1,5\n"),
                HasSubstr("t.csv:1: no column 'time_us' (did you mean 'times_us'?)"));
    EXPECT_THAT(read(conv_header + "V100,fp32,fwd,7,7,8,8,8,3,3,1,1,1,1,5\nV100,fp32,fwd,7,7,-8,8,8,3,3,1,1,1,1,5\n"),
                HasSubstr("t.csv:3: C is '-8'"));
    EXPECT_THAT(read(conv_header + "V100,fp32,fwd,7,7,8,8,8,3,3,1,1,1,1,nan\n"),
                HasSubstr("t.csv:2: time_us is 'nan'"));
    EXPECT_THAT(read(conv_header + "V100,fp32,up,7,7,8,8,8,3,3,1,1,1,1,5\n"), HasSubstr("direction is 'up'"));
    EXPECT_THAT(read(conv_header + "V100,fp32,fwd,2,2,8,8,8,9,9,1,1,1,1,5\n"), HasSubstr("does not fit"));
    EXPECT_THAT(read(conv_header + "\"V100,fp32,fwd,2,2,8,8,8,9,9,1,1,1,1,5\n"), HasSubstr("t.csv:2: a quote"));
}

// y = W x in column-major: {m, k} x {k, n}; its gradients transpose one side each.
TEST(Samples, OfProductsAreTheLayersThatMakeThem) {
    const auto rows = read_samples(
        "device,precision,M,N,K,a_t,b_t,time_us\n"
        "V100,fp32,1000,32,2048,N,N,10\n"
        "V100,fp16_tc,2048,32,1000,T,N,10\n"
        "V100,fp32,1000,2048,32,N,T,10\n",
        "g.csv");
    const MatMul layer{1, 1000, 2048, false};
    EXPECT_EQ(rows.at(0).sample.problem, (Problem{layer, Pass::forward, 32, DataType::f32}));
    EXPECT_EQ(rows.at(1).sample.problem, (Problem{layer, Pass::backward_data, 32, DataType::f16}));
    EXPECT_EQ(rows.at(2).sample.problem, (Problem{layer, Pass::backward_weights, 32, DataType::f32}));
    EXPECT_DOUBLE_EQ(rows.at(2).sample.time.value, 1e-5);
    EXPECT_THAT(message([] { read_samples("device,precision,M,N,K,a_t,b_t,time_us\nV,p,1,1,1,T,T,1\n", "g.csv"); }),
                HasSubstr("g.csv:2: a_t and b_t"));
}

// GRUs reset as cuDNN's do, and AMD's sheets have both backward passes in one figure.
TEST(Samples, OfRecurrentLayersAreTheirSteps) {
    const std::string header = "device,precision,cell,direction,hidden,N,timesteps,time_us\n";
    const auto rows = read_samples(
        header + "V100,fp32,gru,bwd_weights,1536,32,187,5000\nMI25,fp32,vanilla,bwd_total,8,2,3,9\n", "r.csv");
    const Recurrent gru{.cell = "gru", .steps = 187, .inputs = 1536, .hidden = 1536, .reset_after = true};
    EXPECT_EQ(rows.at(0).sample.problem, (Problem{gru, Pass::backward_weights, 32, DataType::f32}));
    EXPECT_EQ(rows.at(0).pass, "backward_weights");
    const Recurrent plain{.cell = "rnn", .steps = 3, .inputs = 8, .hidden = 8};
    EXPECT_EQ(rows.at(1).sample.problem, (Problem{plain, Pass::backward_data, 2, DataType::f32}));
    EXPECT_EQ(rows.at(1).pass, "backward");
    EXPECT_THAT(message([&] { read_samples(header + "V100,fp32,qrnn,fwd,8,2,3,9\n", "r.csv"); }),
                HasSubstr("r.csv:2: cell is 'qrnn', it is one of vanilla, gru, lstm"));
}

TEST(PriceModels, AreThereForEveryDeviceThatWasMeasured) {
    EXPECT_THAT(price_models(),
                testing::IsSupersetOf({"v100", "v100-cudnn7.3", "p100", "titanx-maxwell", "titanx-pascal", "knl7250"}));
    for (const ShippedKernels& shipped : shipped_kernels()) {
        SCOPED_TRACE(shipped.model + " " + shipped.kernels.kind);
        // Of AMD's cards the sheets have the backward passes of recurrent layers only together.
        EXPECT_GE(shipped.kernels.samples.size(), shipped.kernels.kind == "recurrent" ? 37U : 111U);
        const bool known = shipped.family == "gpu" && shipped.kernels.kind == "conv2d";
        ASSERT_EQ(shipped.kernels.experts.size(), known ? 3U : 2U);
        EXPECT_EQ(shipped.kernels.experts.back().bound, known ? LowerBound::library : LowerBound::in_turn);
        EXPECT_THAT(shipped.kernels.source, HasSubstr("Baidu DeepBench"));
    }
    EXPECT_THAT(message([] { load_price_model("v10"); }), HasSubstr("(did you mean 'v100'?)"));
}

// What devices.csv says of a board's memory and of its library's kernels.
TEST(PriceModels, KnowWhatSetsTheirDevicesApart) {
    const std::set<std::string> gddr5{"titanx-maxwell", "titanx-pascal", "gtx1080ti", "titanxp", "m40"};
    for (const ShippedKernels& shipped : shipped_kernels()) {
        SCOPED_TRACE(shipped.model + " " + shipped.kernels.kind);
        const DeviceSheet& sheet = shipped.kernels.sheet;
        EXPECT_EQ(sheet.paged, gddr5.contains(shipped.model) && shipped.kernels.kind == "matmul");
        const ImageBlocks blocks = shipped.family != "gpu"                                    ? ImageBlocks::unknown
                                   : gddr5.contains(shipped.model) || shipped.model == "p100" ? ImageBlocks::several
                                                                                              : ImageBlocks::one;
        EXPECT_EQ(sheet.image_blocks, blocks);
    }
}

TEST(PriceModels, AreWrittenAsTheyAreRead) {
    std::string table = read_file(REHEARSE_SOURCE_DIR "/calibrate/deepbench/covariance.csv");
    EXPECT_EQ(table.substr(table.find("family,")), covariance_table(shipped_kernels()));
}

// The smallest time of a kernel that was measured twice in the sheets' own rows: 1x1 of 56x56, 64 -> 256, batch 8 and
// 16, on one V100 (da81ba7): the model must give back what it has seen, to the noise that it assumes.
TEST(PriceModels, GiveBackWhatTheyHaveSeen) {
    for (const ShippedKernels& shipped : shipped_kernels("v100")) {
        const KernelPrices prices{shipped.kernels};
        double worst = 0, sum = 0;
        for (const KernelSample& sample : shipped.kernels.samples) {
            const double error = std::abs(prices.at(sample.problem)->log_time - std::log(sample.time.value));
            worst = std::max(worst, error);
            sum += error;
        }
        EXPECT_LT(sum / static_cast<double>(shipped.kernels.samples.size()), 0.05);
        EXPECT_LT(worst, 0.5);
    }
}

// More work takes longer: doubling the batch, 1 to 256 images, of a layer of ResNet-50. 2 % for ripples in between.
TEST(PriceModels, GrowWithTheBatch) {
    for (const char* name : {"v100", "p100", "knl7250", "titanx-pascal"}) {
        const auto model = load_price_model(name);
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            Seconds before;
            for (std::int64_t batch = 1; batch <= 256; batch *= 2) {
                const Conv layer{128, 28, 28, 128, Window{3, 3, 1, 1, 1, 1, 1, 1}};
                const auto answer = model->answer({layer, pass, batch, DataType::f32});
                ASSERT_TRUE(answer);
                EXPECT_GT(answer->time.value, 0.98 * before.value) << name << " batch " << batch;
                before = answer->time;
            }
        }
    }
}

// Inception's 1x7 and 7x1: no fast transform is known for filters of one row, so none beats its multiplications at the
// data sheet's rate, as 3x3 and 5x5 do.
TEST(PriceModels, KnowNoFastAlgorithmOfFiltersOfOneRow) {
    const FlopRate peak{9.34e12};  // P100
    const auto model = load_price_model("p100");
    for (const Window& window : {Window{.kernel_h = 1, .kernel_w = 7, .pad_left = 3, .pad_right = 3},
                                 Window{.kernel_h = 7, .kernel_w = 1, .pad_top = 3, .pad_bottom = 3}}) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            const Conv layer{160, 17, 17, 160, window};
            EXPECT_GT(model->answer({layer, pass, 64, DataType::f32})->time, flops(layer, pass, 64) / peak);
        }
    }
}

// No sheet has 3-D convolutions: they are priced as the 2-D ones that are the same products, and no faster than the
// least of a library's algorithms without transforms, which no library has for volumes.
TEST(PriceModels, PriceVolumesAsTheirPlanesBelowEachOther) {
    const DeviceClass device = load_machine("summit").classes.at(0);
    const auto time = [&](const Op& op, Pass pass) { return price({op, pass, 2, DataType::f32}, device); };
    Window cube{.kernel_h = 2, .kernel_w = 2}, tall{.kernel_h = 4, .kernel_w = 2};
    cube.kernel_d = 2;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        // 62^3 outputs, as 62 x 62 rows of 62.
        const Op cubes = conv3d(16, 63, 63, 63, 16, cube), planes = Conv{16, 62 * 62 + 3, 63, 16, tall};
        const Price volume = time(cubes, pass);
        const Problem same{cubes, pass, 2, DataType::f32};
        EXPECT_EQ(volume.time, std::max(time(planes, pass).time, price_without_transforms(same, device)->time));
        EXPECT_THAT(volume.source, HasSubstr("DeepBench"));
        EXPECT_GE(volume.error, 0.4) << "volumes are not images";
        // Of one plane, it is that plane, but for the transforms that images have.
        const Window flat{.kernel_h = 5, .kernel_w = 5};
        const Seconds plane = time(conv3d(32, 1, 28, 28, 64, flat), pass).time;
        EXPECT_GE(plane, time(Conv{32, 28, 28, 64, flat}, pass).time);
        EXPECT_GE(plane, 2 * 2 * 24 * 24 * 64.0 * 32 * 25 / 15.7e12 * Seconds{1});
    }
    cube.stride_d = cube.stride_h = cube.stride_w = 2;
    const Price strided = time(conv3d(16, 63, 63, 63, 16, cube), Pass::forward);
    EXPECT_THAT(strided.source, HasSubstr("the least of a library's algorithms"));
    EXPECT_GE(strided.error, 0.45) << "nobody measured its like";
}

// Twice as wide and high, as decoders have it: forward it is a convolution's gradient of the images, whose forward pass
// is its own gradient. Its bias, 2 x 64 x 96 x 144 numbers that are read and written, comes on top.
TEST(PriceModels, PriceTransposedConvolutionsAsWhatTheyMirror) {
    const DeviceClass device = load_machine("summit").classes.at(0);
    const Window twice{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1};
    const auto time = [&](const Op& op, Pass pass) { return price({op, pass, 2, DataType::f32}, device).time; };
    ConvTranspose up{.channels = 128, .height = 48, .width = 72, .filters = 64, .window = twice};
    Window even = twice;
    even.pad_top = even.pad_left = 1;
    const Conv image{64, 96, 144, 128, even};
    EXPECT_EQ(time(up, Pass::forward), time(image, Pass::backward_data));
    EXPECT_EQ(time(up, Pass::backward_data), time(image, Pass::forward));
    EXPECT_EQ(time(up, Pass::backward_weights), time(image, Pass::backward_weights));
    const Seconds without = time(up, Pass::forward);
    up.bias = true;
    EXPECT_NEAR((time(up, Pass::forward) - without) / time(Bias{{64, 96, 144}, 0}, Pass::forward), 1, 1e-6);
}

// A filter with gaps cannot go by Winograd's transform: it is a product of nine taps, slower than the filter without,
// and no faster than one that gathers what it reads. By hand: 27,648 pixels and 256 filters are 864 tiles of 128 x 64,
// dealt out to 80 processors by twos: five waves and one of 64 lone tiles, 5.641 in all, each of 2 x 2 x 128 x 64 x
// (2,304 + 19.4) operations at 0.866 of 15.67 / 80 TFLOP/s: 2.5318 ms; 14.7 million values at 0.481 of 900 GB/s, 0.14
// ms, hold that up by their cubes, 0.1 us; 0.65 us for its start.
TEST(PriceModels, PriceDilatedConvolutionsAsTheirProducts) {
    const DeviceClass device = load_machine("summit").classes.at(0);
    const auto time = [&](const Op& op, Pass pass) { return price({op, pass, 2, DataType::f32}, device); };
    Conv gaps{256, 96, 144, 256, Window{3, 3, 1, 1, 4, 4, 4, 4, 4, 4}}, dense = gaps;
    dense.window = Window{3, 3, 1, 1, 1, 1, 1, 1};
    const Conv forward{9 * 256, 96, 144, 256, Window{}}, backward{256, 96, 144, 9 * 256, Window{}};
    EXPECT_LT(time(forward, Pass::forward).time, time(gaps, Pass::forward).time);
    EXPECT_NEAR((time(gaps, Pass::forward).time - device.launch.value).value, 2.5326e-3, 1e-6);
    EXPECT_GE(time(gaps, Pass::backward_data).time, time(backward, Pass::backward_data).time);
    EXPECT_THAT(time(gaps, Pass::forward).source, HasSubstr("DeepBench"));
    EXPECT_GT(time(gaps, Pass::forward).time, time(dense, Pass::forward).time);
    gaps.window.stride_h = gaps.window.stride_w = 2;
    EXPECT_THAT(time(gaps, Pass::forward).source, HasSubstr("roofline"));
}

TEST(PriceModels, AreUsedByTheMachinesThatNameThem) {
    const Problem layer{Conv{128, 28, 28, 128, Window{3, 3, 1, 1, 1, 1, 1, 1}}, Pass::forward, 32, DataType::f32};
    for (const char* name : {"summit", "cori-knl", "titanx-server"}) {
        const Machine machine = load_machine(name);
        EXPECT_THAT(price(layer, machine.classes.at(0)).source, HasSubstr("DeepBench")) << name;
        const Machine again = parse_machine(to_toml(machine), "again.toml");
        EXPECT_EQ(price(layer, again.classes.at(0)).time, price(layer, machine.classes.at(0)).time);
    }
    EXPECT_THAT(message([] {
                    parse_machine(
                        "name = \"x\"\n[[device]]\nname = \"d\"\nmemory = { value = \"1GB\", source = \"s\" }\n"
                        "price_model = \"v1000\"\n",
                        "x.toml");
                }),
                testing::AllOf(HasSubstr("x.toml:5"), HasSubstr("did you mean 'v100'?")));
}

// Half the share for convolutions without a transform: at measured shapes these take twice as long, and those of 3x3
// that move by one pixel as long. Their neighbours of the other sort say something of them, too: up to a tenth.
TEST(PriceModels, OfAnotherCardMaySlowWhatNoTransformFits) {
    const auto device = [](std::string_view more) {
        return parse_machine(
                   fmt::format("name = \"m\"\n[[device]]\nname = \"d\"\nlike = \"k80\"\nlikeness = {{ like = "
                               "\"titanx-maxwell\", processors = 13, fraction = 0.5, {}error = 0.05, source = "
                               "\"s\" }}\n[[node]]\nname = \"n\"\ndevices = [{{ class = \"d\", name = \"d\" }}]\n",
                               more),
                   "m.toml")
            .classes.at(0);
    };
    const DeviceClass even = device(""), slowed = device("product_fraction = 0.25, ");
    const auto ratio = [&](std::string_view problem) {
        const Problem asked = parse_problem(problem);
        return (price(asked, slowed).time - slowed.launch.value) / (price(asked, even).time - even.launch.value);
    };
    EXPECT_NEAR(ratio("conv2d:n16c512h7w7k2048r1s1:pad0:stride1:f32:forward"), 2, 0.2);
    EXPECT_NEAR(ratio("conv2d:n16c512h7w7k512r3s3:pad1:stride1:f32:forward"), 1, 0.1);
    EXPECT_EQ(ratio("matmul:n1m1024n1024k1024:f32:forward"), 1) << "cuBLAS' products are not meant";
    EXPECT_THAT(message([&] { device("product_fraction = 0, "); }), HasSubstr("must be above zero"));
    EXPECT_THAT(message([&] { device("product_fraction = 25, "); }), HasSubstr("0.25 for 25 %"));
    const std::string name = slowed.model->name();
    EXPECT_THAT(name, HasSubstr("product_fraction = 0.25")) << "it is written as it was read";
}

}  // namespace
}  // namespace rehearse::models
