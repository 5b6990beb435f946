// SPDX-License-Identifier: Apache-2.0
// LAMB (You et al. 2020, algorithm 2): Adam's direction for each tensor, taken as far as the tensor is long. Tensors
// are cut into pieces, so that a large one has many blocks; norms are sums of the pieces' in their order.
#pragma once

#include <cmath>

#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// Elements [begin, end) of all weights.
struct LambPiece {
    std::int64_t begin = 0, end = 0, tensor = 0;
};

/// What a step of LAMB is told; `rows` are pieces. The moments are corrected for their start from 0.
struct LambDirection : RowWise<2> {
    Values weights, momentum, second_moment;
    const LambPiece* pieces = nullptr;
    float* squares = nullptr;  // of each piece: those of the weights, those of the direction
    float* ratios = nullptr;   // of each tensor
    float factor = 0, second_factor = 0, first = 1, second = 1, decay = 0, epsilon = 0, rate = 0;

    REHEARSE_BOTH float direction(std::int64_t i) const {
        const float divisor = std::sqrt(second * second_moment.at(i)) + epsilon;
        return first * momentum.at(i) / divisor + decay * weights.at(i);
    }
};

/// The moments move; squares of each piece.
struct LambMoments : LambDirection {
    Values diff;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const LambPiece piece = pieces[block.x];
        team.each([&](int thread, auto&) {
            float length = 0, distance = 0;
            for (std::int64_t i = piece.begin + thread; i < piece.end; i += threads) {
                const float gradient = diff.at(i), weight = weights.at(i);
                momentum.put(i, factor * momentum.at(i) + (1 - factor) * gradient);
                second_moment.put(i, second_factor * second_moment.at(i) + (1 - second_factor) * gradient * gradient);
                const float step = direction(i);
                length += weight * weight;
                distance += step * step;
            }
            team.shared().of[0][thread] = length;
            team.shared().of[1][thread] = distance;
        });
        this->add_up(team, 0);
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            if (thread < 2) squares[2 * block.x + thread] = team.shared().of[thread][0];
        });
    }
};

/// How much further than the direction each tensor goes; `rows` are tensors, pieces [first[t], first[t + 1]) are t's.
struct LambRatios : RowWise<2> {
    const float* squares = nullptr;
    const std::int64_t* first = nullptr;
    float* ratios = nullptr;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        team.each([&](int thread, auto&) {
            float sums[2] = {0, 0};
            for (std::int64_t piece = first[block.x] + thread; piece < first[block.x + 1]; piece += threads) {
                for (int s = 0; s < 2; ++s) sums[s] += squares[2 * piece + s];
            }
            for (int s = 0; s < 2; ++s) team.shared().of[s][thread] = sums[s];
        });
        this->add_up(team, 0);
        this->add_up(team, 1);
        team.alone([&](int thread, auto&) {
            if (thread != 0) return;
            const float weights = team.shared().of[0][0], steps = team.shared().of[1][0];
            ratios[block.x] = weights > 0 && steps > 0 ? std::sqrt(weights / steps) : 1.0F;
        });
    }
};

struct LambStep : LambDirection {
    Values copy;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const LambPiece piece = pieces[block.x];
        team.alone([&](int thread, auto&) {
            for (std::int64_t i = piece.begin + thread; i < piece.end; i += threads) {
                const float made = weights.at(i) - rate * ratios[piece.tensor] * direction(i);
                weights.put(i, made);
                if (copy) copy.put(i, made);
            }
        });
    }
};

}  // namespace rehearse::kernels::cuda
