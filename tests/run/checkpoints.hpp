// SPDX-License-Identifier: Apache-2.0
// Folders of checkpoints, and checkpoints that are alike.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "tests/run/networks_of_every_kind.hpp"

namespace rehearse::test {

using kernels::Communicator;

/// A network of branches by a plan of all ranks, eight samples each.
inline Schedule scheduled(std::string_view plan, Optimizer optimizer = Optimizer::adam,
                          Precision precision = Precision::fp32) {
    return schedule_of(branches(), plan, Communicator::world().size(), 8, optimizer, precision);
}

/// A folder for all ranks that is gone at the end.
class Folder {
public:
    Folder() {
        const Communicator world = Communicator::world();
        char name[] = "/tmp/rehearse_checkpoint_XXXXXX";
        if (world.rank() == 0) require(mkdtemp(name) != nullptr, "a folder for the test");
        world.broadcast(std::as_writable_bytes(std::span{name}), 0);
        path_ = name;
    }
    ~Folder() {
        const Communicator world = Communicator::world();
        world.barrier();
        if (world.rank() == 0) std::filesystem::remove_all(path_);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

inline void expect_equal(const run::Checkpoint& a, const run::Checkpoint& b) {
    ASSERT_EQ(a.layers.size(), b.layers.size());
    for (std::size_t i = 0; i < a.layers.size(); ++i) {
        SCOPED_TRACE("layer " + std::to_string(i));
        EXPECT_EQ(a.layers[i].weights, b.layers[i].weights);
        EXPECT_EQ(a.layers[i].momentum, b.layers[i].momentum);
        EXPECT_EQ(a.layers[i].second_moment, b.layers[i].second_moment);
        EXPECT_EQ(a.layers[i].statistics, b.layers[i].statistics);
        EXPECT_EQ(a.layers[i].lagged, b.layers[i].lagged);
    }
}

}  // namespace rehearse::test
