// SPDX-License-Identifier: Apache-2.0
// Samples of files and of the weather.
#include "run/data/samples.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "core/error.hpp"
#include "models/models.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/data/prefetch.hpp"
#include "run/program.hpp"

#if REHEARSE_HAS_HDF5
#include "run/data/hdf5.hpp"
#endif

namespace rehearse::run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Body>
std::string refusal(const Body& body) {
    try {
        body();
    } catch (const InputError& error) {
        return error.what();
    }
    return "accepted";
}

class Files : public testing::Test {
protected:
    Files() {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_samples_XXXXXX").string();
        folder_ = mkdtemp(name.data());
    }
    ~Files() override { std::filesystem::remove_all(folder_); }

    void write(const std::string& name, const std::string& bytes) const {
        std::ofstream{folder_ / name, std::ios::binary} << bytes;
    }
    static std::string idx(const std::vector<int>& sizes, const std::string& values) {
        std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
        for (const int size : sizes)
            bytes += std::string{'\0', '\0', static_cast<char>(size >> 8), static_cast<char>(size)};
        return bytes + values;
    }
    /// Three images of 28 x 28: image i has 51 * (i + 1) in its upper left corner, and the label i + 3.
    void write_digits() const {
        std::string pixels(3 * 28 * 28, '\0');
        for (int i = 0; i < 3; ++i) pixels[static_cast<std::size_t>(i) * 28 * 28] = static_cast<char>(51 * (i + 1));
        write("train-images-idx3-ubyte", idx({3, 28, 28}, pixels));
        write("train-labels-idx1-ubyte", idx({3}, "\x03\x04\x05"));
    }
    Samples open(const std::string& network = "lenet5") const {
        return {models::load_network(network), 1, "idx:" + folder_.string()};
    }

    std::filesystem::path folder_;
};

TEST(Blocks, AreFoundInThePlacesOfTheirNumbers) {
    // Rows 1 and 2, columns 2 to 4 of 4 x 5.
    const std::vector<std::int64_t> places{7, 8, 9, 12, 13, 14};
    const auto block = block_of({4, 5}, places);
    ASSERT_TRUE(block);
    EXPECT_THAT(block->first, ElementsAre(1, 2));
    EXPECT_THAT(block->size, ElementsAre(2, 3));
    EXPECT_FALSE(block_of({4, 5}, std::vector<std::int64_t>{7, 8, 12, 14}));
    EXPECT_FALSE(block_of({4, 5}, std::vector<std::int64_t>{8, 7}));
    EXPECT_FALSE(block_of({4, 5}, std::vector<std::int64_t>{}));
}

// LeNet-5 takes 32 x 32: two rows and columns of zeros on each side.
TEST_F(Files, DigitsAreFramedAndComeOnceAnEpoch) {
    write_digits();
    Samples samples = open();
    std::vector<float> input(32 * 32, -1);
    std::vector<std::int32_t> label(1);
    for (int epoch = 0; epoch < 2; ++epoch) {
        std::set<std::int32_t> seen;
        for (int i = 0; i < 3; ++i) {
            samples.fill(3 * epoch + i, input, {}, label);
            seen.insert(label[0]);
            EXPECT_EQ(input[2 * 32 + 2], static_cast<float>(51 * (label[0] - 2)) / 255);
            EXPECT_EQ(input[0], 0) << "what was there before is gone";
        }
        EXPECT_THAT(seen, ElementsAre(3, 4, 5));
    }
}

TEST_F(Files, WrongOnesAreRefusedWithTheReason) {
    const auto says = [&](const std::string& network = "lenet5") { return refusal([&] { open(network); }); };
    EXPECT_THAT(says(), HasSubstr("train-images-idx3-ubyte: no such file"));
    write_digits();
    EXPECT_EQ(says(), "accepted");
    EXPECT_THAT(says("resnet32"), HasSubstr("but the network takes 3x32x32"));
    write("train-labels-idx1-ubyte", idx({3}, "\x03\x04\x0a"));
    EXPECT_THAT(says(), HasSubstr("label 10 at place 2 is none of the network's classes, 0 to 9"));
    write("train-labels-idx1-ubyte", idx({2}, "\x03\x04"));
    EXPECT_THAT(says(), HasSubstr("not one label an image"));
    write("train-labels-idx1-ubyte", idx({3}, "\x03\x04"));
    EXPECT_THAT(says(), HasSubstr("has 10 bytes, not the 11"));
    write("train-labels-idx1-ubyte", "PK\x03\x04");
    EXPECT_THAT(says(), HasSubstr("not an IDX file of unsigned bytes"));
    const Network network = models::load_network("lenet5");
    EXPECT_THAT(refusal([&] { Samples(network, 1, "mnist"); }),
                HasSubstr("there are synthetic, climate, graphs, idx:FOLDER"));
    EXPECT_THAT(refusal([&] { Samples(network, 1, "climate"); }), HasSubstr("choose deeplabv3plus-small"));
}

