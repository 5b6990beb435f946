// SPDX-License-Identifier: Apache-2.0
// Tensors whose values live in f32 here and are handed to a kernel as 16-bit numbers, converted one by one by
// core/half.hpp.
#pragma once

#include <list>
#include <vector>

#include "core/half.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {

template <typename Half>
std::vector<float> rounded(const std::vector<float>& values) {
    std::vector<float> result;
    for (const float value : values) result.push_back(static_cast<float>(Half(value)));
    return result;
}

/// Runs a pass of type Half on `t`: tensors go in rounded, what the kernel leaves in them comes back.
template <typename Half>
class StoredRun {
public:
    explicit StoredRun(Tensors& t) : buffers(t.buffers()) {
        for (std::size_t i = 0; i < t.src.size(); ++i) {
            buffers.src[i] = store(t.src[i]);
            buffers.diff_src[i] = store(t.diff_src[i]);
        }
        buffers.dst = store(t.dst);
        buffers.dst_in = buffers.dst;
        buffers.weights = store(t.weights);
        buffers.diff_dst = store(t.diff_dst);
        buffers.diff_weights = store(t.diff_weights);
        buffers.momentum = store(t.momentum);
    }

    void run(Kernel& kernel) {
        kernel.run(buffers);
        for (Stored& each : stored_) {
            for (std::size_t i = 0; i < each.halves.size(); ++i) {
                (*each.values)[i] = static_cast<float>(each.halves[i]);
            }
        }
    }

    Buffers buffers;

private:
    struct Stored {
        std::vector<float>* values;
        std::vector<Half> halves;
    };

    View store(std::vector<float>& values) {
        stored_.push_back({&values, {}});
        for (const float value : values) stored_.back().halves.push_back(Half(value));
        return stored_.back().halves;
    }

    std::list<Stored> stored_;  // views point into them
};

template <typename Half>
void run_stored(Tensors& t, const Backend& backend, Pass pass) {
    StoredRun<Half> stored(t);
    stored.run(*backend.prepare({t.op, pass, t.batch, data_type<Half>()}));
}

}  // namespace rehearse::kernels
