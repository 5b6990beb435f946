// SPDX-License-Identifier: Apache-2.0
// Layers of images that networks have few of: normalization across channels, resizing.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Local response normalization, a thread a value: dst = src scale^-beta, and with a `diff` its gradient, to whose sum
/// every channel j that counts c among its neighbours adds diff_j src_j scale_j^(-beta - 1).
struct NormalizeAcross : PointWise {
    Values src, diff, dst;
    Divisor channels, area;
    std::int64_t size = 1;
    float alpha = 0, beta = 0, bias = 1;

    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t all = channels, c = i / area % channels, first = i - c * area;
            const float power = std::pow(scale(first, c), -beta);
            if (!diff) return dst.put(i, src.at(i) * power);
            float shared = 0;
            const std::int64_t above = size - 1 - below();  // a channel so far up is the last that counts c
            const std::int64_t end = c + below() + 1 < all ? c + below() + 1 : all;
            for (std::int64_t j = c - above > 0 ? c - above : 0; j < end; ++j) {
                const std::int64_t at = first + j * area;
                shared += diff.at(at) * src.at(at) * std::pow(scale(first, j), -beta - 1);
            }
            dst.put(i, diff.at(i) * power - 2 * alpha * beta / static_cast<float>(size) * src.at(i) * shared);
        });
    }

private:
    REHEARSE_BOTH std::int64_t below() const { return (size - 1) / 2; }
    REHEARSE_BOTH float scale(std::int64_t first, std::int64_t c) const {
        const std::int64_t begin = c - below() > 0 ? c - below() : 0;
        const std::int64_t all = channels, end = c - below() + size < all ? c - below() + size : all;
        float squares = 0;
        for (std::int64_t j = begin; j < end; ++j) {
            const float value = src.at(first + j * area);
            squares += value * value;
        }
        return bias + alpha / static_cast<float>(size) * squares;
    }
};

/// So much of one pixel.
struct Share {
    std::int32_t pixel = 0;
    float weight = 0;
};

/// dst[channel][pixel] = sum of shares [first[pixel], first[pixel + 1]) of src's pixels in that channel.
struct MixPixels : PointWise {
    Values src, dst;
    const std::int64_t* first = nullptr;
    const Share* shares = nullptr;
    std::int64_t from_area = 1;
    Divisor to_area;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        each_point(team, block, [&](std::int64_t i) {
            const std::int64_t channel = i / to_area, pixel = i - channel * to_area;
            float total = 0;
            for (std::int64_t s = first[pixel]; s < first[pixel + 1]; ++s) {
                total += shares[s].weight * src.at(channel * from_area + shares[s].pixel);
            }
            dst.put(i, total);
        });
    }
};

}  // namespace rehearse::kernels::cuda
