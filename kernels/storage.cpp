// SPDX-License-Identifier: Apache-2.0
#include "kernels/storage.hpp"

#include <utility>

#include "kernels/buffers.hpp"
#include "kernels/convert.hpp"
#include "kernels/touched.hpp"

namespace rehearse::kernels {
namespace {

constexpr std::size_t line = 16;  // floats of a cache line

std::size_t whole_lines(std::size_t floats) { return (floats + line - 1) / line * line; }

// One block a thread, as large as what its largest kernel stages: kernels run one at a time on a thread.
float* thread_block(std::size_t floats) {
    struct alignas(64) Line {
        float values[line];
    };
    thread_local std::vector<Line> block;
    if (block.size() * line < floats) {
        block = {};  // first give the old block back
        block.resize(floats / line);
    }
    return block.empty() ? nullptr : block.front().values;
}

class StoredKernel final : public Kernel {
public:
    StoredKernel(const Problem& problem, std::int64_t workspace, std::unique_ptr<Kernel> computing)
        : problem_(problem), sizes_(problem, workspace), computing_(std::move(computing)) {}

    void run(const Buffers& buffers) override {
        sizes_.check(buffers);
        inside_ = without_tensors(buffers);
        stage(buffers);
        computing_->run(inside_);
        for_each_tensor(problem_, inside_, buffers, [](ConstView inside, const auto& outside, Use use) {
            if constexpr (std::is_same_v<decltype(outside), const View&>) {
                if (use != Use::read && inside.bytes() != outside.bytes()) convert(inside, outside);
            }
        });
        if (!buffers.weights_copy.empty()) convert(inside_.weights, buffers.weights_copy);
    }

    Bytes scratch() const override { return computing_->scratch() + staged(problem_); }

private:
    // Tensors that the pass does not touch stay away: `computing_` is told nothing of their type.
    Buffers without_tensors(const Buffers& buffers) const {
        Buffers inside = buffers;
        inside.dst_in = inside.diff_dst = {};
        inside.dst = inside.weights = inside.diff_weights = inside.momentum = inside.weights_copy = {};
        inside.second_moment = {};
        if (problem_.pass == Pass::backward_data && !gradient_reads_src(problem_.op)) inside.src.clear();
        if (problem_.pass != Pass::backward_data) inside.diff_src.clear();
        return inside;
    }

    // f32 memory for all that is not f32, holding what is read.
    void stage(const Buffers& buffers) {
        std::size_t floats = 0;
        for_each_tensor(problem_, inside_, buffers, [&](const auto& /*inside*/, ConstView outside, Use /*use*/) {
            if (outside.type() != DataType::f32) floats += whole_lines(outside.size());
        });
        float* next = thread_block(floats);
        for_each_tensor(problem_, inside_, buffers, [&](auto& inside, const auto& outside, Use use) {
            inside = outside;
            if (outside.type() == DataType::f32) return;
            const std::span<float> staged{next, outside.size()};
            next += whole_lines(outside.size());
            if (use != Use::written) convert(outside, staged);
            inside = staged;
        });
    }

    Problem problem_;
    BufferSizes sizes_;
    std::unique_ptr<Kernel> computing_;
    Buffers inside_;
};

}  // namespace

std::unique_ptr<Kernel> stored_as(const Problem& problem, std::int64_t workspace, std::unique_ptr<Kernel> computing) {
    return std::make_unique<StoredKernel>(problem, workspace, std::move(computing));
}

Bytes staged(const Problem& problem) { return bytes_moved(problem.op, problem.pass, DataType::f32, problem.batch); }

Problem in_f32(const Problem& problem) {
    Problem computed = problem;
    computed.type = DataType::f32;
    return computed;
}

}  // namespace rehearse::kernels
