// SPDX-License-Identifier: Apache-2.0
// How a test program runs on all ranks of a job: each rank runs every case, and the job fails when one rank does.
#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "kernels/comm/communicator.hpp"

namespace rehearse::test {

/// Ranks but the first print only what fails, so that a test's output is read once.
class FailuresOnly : public testing::EmptyTestEventListener {
public:
    explicit FailuresOnly(std::int64_t rank) : rank_(rank) {}
    void OnTestPartResult(const testing::TestPartResult& part) override {
        if (!part.failed()) return;
        std::cerr << "rank " << rank_ << ": " << (part.file_name() == nullptr ? "?" : part.file_name()) << ":"
                  << part.line_number() << ": " << part.message() << std::endl;
    }

private:
    std::int64_t rank_;
};

/// MPI must have been started. Exit code 0 on all ranks or on none.
inline int run_on_all_ranks(int& argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const kernels::Communicator world = kernels::Communicator::world();
    if (world.rank() != 0) {
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new FailuresOnly(world.rank()));
    }
    const double own = RUN_ALL_TESTS();
    double failed = 0;
    for (const double other : world.all_gather({&own, 1})) failed += other;
    return failed == 0 ? 0 : 1;
}

}  // namespace rehearse::test
