// SPDX-License-Identifier: Apache-2.0
// A backend that runs another one's kernels in its own way.
#pragma once

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// Says of itself what `backend`, which outlives it, says; how its kernels are made is left open.
class Delegate : public Backend {
public:
    explicit Delegate(const Backend& backend) : backend_(backend) {}
    std::string_view name() const override { return backend_.name(); }
    std::string_view algorithm() const override { return backend_.algorithm(); }
    Accumulation accumulation() const override { return backend_.accumulation(); }
    Support supports(const Problem& problem) const override { return backend_.supports(problem); }
    Bytes scratch(const Problem& problem, Bytes limit) const override { return backend_.scratch(problem, limit); }
    std::string version() const override { return backend_.version(); }
    std::int64_t workspace(const Op& op, std::int64_t batch) const override { return backend_.workspace(op, batch); }

protected:
    const Backend& backend_;
};

}  // namespace rehearse::kernels
