// SPDX-License-Identifier: Apache-2.0
// Checkpoints whose attributes and data sets are not what they should be: refused by name, nothing read past its end.
#include "run/data/hdf5.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "core/file.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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

// Files of before `scale_found`: a scale of 1 without good steps is what a run left that scaled nothing.
TEST_F(Hdf5, AScaleIsTakenForFoundWhereAnOlderFileHasOne) {
    EXPECT_FALSE(load(path_, schedule_).program.scale_found);
    {
        const H5 file = changed();
        ASSERT_GE(H5Adelete(file.id(), "scale_found"), 0);
    }
    EXPECT_FALSE(load(path_, schedule_).program.scale_found);
    replace("good_steps", 3);
    EXPECT_TRUE(load(path_, schedule_).program.scale_found);
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

/// No file of this process may grow beyond `bytes` while this lives: the system then refuses to write, as on a full
/// disk.
class FullDisk {
public:
    explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
        const rlimit now{bytes, before_.rlim_max};
        EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
    }
    ~FullDisk() {
        EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
        EXPECT_NE(std::signal(SIGXFSZ, handler_), SIG_ERR);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

private:
    rlimit before_{};
    void (*handler_)(int);
};

TEST_F(Hdf5, AFileThatTheDiskHasNoRoomForLeavesTheOneBeforeAndSaysSo) {
    const std::vector<float> values(30000, 1.5F);
    const auto fill = [&](const H5& file) {
        write_attribute(file, "schema", std::string{"rehearse.weights/1"});
        write(make_group(file, "layer"), "weights", values);
        write(file, "last", values);
    };
    const std::string file = folder_ / "weights.h5";
    write_file(file, fill);
    const auto whole = std::filesystem::file_size(file);
    write_file(file, [](const H5&) {});
    const std::string before = read_file(file);
    for (rlim_t room = 1; room < whole; room += whole / 23) {
        const FullDisk disk{room};
        try {
            write_file(file, fill);
            ADD_FAILURE() << "written with room for " << room << " of " << whole << " bytes";
        } catch (const BackendError& error) {
            EXPECT_THAT(error.what(), StartsWith(file + ": "));
        }
        EXPECT_EQ(read_file(file), before) << room;
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder_}, {}), 2) << "nothing is left beside it";
    write_file(file, fill);
    EXPECT_EQ(floats_in(find(open_file(file), "last"), "last"), values);
}

TEST_F(Hdf5, TheSameNumbersMakeTheSameFile) {
    const auto fill = [](const H5& file) { write(make_group(file, "layer"), "weights", std::vector<float>(100, 2)); };
    write_file(folder_ / "a.h5", fill);
    std::this_thread::sleep_for(std::chrono::milliseconds{1100});  // times of objects are of seconds
    write_file(folder_ / "b.h5", fill);
    EXPECT_EQ(read_file(folder_ / "a.h5"), read_file(folder_ / "b.h5"));
}

}  // namespace
}  // namespace rehearse::run
