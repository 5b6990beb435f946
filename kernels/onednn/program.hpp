// SPDX-License-Identifier: Apache-2.0
// A few oneDNN primitives run one after the other on the caller's buffers. Planned once: reorders, scratch memory and
// argument lists are all decided here, so that run() only sets addresses and executes.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <functional>
#include <vector>

#include "kernels/backend.hpp"

namespace rehearse::kernels::onednn {

/// The one CPU engine.
const dnnl::engine& engine();

/// A primitive attribute that hands the primitive's scratch memory to us; the second also takes ReLU of the result.
const dnnl::primitive_attr& attributes();
const dnnl::primitive_attr& attributes_with_relu();

/// {outer, shape...}: a batch of samples, or weights.
dnnl::memory::dims behind(std::int64_t outer, const Shape& shape);

/// Dense row-major tensors of f32: what the caller has.
dnnl::memory::desc dense(const dnnl::memory::dims& dims);

/// Where a tensor lies in the caller's buffers; null where the caller left it out.
using Locate = std::function<const float*(const Buffers&)>;

struct Argument {
    int name;  // DNNL_ARG_SRC
    dnnl::memory memory;
};

class Program {
public:
    Program() : stream_(engine()) {}

    /// The caller's tensor itself, no copy. With `spare`, scratch memory stands in for one that the caller left out.
    dnnl::memory bind(const dnnl::memory::desc& desc, Locate locate, bool spare = false);
    /// The caller's tensor as `wanted`: reordered into scratch memory unless it is so already.
    dnnl::memory input(const dnnl::memory::desc& given, const dnnl::memory::desc& wanted, Locate locate);
    /// The same for a tensor that is written: the reorder back runs last.
    dnnl::memory output(const dnnl::memory::desc& given, const dnnl::memory::desc& wanted, Locate locate,
                        bool spare = false);
    /// What an earlier step has written, as `wanted`: reordered unless it is so already.
    dnnl::memory reordered(const dnnl::memory& from, const dnnl::memory::desc& wanted);
    /// Memory that lasts for one run.
    dnnl::memory scratch(const dnnl::memory::desc& desc);
    /// The same memory seen with other sizes or strides.
    dnnl::memory view(const dnnl::memory& scratch, const dnnl::memory::desc& desc);

    template <typename PrimitiveDesc>
    void add(const PrimitiveDesc& desc, const dnnl::primitive& primitive, std::vector<Argument> arguments) {
        arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch(desc.scratchpad_desc())});
        steps_.push_back(make_step(primitive, arguments));
    }

    /// Makes sure that run() on this thread finds its scratch memory.
    void reserve() const;
    std::size_t scratch_bytes() const { return scratch_bytes_; }
    void run(const Buffers& buffers);

private:
    struct Step {
        dnnl::primitive primitive;
        std::vector<Argument> keep;  // owns what `arguments` points to
        std::vector<dnnl_exec_arg_t> arguments;
    };
    struct Binding {
        dnnl::memory memory;
        Locate locate;
        std::size_t spare_offset;  // no_spare: the caller always has it
    };
    struct Scratch {
        dnnl::memory memory;
        std::size_t offset;
    };
    static constexpr std::size_t no_spare = static_cast<std::size_t>(-1);

    static Step make_step(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
    Step make_reorder(const dnnl::memory& from, const dnnl::memory& to);
    std::size_t take(std::size_t bytes);
    void set_addresses(const Buffers& buffers);

    dnnl::stream stream_;
    std::vector<Binding> bindings_;
    std::vector<Scratch> scratch_;
    std::vector<Step> steps_, last_steps_;
    std::size_t scratch_bytes_ = 0;
    std::byte* scratch_at_ = nullptr;  // where scratch_ points to now
};

}  // namespace rehearse::kernels::onednn
