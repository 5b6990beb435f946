// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

constexpr std::int64_t points(int m) { return std::int64_t{m + 2} * (m + 2); }

// Which channel a term is: of transformed images {points, channels, tiles}.
Memory terms_of(Engine& engine, const WinogradShape& shape) {
    std::vector<Term> terms;
    for (std::int32_t c = 0; c < shape.channels; ++c) {
        terms.push_back({static_cast<std::int32_t>(c * shape.tiles()), c});
    }
    Memory made = engine.allocate(terms.size() * sizeof(Term));
    engine.copy_in(made.get(), terms.data(), terms.size() * sizeof(Term));
    return made;
}

// A group a point, its channels the terms, its tiles the pixels of one image.
ImplicitGemm product(const WinogradShape& shape, int m, const Memory& terms) {
    const std::int64_t channels = shape.channels, filters = shape.filters, tiles = shape.tiles();
    const auto line = Extent3{1, 1, static_cast<std::int32_t>(tiles)};
    ImplicitGemm gemm;
    gemm.terms = reinterpret_cast<const Term*>(terms.get());
    gemm.term_count = shape.channels;
    gemm.rows = shape.filters;
    gemm.images = 1;
    gemm.groups = static_cast<std::int32_t>(points(m));
    gemm.pixels = gemm.extent = line;
    gemm.source_group = channels * tiles;
    gemm.target_group = filters * tiles;
    gemm.weight_group = filters * channels;
    gemm.target_row = line.w;
    gemm.weight_row = shape.channels;
    return gemm;
}

template <typename Task>
Task with_shape(const WinogradShape& shape) {
    Task task;
    static_cast<WinogradShape&>(task) = shape;
    return task;
}

template <int m>
class WinogradKernel final : public DeviceKernel {
public:
    WinogradKernel(Engine& engine, const Problem& problem)
        : DeviceKernel(engine, problem),
          shape_(winograd_shape(std::get<Conv>(problem.op), problem.pass, problem.batch, m)),
          terms_(terms_of(engine, shape_)) {
        weights_ = reserve(winograd_scratch(problem, m, engine.processors()));
        source_ = weights_ + points(m) * shape_.filters * shape_.channels;
        products_ = source_ + points(m) * shape_.channels * shape_.tiles();
        static_cast<ImplicitGemm&>(multiply_) = product(shape_, m, terms_);
        multiply_.source = source_, multiply_.weights = weights_, multiply_.target = products_;
    }

private:
    void compute(const Buffers& b) override {
        const bool forward = problem().pass == Pass::forward;
        auto weights = with_shape<WinogradWeights<m>>(shape_);
        weights.weights = values(b.weights), weights.to = weights_, weights.mirrored = !forward;
        engine().run(WinogradTask{weights});
        auto source = with_shape<WinogradSource<m>>(shape_);
        source.source = values(forward ? b.src[0] : b.diff_dst), source.to = source_;
        engine().run(WinogradTask{source});
        engine().run(tiled<TiledGemm>(multiply_, DataType::f32, Cores::ordinary, engine().processors()));
        auto target = with_shape<WinogradTarget<m>>(shape_);
        target.products = products_;
        target.target = values(forward ? ConstView(b.dst) : ConstView(b.diff_src[0]));
        const auto& op = std::get<Conv>(problem().op);
        if (forward && op.bias) target.bias = beyond(values(b.weights), weight_count(as_volume(op)));
        engine().run(WinogradTask{target});
    }

    WinogradShape shape_;
    Memory terms_;
    float *weights_ = nullptr, *source_ = nullptr, *products_ = nullptr;
    TiledGemm<float, LargeFloats> multiply_;
};

template <int m>
class WinogradWeightsKernel final : public DeviceKernel {
public:
    WinogradWeightsKernel(Engine& engine, const Problem& problem)
        : DeviceKernel(engine, problem),
          shape_(winograd_shape(std::get<Conv>(problem.op), problem.pass, problem.batch, m)),
          terms_(terms_of(engine, shape_)) {
        source_ = reserve(winograd_scratch(problem, m, engine.processors()));
        differences_ = source_ + points(m) * shape_.channels * shape_.tiles();
        static_cast<ImplicitGemm&>(multiply_) = product(shape_, m, terms_);
        multiply_.source = source_, multiply_.target = differences_;
        multiply_.partial = differences_ + points(m) * shape_.filters * shape_.tiles();
        multiply_.splits = static_cast<std::int32_t>(weight_splits(multiply_, engine.processors()));
    }

private:
    void compute(const Buffers& b) override {
        auto source = with_shape<WinogradSource<m>>(shape_);
        source.source = values(b.src[0]), source.to = source_;
        engine().run(WinogradTask{source});
        auto differences = with_shape<WinogradDifferences<m>>(shape_);
        differences.diff = values(b.diff_dst), differences.to = differences_;
        engine().run(WinogradTask{differences});
        engine().run(tiled<WeightGradient>(multiply_, DataType::f32, Cores::ordinary, engine().processors()));
        auto gradients = with_shape<WinogradGradients<m>>(shape_);
        gradients.partial = multiply_.partial, gradients.splits = multiply_.splits;
        gradients.to = values(b.diff_weights);
        engine().run(WinogradTask{gradients});
        const auto& op = std::get<Conv>(problem().op);
        if (op.bias) sum_bias(engine(), problem(), b, weight_count(as_volume(op)));
    }

    WinogradShape shape_;
    Memory terms_;
    float *source_ = nullptr, *differences_ = nullptr;
    WeightGradient<float, LargeFloats> multiply_;
};

}  // namespace

WinogradShape winograd_shape(const Conv& op, Pass pass, std::int64_t batch, int m) {
    const Shape out = output_shape(Op{op});
    const bool forward = pass != Pass::backward_data;
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
    s.image_tiles = s.tiles_down * s.tiles_across, s.row_tiles = s.tiles_across;
    return s;
}

std::int64_t winograd_scratch(const Problem& problem, int m, int processors) {
    const WinogradShape shape = winograd_shape(std::get<Conv>(problem.op), problem.pass, problem.batch, m);
    const std::int64_t channels = shape.channels, filters = shape.filters;
    const bool weights = problem.pass == Pass::backward_weights;
    const std::int64_t splits = weights ? weight_splits(product(shape, m, {}), processors) : 1;
    return points(m) * (splits * filters * channels + (channels + filters) * shape.tiles());
}

std::unique_ptr<Kernel> winograd_kernel(Engine& engine, const Problem& problem, int m) {
    if (problem.pass == Pass::backward_weights) {
        if (m == 2) return std::make_unique<WinogradWeightsKernel<2>>(engine, problem);
        return std::make_unique<WinogradWeightsKernel<4>>(engine, problem);
    }
    if (m == 2) return std::make_unique<WinogradKernel<2>>(engine, problem);
    return std::make_unique<WinogradKernel<4>>(engine, problem);
}

}  // namespace rehearse::kernels::cuda
