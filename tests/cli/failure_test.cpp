// SPDX-License-Identifier: Apache-2.0
// Codes as the command line promises them.
#include "cli/failure.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <new>
#include <vector>

#include "core/error.hpp"

namespace rehearse::cli {
namespace {

template <typename Error>
Failure of(const Error& error) {
    return failure_of(std::make_exception_ptr(error));
}

TEST(Failure, OfAUserIsWrongInput) {
    EXPECT_EQ(of(InputError{"--batch 0"}).code, 2);
    EXPECT_EQ(of(InputError{"--batch 0"}).text, "--batch 0");
    const Failure file = of(std::filesystem::filesystem_error{
        "status", "a/b", std::make_error_code(std::errc::too_many_symbolic_link_levels)});
    EXPECT_EQ(file.code, 2);
    EXPECT_THAT(file.text, testing::StartsWith("a/b: "));
}

TEST(Failure, OfTheMachineIsARefusal) {
    EXPECT_EQ(of(BackendError{"MPI_Send"}).code, 3);
    EXPECT_EQ(of(std::bad_alloc{}).code, 3);
    EXPECT_EQ(of(InfeasibleError{"does not fit"}).code, 4);
}

TEST(Failure, OfOursAsksForAReport) {
    EXPECT_EQ(of(std::logic_error{"sim/modes/exact.cpp:3: no rank waits"}).code, 5);
    EXPECT_EQ(of(std::out_of_range{"vector::at"}).code, 5);
    EXPECT_THAT(of(std::logic_error{"no rank waits"}).text, testing::HasSubstr("please report"));
}

}  // namespace
}  // namespace rehearse::cli
