// SPDX-License-Identifier: Apache-2.0
// A number that all ranks count on: who takes 17 is the only one who does.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/comm/communicator.hpp"

namespace rehearse::kernels {

/// Lies at rank 0, who need not do anything for it to be counted on by ranks of its host; over a network that has no
/// remote memory access, others wait until rank 0 is in a call of MPI. BackendError when MPI refuses.
class Counter {
public:
    /// Collective over `ranks`, whose lifetime is the longer one.
    explicit Counter(Communicator& ranks);
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    /// Collective, but after a failure.
    ~Counter();

    /// 0, 1, 2, ..., each to one rank.
    std::int64_t take();
    /// Collective: from 0 again. Nobody takes before all have come.
    void restart();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace rehearse::kernels