#if REHEARSE_HAS_HDF5
TEST_F(Files, Hdf5RowsAreSamples) {
    const std::string path = (folder_ / "digits.h5").string();
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const auto write_set = [&](const char* name, std::vector<hsize_t> sizes, hid_t type, const void* values) {
        const hid_t space = H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
        const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Dclose(set);
        H5Sclose(space);
    };
    std::vector<double> data(2 * 32 * 32);  // other types of numbers are converted
    data[5] = 0.5;
    data[32 * 32 + 5] = 0.25;
    const std::vector<std::int64_t> labels{7, 8};
    write_set("data", {2, 1, 32, 32}, H5T_NATIVE_DOUBLE, data.data());
    write_set("labels", {2}, H5T_NATIVE_INT64, labels.data());
    H5Fclose(file);
    Samples samples{models::load_network("lenet5"), 1, path};
    std::vector<float> input(32 * 32);
    std::vector<std::int32_t> label(1);
    for (int i = 0; i < 2; ++i) {
        samples.fill(i, input, {}, label);
        EXPECT_EQ(input[5], label[0] == 7 ? 0.5F : 0.25F);
    }
    EXPECT_THAT(refusal([&] { Samples(models::load_network("resnet32"), 1, path); }),
                HasSubstr("has data of 2x1x32x32 and labels of 2; the network takes 3x32x32"));
    const std::string halves = (folder_ / "halves.h5").string();
    run::write_file(halves, [](const run::H5& to) {
        run::write(to, "data", std::vector<float>(2 * 32 * 32), {2, 1, 32, 32});
        run::write(to, "labels", std::vector<float>{3, 4.5F}, {2});
    });
    Samples of_floats{models::load_network("lenet5"), 1, halves, false};
    of_floats.fill(0, input, {}, label);
    EXPECT_EQ(label[0], 3);
    EXPECT_THAT(refusal([&] { of_floats.fill(1, input, {}, label); }), HasSubstr("has 4.5 where whole numbers"));
    write("text.h5", "not at all");
    EXPECT_THAT(refusal([&] { Samples(models::load_network("lenet5"), 1, (folder_ / "text.h5").string()); }),
                HasSubstr("not an HDF5 file"));
}

