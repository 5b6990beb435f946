// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/lowering.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

// A product's weights lie {channels, filters}, but those of a tied one.
std::vector<Launch> launches_of(const Problem& problem) {
    const Conv op = volume(problem.op);
    std::vector<Launch> made = launches(op, problem.pass, images(problem));
    const auto* dense = std::get_if<MatMul>(&problem.op);
    if (dense == nullptr || dense->tied) return made;
    Launch& launch = made.front();
    const bool data = problem.pass == Pass::backward_data;
    const auto columns = static_cast<std::int32_t>(dense->n);
    launch.gemm.weight_row = data ? columns : 1;
    std::int32_t next = 0;
    for (Term& term : launch.terms) term.weight = (data ? 1 : columns) * next++;
    return made;
}

// Launches with their terms in the engine's memory.
struct Prepared {
    std::vector<Launch> launches;
    std::vector<Memory> terms;

    Prepared(Engine& engine, const Problem& problem) : launches(launches_of(problem)) {
        for (Launch& launch : launches) {
            const std::size_t bytes = launch.terms.size() * sizeof(Term);
            terms.push_back(engine.allocate(std::max<std::size_t>(bytes, sizeof(Term))));
            if (bytes > 0) engine.copy_in(terms.back().get(), launch.terms.data(), bytes);
            launch.gemm.terms = reinterpret_cast<const Term*>(terms.back().get());
        }
    }
};

// forward and backward_data by sums over terms, tile by tile or term by term.
class ImplicitGemmKernel final : public DeviceKernel {
public:
    ImplicitGemmKernel(Engine& engine, const Problem& problem, bool direct, Cores cores)
        : DeviceKernel(engine, problem),
          op_(volume(problem.op)),
          prepared_(engine, problem),
          direct_(direct),
          cores_(cores) {}

private:
    void compute(const Buffers& b) override {
        const bool forward = problem().pass == Pass::forward;
        for (const Launch& launch : prepared_.launches) {
            ImplicitGemm gemm = launch.gemm;
            gemm.source = forward ? b.src[0].bytes() : b.diff_dst.bytes();
            gemm.weights = b.weights.bytes();
            gemm.target = forward ? b.dst.bytes() : b.diff_src[0].bytes();
            if (forward && op_.bias) gemm.bias = offset(b.weights.bytes(), weight_count(op_), problem().type);
            launch_one(gemm);
        }
    }
    void launch_one(const ImplicitGemm& gemm) {
        if (!direct_) {
            TiledGemm<float, LargeFloats> task;
            static_cast<ImplicitGemm&>(task) = gemm;
            return engine().run(tiled<TiledGemm>(task, problem().type, cores_, engine().processors()));
        }
        with_type(problem().type, [&]<typename Element>(Element) {
            DirectConvolution<Element> task;
            static_cast<ImplicitGemm&>(task) = gemm;
            engine().run(LoopTask{task});
        });
    }

    Conv op_;
    Prepared prepared_;
    bool direct_;
    Cores cores_;
};

// backward_weights: partial sums of pixels, their sum, and the bias's.
class WeightsKernel final : public DeviceKernel {
public:
    WeightsKernel(Engine& engine, const Problem& problem, Cores cores)
        : DeviceKernel(engine, problem), op_(volume(problem.op)), prepared_(engine, problem), cores_(cores) {
        static_cast<ImplicitGemm&>(task_) = prepared_.launches.front().gemm;
        task_.splits = static_cast<std::int32_t>(weight_splits(task_, engine.processors()));
        task_.partial = reserve(task_.splits * weight_count(op_));
    }

private:
    void compute(const Buffers& b) override {
        WeightGradient<float, LargeFloats> task = task_;
        task.source = b.src[0].bytes();
        task.target = const_cast<void*>(b.diff_dst.bytes());  // read only, as weight_gradient.hpp says
        engine().run(tiled<WeightGradient>(task, problem().type, cores_, engine().processors()));
        with_type(problem().type, [&]<typename Element>(Element) {
            const std::int64_t count = weight_count(op_);
            AddUp<Element> sum;
            sum.partial = task.partial;
            sum.to = b.diff_weights.bytes();
            sum.count = count;
            sum.splits = task.splits;
            engine().run(LoopTask{sum});
        });
        if (op_.bias) sum_bias(engine(), problem(), b, weight_count(op_));
    }

