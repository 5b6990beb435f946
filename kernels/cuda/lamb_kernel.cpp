// SPDX-License-Identifier: Apache-2.0
// A step of LAMB: its tensors in pieces, moments and squares of each, a ratio of each tensor, the step.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"

namespace rehearse::kernels::cuda {
namespace {

constexpr std::int64_t largest_piece = 1 << 14;

class LambKernel final : public DeviceKernel {
public:
    LambKernel(Engine& engine, const Problem& problem) : DeviceKernel(engine, problem) {}

private:
    void cut(std::span<const std::int64_t> sizes) {
        if (std::ranges::equal(sizes, sizes_)) return;
        std::vector<LambPiece> pieces;
        std::vector<std::int64_t> first{0};
        std::int64_t begin = 0;
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            for (std::int64_t at = 0; at < sizes[t]; at += largest_piece) {
                const std::int64_t end = begin + std::min(sizes[t], at + largest_piece);
                pieces.push_back({begin + at, end, static_cast<std::int64_t>(t)});
            }
            begin += sizes[t];
            first.push_back(static_cast<std::int64_t>(pieces.size()));
        }
        pieces_ = brought(pieces.data(), pieces.size() * sizeof(LambPiece));
        first_ = brought(first.data(), first.size() * sizeof(std::int64_t));
        room_ = engine().allocate((2 * pieces.size() + sizes.size()) * sizeof(float));
        count_ = static_cast<std::int64_t>(pieces.size());
        sizes_.assign(sizes.begin(), sizes.end());
    }
    Memory brought(const void* from, std::size_t bytes) {
        Memory memory = engine().allocate(std::max<std::size_t>(bytes, 1));
        if (bytes > 0) engine().copy_in(memory.get(), from, bytes);
        return memory;
    }
    void tell(LambDirection& task, const Buffers& b) const {
        task.rows = count_, task.pieces = reinterpret_cast<const LambPiece*>(pieces_.get());
        task.weights = values(b.weights), task.momentum = values(b.momentum);
        task.second_moment = values(b.second_moment);
        task.squares = reinterpret_cast<float*>(room_.get()), task.ratios = task.squares + 2 * count_;
        task.rate = b.learning_rate, task.decay = b.weight_decay, task.epsilon = b.epsilon;
        task.factor = b.momentum_factor, task.second_factor = b.second_factor;
        const auto corrected = [&](float factor) {
            const double left = std::pow(static_cast<double>(factor), static_cast<double>(b.update_count));
            return static_cast<float>(1 / (1 - left));
        };
        task.first = corrected(b.momentum_factor), task.second = corrected(b.second_factor);
    }
    void compute(const Buffers& b) override {
        cut(b.tensor_sizes);
        LambMoments moments;
        tell(moments, b);
        moments.diff = values(b.diff_weights);
        engine().run(PointTask{moments});
        LambRatios ratios;
        ratios.rows = static_cast<std::int64_t>(sizes_.size());
        ratios.squares = moments.squares, ratios.ratios = moments.ratios;
        ratios.first = reinterpret_cast<const std::int64_t*>(first_.get());
        engine().run(PointTask{ratios});
        LambStep step;
        tell(step, b);
        step.copy = values(b.weights_copy);
        engine().run(PointTask{step});
    }

    std::vector<std::int64_t> sizes_;
    std::int64_t count_ = 0;
    Memory pieces_, first_, room_;
};

}  // namespace

std::unique_ptr<Kernel> lamb_kernel(Engine& engine, const Problem& problem) {
    return std::make_unique<LambKernel>(engine, problem);
}

}  // namespace rehearse::kernels::cuda
