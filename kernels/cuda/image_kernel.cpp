// SPDX-License-Identifier: Apache-2.0
// Local response normalization, and resizing by a table of what each pixel is mixed of.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"

namespace rehearse::kernels::cuda {
namespace {

class LrnKernel final : public DeviceKernel {
public:
    LrnKernel(Engine& engine, const Problem& problem) : DeviceKernel(engine, problem) {}

private:
    void compute(const Buffers& b) override {
        const auto& op = std::get<Lrn>(problem().op);
        const bool forward = problem().pass == Pass::forward;
        auto task = points<NormalizeAcross>(count_of(b.src[0]));
        task.src = values(b.src[0]), task.dst = values(forward ? b.dst : b.diff_src[0]);
        if (!forward) task.diff = values(b.diff_dst);
        task.channels = op.channels, task.area = op.height * op.width, task.size = op.size;
        task.alpha = static_cast<float>(op.alpha), task.beta = static_cast<float>(op.beta);
        task.bias = static_cast<float>(op.bias);
        engine().run(PointTask{task});
    }
};

// Along one direction: pixel i of `to` is mixed of two of `from`.
std::vector<std::vector<Share>> along(const Resize& op, std::int64_t from, std::int64_t to) {
    std::vector<std::vector<Share>> mixed;
    for (std::int64_t i = 0; i < to; ++i) {
        const auto in = static_cast<double>(from), out = static_cast<double>(to), n = static_cast<double>(i);
        const double centre = !op.align_corners ? (n + 0.5) * in / out - 0.5 : to > 1 ? n * (in - 1) / (out - 1) : 0;
        const double at = std::clamp(centre, 0.0, in - 1);
        const bool nearest = op.kind == Interpolation::nearest;
        const double low = std::floor(nearest ? at + 0.5 : at), rest = nearest ? 0 : at - low;
        std::vector<Share> shares{{static_cast<std::int32_t>(low), static_cast<float>(1 - rest)}};
        if (rest > 0) shares.push_back({static_cast<std::int32_t>(low) + 1, static_cast<float>(rest)});
        mixed.push_back(shares);
    }
    return mixed;
}

class ResizeKernel final : public DeviceKernel {
public:
    ResizeKernel(Engine& engine, const Problem& problem)
        : DeviceKernel(engine, problem), small_(pixels(std::get<Resize>(problem.op))) {
        const auto& op = std::get<Resize>(problem.op);
        large_ = elements(output_shape(problem.op)) / op.channels;
        const bool forward = problem.pass == Pass::forward;
        std::vector<std::vector<Share>> of(static_cast<std::size_t>(forward ? large_ : small_));
        std::size_t out = 0;
        const auto one = std::vector<std::vector<Share>>{{{0, 1.0F}}};
        const auto ys = along(op, op.height, op.out_height), xs = along(op, op.width, op.out_width);
        for (const auto& z : op.depth > 0 ? along(op, op.depth, op.out_depth) : one) {
            for (const auto& y : ys) {
                for (const auto& x : xs) mix(op, {&z, &y, &x}, forward, out++, of);
            }
        }
        std::vector<std::int64_t> first{0};
        std::vector<Share> shares;
        for (const auto& each : of) {
            shares.insert(shares.end(), each.begin(), each.end());
            first.push_back(static_cast<std::int64_t>(shares.size()));
        }
        first_ = engine.allocate(first.size() * sizeof first[0]);
        engine.copy_in(first_.get(), first.data(), first.size() * sizeof first[0]);
        shares_ = engine.allocate(shares.size() * sizeof shares[0]);
        engine.copy_in(shares_.get(), shares.data(), shares.size() * sizeof shares[0]);
    }

private:
    struct Corners {
        const std::vector<Share>*z, *y, *x;
    };
    // Output pixel `out` of what is mixed in each direction; backward, each of these gets its share of it.
    static void mix(const Resize& op, const Corners& corners, bool forward, std::size_t out,
                    std::vector<std::vector<Share>>& of) {
        for (const Share& z : *corners.z) {
            for (const Share& y : *corners.y) {
                for (const Share& x : *corners.x) {
                    const std::int64_t in = (z.pixel * op.height + y.pixel) * op.width + x.pixel;
                    const float weight = z.weight * y.weight * x.weight;
                    auto& shares = of[forward ? out : static_cast<std::size_t>(in)];
                    shares.push_back(
                        {static_cast<std::int32_t>(forward ? in : static_cast<std::int64_t>(out)), weight});
                }
            }
        }
    }
    void compute(const Buffers& b) override {
        const bool forward = problem().pass == Pass::forward;
        const View to = forward ? b.dst : b.diff_src[0];
        auto task = points<MixPixels>(count_of(to));
        task.src = values(forward ? b.src[0] : b.diff_dst), task.dst = values(to);
        task.first = reinterpret_cast<const std::int64_t*>(first_.get());
        task.shares = reinterpret_cast<const Share*>(shares_.get());
        task.from_area = forward ? small_ : large_, task.to_area = forward ? large_ : small_;
        engine().run(PointTask{task});
    }

    std::int64_t small_, large_ = 1;
    Memory first_, shares_;
};

}  // namespace

std::unique_ptr<Kernel> image_kernel(Engine& engine, const Problem& problem) {
    if (std::holds_alternative<Lrn>(problem.op)) return std::make_unique<LrnKernel>(engine, problem);
    if (std::holds_alternative<Resize>(problem.op)) return std::make_unique<ResizeKernel>(engine, problem);
    return nullptr;
}

}  // namespace rehearse::kernels::cuda
