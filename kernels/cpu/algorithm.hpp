// SPDX-License-Identifier: Apache-2.0
// What the algorithms of this folder share: they are named "cpu", keep from forward to backward what the reference
// keeps unless they say otherwise, and leave the update of a layer's weights by SGD, one loop over memory, to the
// reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/backend.hpp"
#include "kernels/buffers.hpp"

namespace rehearse::kernels::cpu {

class Algorithm : public Backend {
public:
    std::string_view name() const final { return "cpu"; }
    Support supports(const Problem& problem) const final;
    std::unique_ptr<Kernel> prepare(const Problem& problem) const final { return prepare_within(problem, any_scratch); }
    std::unique_ptr<Kernel> prepare_within(const Problem& problem, Bytes limit) const final;
    Bytes scratch(const Problem& problem, Bytes limit) const final;
    std::int64_t workspace(const Op& op, std::int64_t batch) const final { return kept(op, batch); }
    std::string version() const final;

private:
    /// A forward or backward pass of any type and, of a transposed convolution, by its mirror; allocates nothing.
    std::unique_ptr<Kernel> made(const Problem& problem, Bytes limit) const;
    /// Why not, of a problem that some backend runs; empty if this one does.
    virtual std::string refusal(const Problem& problem) const = 0;
    /// Floats that forward keeps for backward: as many as the reference, unless the algorithm says otherwise.
    virtual std::int64_t kept(const Op& op, std::int64_t batch) const;
    /// A supported forward or backward pass, or an update that the algorithm has, in f32.
    virtual std::unique_ptr<Kernel> make(const Problem& problem) const = 0;
    /// The same, of an algorithm that can work in smaller pieces.
    virtual std::unique_ptr<Kernel> make_within(const Problem& problem, Bytes /*limit*/) const { return make(problem); }
    /// In 16 bits by instructions of this machine; nullptr: in f32, with the tensors converted.
    virtual std::unique_ptr<Kernel> make_half(const Problem& /*problem*/) const { return nullptr; }
};

/// run() checks the buffers, leaves out a gradient that nobody wants and hands compute() its scratch memory: one block
/// a calling thread, as large as its largest problem, aligned to 64 bytes, full of what the last kernel left there.
class CheckedKernel : public Kernel {
public:
    explicit CheckedKernel(const Problem& problem);  // keeps as much as the reference
    CheckedKernel(const Problem& problem, std::int64_t workspace)
        : only_data_(problem.pass == Pass::backward_data && !gradients_together(problem.op)),
          sizes_(problem, workspace) {}
    void run(const Buffers& buffers) final;
    Bytes scratch() const final { return static_cast<double>(scratch_) * size_of(DataType::f32); }

protected:
    /// To be called once, in the constructor. The memory is allocated when the kernel is prepared.
    void reserve(std::int64_t floats) { scratch_ = floats; }

private:
    virtual void compute(const Buffers& buffers, float* scratch) = 0;

    bool only_data_;  // nothing to do when nobody wants an input's gradient
    BufferSizes sizes_;
    std::int64_t scratch_ = 0;
};

/// Threads that a parallel region will have: OMP_NUM_THREADS is honoured.
std::int64_t threads();

/// How many floats to step on so that the next part of a scratch memory begins a cache line.
constexpr std::int64_t whole_lines(std::int64_t floats) { return (floats + 15) / 16 * 16; }

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace rehearse::kernels::cpu
