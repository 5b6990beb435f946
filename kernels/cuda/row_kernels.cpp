// SPDX-License-Identifier: Apache-2.0
// Which tasks each pass of a normalization, a softmax and its loss takes.
#include <algorithm>
#include <vector>

#include "kernels/batchnorm.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cuda {
namespace {

std::size_t partial_bytes(std::int64_t parts, std::int64_t kinds, std::int64_t columns) {
    return static_cast<std::size_t>(parts * kinds * columns) * sizeof(float);
}

class RowKernel final : public DeviceKernel {
public:
    RowKernel(Engine& engine, const Problem& problem, std::int64_t workspace)
        : DeviceKernel(engine, problem, workspace) {
        std::visit([this](const auto& op) { make_room(op); }, problem.op);
    }

private:
    void compute(const Buffers& b) override {
        std::visit(
            [&](const auto& op) {
                if constexpr (requires { issue(op, b); }) issue(op, b);
            },
            problem().op);
    }

    bool forward() const { return problem().pass == Pass::forward; }
    std::int64_t batch() const { return problem().batch; }
    void start(auto task) { engine().run(PointTask{task}); }

    void make_room(const BatchNorm& op) {
        if (!forward()) room_ = reserve(2 * op.channels);
    }
    void make_room(const SoftmaxLoss& op) {
        if (forward()) room_ = reserve(batch() * op.rows * elements(op.image));
        if (op.class_weights.empty()) return;
        const std::vector<float> weights(op.class_weights.begin(), op.class_weights.end());
        class_weights_ = engine().allocate(weights.size() * sizeof(float));
        engine().copy_in(class_weights_.get(), weights.data(), weights.size() * sizeof(float));
    }
    template <typename O>
    void make_room(const O& /*op*/) {}

    void fill(NormGradient& task, const Rows& of, double epsilon, const Buffers& b) const {
        task.of = of, task.src = values(b.src[0]), task.diff = values(b.diff_dst), task.weights = values(b.weights);
        task.mean = b.workspace.data(), task.variance = b.workspace.data() + of.rows;
        task.epsilon = static_cast<float>(epsilon);
    }
    void normalize(Normalize task, const Rows& of, double epsilon, const Buffers& b, double momentum = 0) {
        Statistics found = by_rows<Statistics>(of.rows);
        found.of = task.of = of, found.src = task.src = values(b.src[0]);
        found.mean = b.workspace.data(), found.variance = found.mean + of.rows;
        task.mean = found.mean, task.variance = found.variance, task.epsilon = static_cast<float>(epsilon);
        found.state = b.state.empty() ? nullptr : b.state.data(), found.momentum = static_cast<float>(momentum);
        task.weights = values(b.weights), task.dst = values(b.dst), task.count = count_of(b.dst);
        static_cast<Parts&>(found) = parts_for(engine(), of.rows, of.size(), 4096);
        if (found.parts > 1) found.partial = kept_scratch(engine(), partial_bytes(found.parts, 2, of.rows));
        start(found);
        if (found.parts > 1) {
            JoinStatistics join;
            static_cast<RowStatistics&>(join) = found;
            start(join);
        }
        start(task);
    }

    void issue(const BatchNorm& op, const Buffers& b) {
        const Rows of{op.channels, batch(), pixels(op), op.channels * pixels(op)};
        if (forward()) {
            Normalize task;
            task.parameters = op.channels, task.relu = op.relu;
            if (op.add) task.add = values(b.src[1]);
            return normalize(task, of, op.epsilon, b, op.momentum);
        }
        auto sums = by_rows<GradientSums>(op.channels);
        fill(sums, of, op.epsilon, b);
        if (op.relu) sums.dst = values(b.dst_in);
        sums.kinds = 2, sums.sums = room_, sums.to = values(b.diff_weights);
        run_in_parts(engine(), sums);
        auto task = points<NormBackward>(count_of(b.src[0]));
        static_cast<NormGradient&>(task) = sums;
        task.sums = room_, task.diff_src = values(b.diff_src[0]);
        if (op.add) task.diff_add = values(b.diff_src[1]);
        if (task.diff_src || task.diff_add) start(task);
    }

