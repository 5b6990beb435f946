// SPDX-License-Identifier: Apache-2.0
#include "core/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/error.hpp"

namespace rehearse {
namespace {

TEST(ReplaceFile, LeavesNothingButTheNewContent) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("rehearse_file_test_" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const std::string path = (folder / "a.txt").string();
    replace_file(path, "one");
    const std::string binary{"two\0three\n", 10};
    replace_file(path, binary);
    EXPECT_EQ(read_file(path), binary);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder}, std::filesystem::directory_iterator{}), 1);
    EXPECT_THROW(replace_file(folder.string(), "x"), InputError);
    EXPECT_THROW(replace_file((folder / "no" / "a.txt").string(), "x"), InputError);
    EXPECT_THROW(read_file(folder.string()), InputError);
    EXPECT_THROW(read_file((folder / "b.txt").string()), InputError);
    std::filesystem::remove_all(folder);
}

TEST(ReplaceFile, NeverReplacesADevice) {
    replace_file("/dev/null", "gone");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
    EXPECT_THROW(replace_file("/dev/full", "no room"), InputError);
}

// What only its owner could read stays so.
TEST(ReplaceFile, KeepsTheRightsOfWhatItReplaces) {
    const std::string path = std::filesystem::temp_directory_path() / ("rehearse_rights_" + std::to_string(getpid()));
    replace_file(path, "one");
    std::filesystem::permissions(path, std::filesystem::perms{0600});
    replace_file(path, "two");
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0600});
    std::filesystem::remove(path);
}

TEST(ReadFile, LeavesOutTheByteOrderMarkThatEditorsWrite) {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("rehearse_file_mark_" + std::to_string(getpid()));
    replace_file(path.string(), "\xef\xbb\xbfproblem\xef\xbb\xbf");
    EXPECT_EQ(read_file(path.string()), "problem\xef\xbb\xbf");
    std::filesystem::remove(path);
}

TEST(ReadFile, RefusesWhatMayNeverEnd) {
    EXPECT_THROW(read_file("/dev/zero"), InputError);
    const std::string pipe = std::filesystem::temp_directory_path() / ("rehearse_pipe_" + std::to_string(getpid()));
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THROW(read_file(pipe), InputError);
    std::filesystem::remove(pipe);
}

// A sparse file claims what no memory holds.
TEST(ReadFile, RefusesWhatIsTooLarge) {
    const std::string path = std::filesystem::temp_directory_path() / ("rehearse_large_" + std::to_string(getpid()));
    replace_file(path, "x");
    std::filesystem::resize_file(path, (std::uintmax_t{1} << 31U) + 1);
    EXPECT_THROW(read_file(path), InputError);
    std::filesystem::resize_file(path, 3);
    EXPECT_EQ(read_file(path), (std::string{"x\0\0", 3}));
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace rehearse