    Conv op_;
    Prepared prepared_;
    WeightGradient<float, LargeFloats> task_;
    Cores cores_;
};

}  // namespace

// Parts of the pixels, so that each multiprocessor has four blocks, of at least eight steps each.
std::int64_t weight_splits(const ImplicitGemm& gemm, int processors) {
    using Small = WeightGradient<float, SmallFloats>;
    Small one;
    static_cast<ImplicitGemm&>(one) = gemm;
    const Blocks blocks = one.blocks();
    const std::int64_t wanted = divide_up(4 * processors, blocks.x * blocks.y * blocks.z);
    const std::int64_t steps = divide_up(column_count(gemm), 8 * Small::depth);
    return std::clamp<std::int64_t>(wanted, 1, std::min<std::int64_t>(steps, 1024));
}

void add_bias(Engine& engine, const Problem& problem, const Buffers& b, std::int64_t count) {
    const Conv op = volume(problem.op);
    AddBias task;
    task.count = count_of(b.dst);
    task.src = task.dst = values(b.dst), task.bias = beyond(values(b.weights), count);
    task.channels = op.filters, task.inner = task.count / (images(problem) * op.filters);
    engine.run(PointTask{task});
}

void sum_bias(Engine& engine, const Problem& problem, const Buffers& b, std::int64_t count) {
    const Conv op = volume(problem.op);
    const std::int64_t area = count_of(b.diff_dst) / (images(problem) * op.filters);
    const Rows of{op.filters, images(problem), area, op.filters * area};
    sum_channels(engine, values(b.diff_dst), of, beyond(values(b.diff_weights), count));
}

// As long as the process; never smaller.
float* kept_scratch(Engine& engine, std::size_t bytes) {
    struct Kept {
        Memory memory;
        std::size_t bytes = 0;
    };
    static std::mutex mutex;
    static auto& blocks = *new std::map<std::pair<Engine*, void*>, Kept>;
    const std::lock_guard lock{mutex};
    Kept& block = blocks[{&engine, engine.stream()}];
    if (block.bytes < bytes) {
        if (block.memory != nullptr) engine.finish();  // who still uses the one before
        block = {engine.allocate(bytes), bytes};
    }
    return reinterpret_cast<float*>(block.memory.get());
}

// A larger one than those before it gets a block of its own, which later ones share, too.
Memory shared_scratch(Engine& engine, std::size_t bytes) {
    struct Kept {
        std::weak_ptr<std::byte> memory;
        std::size_t bytes = 0;
    };
    static std::mutex mutex;
    static std::map<std::pair<Engine*, void*>, Kept> blocks;
    const std::lock_guard lock{mutex};
    Kept& block = blocks[{&engine, engine.stream()}];
    Memory memory = block.memory.lock();
    if (memory != nullptr && block.bytes >= bytes) return memory;
    memory = engine.allocate(bytes);
    block = {memory, bytes};
    return memory;
}

Conv volume(const Op& op) {
    if (const auto* dense = std::get_if<MatMul>(&op)) {
        return as_volume({dense->k, 1, 1, dense->n, {}, 1, dense->bias});
    }
    return as_volume(std::get<Conv>(op));
}

std::int64_t images(const Problem& problem) {
    const auto* dense = std::get_if<MatMul>(&problem.op);
    return problem.batch * (dense != nullptr ? dense->m : 1);
}

std::int64_t weight_count(const Conv& op) { return elements(weights(Op{op})[0].shape); }

std::unique_ptr<Kernel> sums_kernel(Engine& engine, const Problem& problem, bool direct, Cores cores) {
    return std::make_unique<ImplicitGemmKernel>(engine, problem, direct, cores);
}

std::unique_ptr<Kernel> weights_kernel(Engine& engine, const Problem& problem, Cores cores) {
    return std::make_unique<WeightsKernel>(engine, problem, cores);
}

std::int64_t weights_scratch(const Problem& problem, int processors) {
    return weight_splits(launches_of(problem).front().gemm, processors) * weight_count(volume(problem.op));
}

}  // namespace rehearse::kernels::cuda
