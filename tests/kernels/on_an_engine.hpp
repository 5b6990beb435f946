// SPDX-License-Identifier: Apache-2.0
// Tests of the GPU's kernels on the host's engine, and on a GPU where there is one.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "kernels/cuda/engine.hpp"
#include "tests/kernels/cuda_host.hpp"

namespace rehearse::kernels::cuda {

struct Place {
    const char* name;
    int processors;  // of the host's engine; 0: a real GPU
};

inline void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

/// Of few processors rows have one block each, of many several.
inline constexpr Place places[] = {{"HostOfFew", 1}, {"HostOfMany", 100}, {"Gpu", 0}};

class OnAnEngine : public testing::TestWithParam<Place> {
protected:
    void SetUp() override {
        if (GetParam().processors > 0) return;
#if REHEARSE_HAS_CUDA
        engine_ = &gpu();
        if (!engine_->refusal().empty()) GTEST_SKIP() << engine_->refusal();
#else
        GTEST_SKIP() << "built without CUDA";
#endif
    }
    HostEngine host_{GetParam().processors};
    Engine* engine_ = &host_;
};

}  // namespace rehearse::kernels::cuda