    void issue(const LayerNorm& op, const Buffers& b) {
        const Rows of{batch() * op.rows, 1, op.features, 0};
        if (forward()) {
            Normalize task;
            task.parameters = op.features, task.by_column = true;
            return normalize(task, of, layer_norm_epsilon, b);
        }
        ColumnSums columns;
        fill(columns, of, layer_norm_epsilon, b);
        columns.kinds = 2, columns.to = values(b.diff_weights);
        run_in_parts(engine(), columns);
        if (b.diff_src[0].empty()) return;
        auto task = by_rows<LayerBackward>(of.rows);
        static_cast<NormGradient&>(task) = columns;
        task.diff_src = values(b.diff_src[0]);
        start(task);
    }

    void issue(const Softmax& op, const Buffers& b) {
        auto task = by_rows<SoftmaxRow>(batch());
        task.classes = op.classes, task.outer = op.classes;
        task.src = values(forward() ? b.src[0] : b.dst_in);
        if (!forward()) task.diff = values(b.diff_dst);
        task.dst = values(forward() ? b.dst : b.diff_src[0]);
        start(task);
    }

    void issue(const SoftmaxLoss& op, const Buffers& b) {
        const std::int64_t area = elements(op.image), places = area * op.rows;
        auto task = by_rows<RowLoss>(batch() * places);
        task.src = values(b.src[0]), task.labels = b.labels.data();
        task.class_weights = reinterpret_cast<const float*>(class_weights_.get());
        task.classes = op.classes, task.step = area, task.inner = area, task.outer = op.classes * area;
        if (forward()) task.loss = room_;
        if (!forward()) task.diff_src = values(b.diff_src[0]);
        task.share = static_cast<float>(1 / static_cast<double>(places * b.loss_batch));
        start(task);
        if (!forward()) return;
        auto mean = by_rows<RowMeans>(batch());
        mean.values = room_, mean.dst = values(b.dst), mean.size = places;
        start(mean);
    }

    float* room_ = nullptr;
    Memory class_weights_;
};

bool goes_by_rows(const Problem& problem) {
    const Op& op = problem.op;
    return problem.pass != Pass::update &&
           (std::holds_alternative<BatchNorm>(op) || std::holds_alternative<LayerNorm>(op) ||
            std::holds_alternative<Softmax>(op) || std::holds_alternative<SoftmaxLoss>(op));
}

void join(Engine& engine, const SumsInParts& found) {
    if (found.parts == 1) return;
    JoinSums task;
    static_cast<SumsInParts&>(task) = found;
    engine.run(PointTask{task});
}

}  // namespace

Parts parts_for(Engine& engine, std::int64_t blocks, std::int64_t size, std::int64_t least) {
    constexpr std::int64_t most = JoinStatistics::threads;
    const std::int64_t wanted = divide_up(4 * engine.processors(), std::max<std::int64_t>(blocks, 1));
    const std::int64_t parts = std::clamp<std::int64_t>(std::min(wanted, size / least), 1, most);
    const std::int64_t share = divide_up(divide_up(size, parts), 8) * 8;
    return {std::max<std::int64_t>(divide_up(size, share), 1), share};
}

void run_in_parts(Engine& engine, GradientSums task) {
    task.rows = task.columns = task.of.rows;
    static_cast<Parts&>(task) = parts_for(engine, task.rows, task.of.size(), 4096);
    if (task.parts > 1) task.partial = kept_scratch(engine, partial_bytes(task.parts, task.kinds, task.columns));
    engine.run(PointTask{task});
    join(engine, task);
}

void run_in_parts(Engine& engine, ColumnSums task) {
    task.columns = task.of.area;
    static_cast<Parts&>(task) = parts_for(engine, divide_up(task.columns, ColumnSums::wide), task.of.rows, 64);
    if (task.parts > 1) task.partial = kept_scratch(engine, partial_bytes(task.parts, task.kinds, task.columns));
    engine.run(PointTask{task});
    join(engine, task);
}

// Values of a row that lie a row's length apart are columns.
void sum_channels(Engine& engine, Values values, const Rows& of, Values to) {
    if (of.area == 1) {
        ColumnSums task;
        task.of = {of.pieces, 1, std::int64_t{of.rows}, 0};
        task.diff = values, task.to = to;
        return run_in_parts(engine, task);
    }
    GradientSums task;
    task.of = of, task.diff = values, task.to = to;
    run_in_parts(engine, task);
}

std::unique_ptr<Kernel> row_kernel(Engine& engine, const Problem& problem, std::int64_t workspace) {
    if (!goes_by_rows(problem)) return nullptr;
    return std::make_unique<RowKernel>(engine, problem, workspace);
}

}  // namespace rehearse::kernels::cuda