// Ids, their mask as numbers, of which three of four are taken, and labels of which one asks for nothing.
TEST_F(Files, SeveralInputsAreADataSetEach) {
    Network network{.name = "masked", .layers = {}};
    const auto add = [&](std::string name, Op op, std::vector<int> inputs) {
        Shape output = output_shape(op);
        network.layers.push_back({std::move(name), std::move(op), std::move(inputs), std::move(output)});
        return static_cast<int>(network.layers.size()) - 1;
    };
    const int words = add("words", Embedding{3, 9, 4}, {add("input", Input{{3}, 9}, {})});
    const int mask = add("mask", Input{{3}}, {});
    const int seen =
        add("seen", Elementwise{"mul", {3, 4}, {{3, 4}, {3, 1}}}, {words, add("column", Flatten{{3}, {3, 1}}, {mask})});
    add("loss", SoftmaxLoss{.classes = 4, .rows = 3}, {seen});
    Given some;
    some.places = {{1, 2, 3}};
    network.layers[static_cast<std::size_t>(mask)].given = std::make_shared<const Given>(some);
    check(network);
    const std::string path = (folder_ / "masked.h5").string(), wrong = (folder_ / "wrong.h5").string();
    const auto write_sets = [](const std::string& to, float last) {
        const H5 file{H5Fcreate(to.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose};
        write_plain(file, "tokens", std::vector<float>{1, 2, 3, 4, 5, last}, {2, 3});
        write_plain(file, "mask", std::vector<float>{9, 1, 1, 0, 9, 0, 1, 0}, {2, 4});
        write_plain(file, "labels", std::vector<float>{0, 1, 2, 3, -7, 0}, {2, 3});
    };
    write_sets(path, 6);
    Samples samples{network, 1, path, false, -7};
    std::vector<float> numbers(3);
    std::vector<std::int32_t> ids(3), labels(3);
    samples.fill(1, numbers, ids, labels);
    EXPECT_THAT(numbers, ElementsAre(0, 1, 0));
    EXPECT_THAT(ids, ElementsAre(4, 5, 6));
    EXPECT_THAT(labels, ElementsAre(3, -1, 0));
    EXPECT_THAT(refusal([&] { Samples(network, 1, path, false).fill(1, numbers, ids, labels); }),
                HasSubstr("label -7 at place 1 is none"));
    write_sets(wrong, 9);
    EXPECT_THAT(refusal([&] { Samples(network, 1, wrong, false, -7).fill(1, numbers, ids, labels); }),
                HasSubstr("sample 1: 'tokens' 2 is 9: the network's are 0 to 8"));
    network.layers[static_cast<std::size_t>(mask)].name = "padding";
    EXPECT_THAT(refusal([&] { Samples(network, 1, path); }), HasSubstr("has no data set 'padding' or 'data'"));
}

TEST_F(Files, ABlockOfAnHdf5SampleIsReadByItself) {
    const std::string path = (folder_ / "digits.h5").string();
    std::vector<float> data(2 * 32 * 32);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    write_file(path, [&](const H5& file) {
        run::write(file, "data", data, {2, 1, 32, 32});
        run::write(file, "labels", std::vector<float>{7, 8}, {2});
    });
    Samples samples{models::load_network("lenet5"), 1, path, false};
    ASSERT_TRUE(samples.has_blocks());
    std::vector<float> block(2 * 3);
    std::vector<std::int32_t> label(1);
    samples.fill_block(1, {{0, 30, 4}, {1, 2, 3}}, block, label);
    EXPECT_THAT(block, ElementsAre(1024 + 964, 1024 + 965, 1024 + 966, 1024 + 996, 1024 + 997, 1024 + 998));
    EXPECT_EQ(label.front(), 8);
    write_digits();
    EXPECT_FALSE(open().has_blocks());
}

// A network that scores, behind each of four tokens of 9, the next one.
Network of_words(std::int64_t rows = 4) {
    Network network{"words",
                    {{"input", Input{{4}, 9}, {}, {4}},
                     {"table", Embedding{4, 9, 5}, {0}, {4, 5}},
                     {"scores", MatMul{.m = 4, .n = 9, .k = 5}, {1}, {4, 9}}}};
    if (rows == 4) network.layers.push_back({"loss", SoftmaxLoss{.classes = 9, .rows = 4}, {2}, {1}});
    check(network);
    return network;
}

class Tokens : public Files {
protected:
    void write_tokens(const std::vector<hsize_t>& sizes, const std::vector<int>& values, const char* name = "tokens") {
        const hid_t file = std::filesystem::exists(path_)
                               ? H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                               : H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        const hid_t space = H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr);
        const hid_t set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
        H5Dclose(set);
        H5Sclose(space);
        H5Fclose(file);
    }
    std::vector<std::int32_t> read(int sample, Samples samples) {
        std::vector<std::int32_t> ids(4), labels(4);
        samples.fill(sample, {}, ids, labels);
        ids.insert(ids.end(), labels.begin(), labels.end());
        return ids;
    }
    std::string path_ = (folder_ / "words.h5").string();
};

TEST_F(Tokens, OfATextEachSampleIsFollowedByItsLabels) {
    write_tokens({10}, {1, 2, 3, 4, 5, 6, 7, 8, 0, 1});
    const auto samples = [&] { return Samples{of_words(), 1, path_, false}; };
    EXPECT_THAT(read(0, samples()), ElementsAre(1, 2, 3, 4, 2, 3, 4, 5));
    EXPECT_THAT(read(1, samples()), ElementsAre(5, 6, 7, 8, 6, 7, 8, 0));
    EXPECT_THAT(read(2, samples()), ElementsAre(1, 2, 3, 4, 2, 3, 4, 5));  // over again, in the given order
}

TEST_F(Tokens, RowsHaveOneTokenMoreOrLabelsOfTheirOwn) {
    write_tokens({2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 0, 1});
    EXPECT_THAT(read(1, {of_words(), 1, path_, false}), ElementsAre(6, 7, 8, 0, 7, 8, 0, 1));
    path_ = (folder_ / "both.h5").string();
    write_tokens({1, 4}, {1, 2, 3, 4});
    write_tokens({1, 4}, {8, 7, 6, 5}, "labels");
    EXPECT_THAT(read(0, {of_words(), 1, path_, false}), ElementsAre(1, 2, 3, 4, 8, 7, 6, 5));
}

TEST_F(Tokens, WhatIsNoSampleIsRefused) {
    write_tokens({2, 6}, std::vector<int>(12, 1));
    EXPECT_THAT(refusal([&] { Samples(of_words(), 1, path_); }),
                HasSubstr("tokens of 2x6 and no labels; the network takes"));
    path_ = (folder_ / "large.h5").string();
    write_tokens({5}, {1, 2, 9, 4, 5});
    EXPECT_THAT(refusal([&] { read(0, {of_words(), 1, path_, false}); }), HasSubstr("is 9"));
    EXPECT_THAT(refusal([&] { Samples(of_words(), 1, "climate"); }), HasSubstr("a data set 'tokens'"));
}
#endif

