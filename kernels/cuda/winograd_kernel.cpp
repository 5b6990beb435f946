// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

template <typename Element, int m>
class WinogradKernel final : public DeviceKernel {
public:
    WinogradKernel(Engine& engine, const Problem& problem)
        : DeviceKernel(engine, problem),
          shape_(winograd_shape(std::get<Conv2d>(problem.op), problem.pass, problem.batch, m)) {
        constexpr std::int64_t points = (m + 2) * (m + 2);
        const std::int64_t channels = shape_.channels, filters = shape_.filters, tiles = shape_.tiles();
        weights_ = reserve(winograd_scratch(shape_, m));
        source_ = weights_ + points * filters * channels;
        products_ = source_ + points * channels * tiles;
        std::vector<Term> terms;
        for (std::int32_t c = 0; c < channels; ++c) terms.push_back({static_cast<std::int32_t>(c * tiles), c});
        terms_ = engine.allocate(terms.size() * sizeof(Term));
        engine.copy_in(terms_.get(), terms.data(), terms.size() * sizeof(Term));
        multiply_ = product(points);
    }

private:
    // A group a point, its channels the terms, its tiles the pixels of one image.
    TiledSums<float, LargeFloats> product(std::int64_t points) const {
        const std::int64_t channels = shape_.channels, filters = shape_.filters, tiles = shape_.tiles();
        const auto line = Extent3{1, 1, static_cast<std::int32_t>(tiles)};
        TiledSums<float, LargeFloats> task;
        task.source = source_;
        task.weights = weights_;
        task.target = products_;
        task.terms = reinterpret_cast<const Term*>(terms_.get());
        task.term_count = shape_.channels;
        task.rows = shape_.filters;
        task.images = 1;
        task.groups = static_cast<std::int32_t>(points);
        task.pixels = task.extent = line;
        task.source_group = channels * tiles;
        task.target_group = filters * tiles;
        task.weight_group = filters * channels;
        task.target_row = line.w;
        task.weight_row = shape_.channels;
        return task;
    }
    template <typename Task>
    Task with_shape() const {
        Task task;
        static_cast<WinogradShape&>(task) = shape_;
        return task;
    }

    void compute(const Buffers& b) override {
        const bool forward = problem().pass == Pass::forward;
        auto weights = with_shape<WinogradWeights<Element, m>>();
        weights.weights = b.weights.bytes();
        weights.to = weights_;
        weights.mirrored = !forward;
        engine().run(WinogradTask{weights});
        auto source = with_shape<WinogradSource<Element, m>>();
        source.source = forward ? b.src[0].bytes() : b.diff_dst.bytes();
        source.to = source_;
        engine().run(WinogradTask{source});
        engine().run(tiled<TiledSums>(multiply_, DataType::f32, Cores::ordinary, engine().processors()));
        auto target = with_shape<WinogradTarget<Element, m>>();
        target.products = products_;
        target.target = forward ? b.dst.bytes() : b.diff_src[0].bytes();
        const auto& op = std::get<Conv2d>(problem().op);
        if (forward && op.bias) {
            target.bias = offset(b.weights.bytes(), weight_count(as_volume(op)), problem().type);
        }
        engine().run(WinogradTask{target});
    }

    WinogradShape shape_;
    Memory terms_;
    float *weights_ = nullptr, *source_ = nullptr, *products_ = nullptr;
    TiledSums<float, LargeFloats> multiply_;
};

}  // namespace

WinogradShape winograd_shape(const Conv2d& op, Pass pass, std::int64_t batch, int m) {
    const Shape out = output_shape(Op{op});
    const bool forward = pass == Pass::forward;
    const auto i32 = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    WinogradShape s;
    s.images = i32(batch);
    s.channels = i32(forward ? op.channels : op.filters);
    s.filters = i32(forward ? op.filters : op.channels);
    s.height = i32(forward ? op.height : out[1]);
    s.width = i32(forward ? op.width : out[2]);
    s.out_height = i32(forward ? out[1] : op.height);
    s.out_width = i32(forward ? out[2] : op.width);
    s.pad_top = i32(forward ? op.window.pad_top : 2 - op.window.pad_top);
    s.pad_left = i32(forward ? op.window.pad_left : 2 - op.window.pad_left);
    s.tiles_down = i32(divide_up(s.out_height, m));
    s.tiles_across = i32(divide_up(s.out_width, m));
    return s;
}

std::int64_t winograd_scratch(const WinogradShape& shape, int m) {
    const std::int64_t channels = shape.channels, filters = shape.filters;
    return (m + 2) * (m + 2) * (filters * channels + (channels + filters) * shape.tiles());
}

std::unique_ptr<Kernel> winograd_kernel(Engine& engine, const Problem& problem, int m) {
    const bool half = problem.type == DataType::f16;
    if (m == 2 && half) return std::make_unique<WinogradKernel<Float16, 2>>(engine, problem);
    if (m == 2) return std::make_unique<WinogradKernel<float, 2>>(engine, problem);
    if (half) return std::make_unique<WinogradKernel<Float16, 4>>(engine, problem);
    return std::make_unique<WinogradKernel<float, 4>>(engine, problem);
}

}  // namespace rehearse::kernels::cuda
