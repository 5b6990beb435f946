// SPDX-License-Identifier: Apache-2.0
// Checkpoints whose attributes and data sets are not what they should be: refused by name, nothing read past its end.
#include "run/data/hdf5.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "core/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using testing::HasSubstr;

class Hdf5 : public testing::Test {
protected:
    Hdf5() : folder_(std::filesystem::temp_directory_path() / fmt::format("rehearse_hdf5_{}", ::getpid())) {
        std::filesystem::create_directories(folder_);
        Checkpoint state = empty_checkpoint(schedule_);
        state.steps = 1;
        state.program = {.loss_scale = 1, .made_scale = 1};
        save(folder_, state);
        path_ = newest(folder_).value();
        EXPECT_EQ(load(path_, schedule_).steps, 1);
    }
    ~Hdf5() override { std::filesystem::remove_all(folder_); }

    H5 changed() const { return {H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose}; }
    std::string refusal() const {
        try {
            load(path_, schedule_);
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), HasSubstr(path_.string()));
            return error.what();
        }
        return "accepted";
    }
    /// In place of the attribute: `count` values of `type`.
    void replace(const char* name, hid_t type, hsize_t count, const void* values) const {
        const H5 file = changed();
        ASSERT_GE(H5Adelete(file.id(), name), 0);
        const H5 space{H5Screate_simple(1, &count, nullptr), H5Sclose};
        const H5 attribute{H5Acreate2(file.id(), name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose};
        ASSERT_GE(H5Awrite(attribute.id(), type, values), 0);
    }
    void replace(const char* name, std::int64_t value) const {
        {
            const H5 file = changed();
            ASSERT_GE(H5Adelete(file.id(), name), 0);
        }
        write_attribute(changed(), name, value);
    }

    std::filesystem::path folder_, path_;
    Schedule schedule_ = test::schedule_of(test::branches(), "data", 1, 4);
};

TEST_F(Hdf5, AnAttributeOfSeveralValuesIsNotReadIntoOne) {
    const std::array<std::int64_t, 1000> many{};
    replace("steps", H5T_NATIVE_INT64, many.size(), many.data());
    EXPECT_THAT(refusal(), HasSubstr("'steps' has several values"));
}

TEST_F(Hdf5, AnAttributeOfSeveralTextsIsNotReadIntoOne) {
    const H5 type{H5Tcopy(H5T_C_S1), H5Tclose};
    H5Tset_size(type.id(), 8);
    const std::array<char, 8000> many{};
    replace("network", type.id(), 1000, many.data());
    EXPECT_THAT(refusal(), HasSubstr("'network' has several values"));
}

TEST_F(Hdf5, ATextOfVariableLengthIsNoPointerToRead) {
    {
        const H5 file = changed();
        ASSERT_GE(H5Adelete(file.id(), "network"), 0);
        const H5 type{H5Tcopy(H5T_C_S1), H5Tclose};
        H5Tset_size(type.id(), H5T_VARIABLE);
        const H5 space{H5Screate(H5S_SCALAR), H5Sclose};
        const H5 attribute{H5Acreate2(file.id(), "network", type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose};
        const char* text = "branches";
        ASSERT_GE(H5Awrite(attribute.id(), type.id(), static_cast<const void*>(&text)), 0);
    }
    EXPECT_THAT(refusal(), HasSubstr("'network' is not a text"));
}

TEST_F(Hdf5, CountsAreWhatCanBeCounted) {
    replace("steps", -5);
    EXPECT_THAT(refusal(), HasSubstr("says that -5 steps were done"));
    replace("steps", 1);
    replace("good_steps", std::int64_t{1} << 40);
    EXPECT_THAT(refusal(), HasSubstr("counts"));
    replace("good_steps", 0);
    EXPECT_EQ(refusal(), "accepted");
    const double scale = 0;
    {
        const H5 file = changed();
        ASSERT_GE(H5Adelete(file.id(), "loss_scale"), 0);
    }
    write_attribute(changed(), "loss_scale", scale);
    EXPECT_THAT(refusal(), HasSubstr("both are above 0"));
}

// Of ranks with states of their own nobody knows how many numbers there are: a sparse data set may claim any number.
TEST_F(Hdf5, ADataSetHasTheBytesThatItClaims) {
    const RankStates like{
        .network = schedule_.network.name, .optimizer = "sgd", .plan = "data=1:local=2", .steps = 1, .ranks = {{1, 2}}};
    save(folder_, like);
    {
        const H5 file = changed();
        ASSERT_GE(H5Ldelete(file.id(), "rank000000", H5P_DEFAULT), 0);
        const hsize_t claims = hsize_t{1} << 40U, chunk = 1024;
        const H5 space{H5Screate_simple(1, &claims, nullptr), H5Sclose};
        const H5 properties{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
        H5Pset_chunk(properties.id(), 1, &chunk);
        const H5 data{
            H5Dcreate2(file.id(), "rank000000", H5T_IEEE_F32LE, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
            H5Dclose};
        ASSERT_TRUE(data);
    }
    EXPECT_THAT([&] { load(path_, like); },
                testing::ThrowsMessage<InputError>(HasSubstr("claims 1099511627776 numbers")));
}

TEST_F(Hdf5, ADamagedGroupIsToldWithItsFile) {
    {
        const H5 file = changed();
        const std::string& name = schedule_.network.layers[1].name;
        ASSERT_GE(H5Ldelete(file.id(), name.c_str(), H5P_DEFAULT), 0);
    }
    EXPECT_THAT(refusal(), HasSubstr("has no layer 'a'"));
}

}  // namespace
}  // namespace rehearse::run