TEST(FloodFill, ReachesNeighboursAndNothingElse) {
    const std::string map =
        "##.#"
        ".#.#"
        ".##."
        "...#";
    std::vector<bool> mask;
    for (const char c : map) mask.push_back(c == '#');
    EXPECT_THAT(flood_fill(mask, 4, 4, 0), ElementsAre(0, 1, 5, 9, 10));
    EXPECT_THAT(flood_fill(mask, 4, 4, 3), ElementsAre(3, 7));
    EXPECT_THAT(flood_fill(mask, 4, 4, 15), ElementsAre(15));
}

// What was planted is the oracle: labels come from the fields alone.
TEST(Climate, LabelsFindWhatWasPlanted) {
    const Climate climate{{16, 48, 72}, 5};
    std::vector<std::int32_t> labels(48 * 72);
    std::array<double, 3> count{};
    int cyclones = 0, found = 0, rivers = 0, followed = 0, invented = 0;
    for (int i = 0; i < 200; ++i) {
        climate.fill(i, {}, labels);
        for (const std::int32_t label : labels) ++count.at(static_cast<std::size_t>(label));
        const Weather weather = climate.weather(i);
        const auto at = [&](double x, double y) {
            return labels[static_cast<std::size_t>(std::lround(y)) * 72 + static_cast<std::size_t>(std::lround(x))];
        };
        for (const Cyclone& each : weather.cyclones) found += at(each.x, each.y) == cyclone, ++cyclones;
        for (const River& each : weather.rivers) followed += at(each.x, each.y) == river, ++rivers;
        if (weather.cyclones.empty()) invented += static_cast<int>(std::ranges::count(labels, cyclone));
        if (weather.rivers.empty()) invented += static_cast<int>(std::ranges::count(labels, river));
    }
    const double all = count[0] + count[1] + count[2];
    EXPECT_GT(count[background] / all, 0.95);
    EXPECT_GT(count[cyclone] / all, 0.001);
    EXPECT_GT(count[river] / all, 0.005);
    EXPECT_GT(cyclones, 50);
    EXPECT_EQ(found, cyclones);
    EXPECT_GE(followed, 0.9 * rivers) << "one may lie under a cyclone";
    EXPECT_EQ(invented, 0);
}

TEST(Climate, ChannelsAreOfTheSizeThatNetworksTake) {
    const Climate climate{{16, 48, 72}, 5};
    constexpr int samples = 40, area = 48 * 72;
    std::vector<float> map(16 * area), again(16 * area);
    std::vector<std::int32_t> labels(area);
    std::array<double, 16> sum{}, squares{};
    for (int i = 0; i < samples; ++i) {
        climate.fill(i, map, labels);
        for (std::size_t c = 0; c < 16; ++c) {
            for (std::size_t p = c * area; p < (c + 1) * area; ++p) sum[c] += map[p], squares[c] += map[p] * map[p];
        }
    }
    for (std::size_t c = 0; c < 16; ++c) {
        const double mean = sum[c] / (samples * area);
        EXPECT_NEAR(mean, 0, 0.4) << c;
        EXPECT_NEAR(std::sqrt(squares[c] / (samples * area) - mean * mean), 1, 0.4) << c;
    }
    climate.fill(samples - 1, again, labels);
    EXPECT_EQ(map, again);
}

TEST(MeanIou, OfThreeClassesByHand) {
    // rows: what it is, columns: what it was taken for.
    const std::vector<double> confusion{6, 2, 0,  //
                                        1, 3, 0,  //
                                        0, 0, 0};
    EXPECT_DOUBLE_EQ(mean_iou(confusion, 3), (6.0 / 9 + 3.0 / 6) / 2);
}

TEST(Prefetching, GivesEachStepInTurnAndHandsErrorsOn) {
    std::array<float, 2> rooms{};
    const std::array<ReadBatch, 2> batches{ReadBatch{.input = std::span{rooms}.first(1)},
                                           ReadBatch{.input = std::span{rooms}.last(1)}};
    Prefetch steps{2, 6, batches, [](int step, ReadBatch& batch) {
                       if (step == 5) throw InputError("no sixth step");
                       batch.input[0] = static_cast<float>(step);
                   }};
    for (int step = 2; step < 5; ++step) EXPECT_EQ(steps.next().input[0], static_cast<float>(step));
    EXPECT_THROW(steps.next(), InputError);
}

TEST(Prefetching, EndsEarlyWhereNobodyAsks) {
    const Prefetch steps{0, 100, {}, [](int, ReadBatch&) {}};
}

}  // namespace
}  // namespace rehearse::run
