// SPDX-License-Identifier: Apache-2.0
#include "kernels/onednn/program.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "kernels/memory.hpp"
#include "kernels/onednn/describe.hpp"

namespace rehearse::kernels::onednn {
namespace {

constexpr std::size_t alignment = 64;  // a cache line, and the widest vector

// One block a thread, as large as the largest program it has met: programs run one at a time on a thread, and what they
// keep between two runs is in the caller's workspace. A block a program would hold every layer's reordered tensors.
std::byte* thread_scratch(std::size_t bytes) {
    thread_local HostMemory block;
    thread_local std::size_t size = 0;
    if (size < bytes) {
        block.reset();  // first give the old block back
        size = 0;
        block = allocate_host(bytes);
        size = bytes;
    }
    return block.get();
}

dnnl::memory unplaced(const dnnl::memory::desc& desc) { return {desc, engine(), DNNL_MEMORY_NONE}; }

}  // namespace

const dnnl::engine& engine() {
    static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

const dnnl::primitive_attr& attributes() {
    static const dnnl::primitive_attr ours = [] {
        dnnl::primitive_attr attr;
        attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        return attr;
    }();
    return ours;
}

dnnl::memory::dims behind(std::int64_t outer, const Shape& shape) {
    dnnl::memory::dims dims{outer};
    dims.insert(dims.end(), shape.begin(), shape.end());
    return dims;
}

const dnnl::primitive_attr& attributes_with_relu() {
    static const dnnl::primitive_attr ours = [] {
        dnnl::post_ops after;
        append_eltwise(after, dnnl::algorithm::eltwise_relu, 0.0F);
        dnnl::primitive_attr attr;
        attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        attr.set_post_ops(after);
        return attr;
    }();
    return ours;
}

dnnl::memory::desc dense(const dnnl::memory::dims& dims) {
    dnnl::memory::dims strides(dims.size(), 1);
    for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
    return {dims, dnnl::memory::data_type::f32, strides};
}

std::size_t Program::take(std::size_t bytes) {
    const std::size_t offset = scratch_bytes_;
    scratch_bytes_ += (bytes + alignment - 1) / alignment * alignment;
    return offset;
}

dnnl::memory Program::scratch(const dnnl::memory::desc& desc) {
    scratch_.push_back({unplaced(desc), take(desc.get_size())});
    return scratch_.back().memory;
}

dnnl::memory Program::view(const dnnl::memory& scratch, const dnnl::memory::desc& desc) {
    const auto seen = std::ranges::find_if(scratch_, [&](const Scratch& s) { return s.memory.get() == scratch.get(); });
    require(seen != scratch_.end(), "a view is of scratch memory");
    scratch_.push_back({unplaced(desc), seen->offset});
    return scratch_.back().memory;
}

dnnl::memory Program::bind(const dnnl::memory::desc& desc, Locate locate, bool spare) {
    bindings_.push_back({unplaced(desc), std::move(locate), spare ? take(desc.get_size()) : no_spare});
    return bindings_.back().memory;
}

dnnl::memory Program::input(const dnnl::memory::desc& given, const dnnl::memory::desc& wanted, Locate locate) {
    return reordered(bind(given, std::move(locate)), wanted);
}

dnnl::memory Program::reordered(const dnnl::memory& from, const dnnl::memory::desc& wanted) {
    if (from.get_desc() == wanted) return from;
    dnnl::memory inside = scratch(wanted);
    steps_.push_back(make_reorder(from, inside));
    return inside;
}

dnnl::memory Program::output(const dnnl::memory::desc& given, const dnnl::memory::desc& wanted, Locate locate,
                             bool spare) {
    dnnl::memory outside = bind(given, std::move(locate), spare);
    if (given == wanted) return outside;
    dnnl::memory inside = scratch(wanted);
    last_steps_.push_back(make_reorder(inside, outside));
    return inside;
}

Program::Step Program::make_step(const dnnl::primitive& primitive, const std::vector<Argument>& arguments) {
    Step step{primitive, arguments, {}};
    for (const Argument& argument : arguments) step.arguments.push_back({argument.name, argument.memory.get()});
    return step;
}

Program::Step Program::make_reorder(const dnnl::memory& from, const dnnl::memory& to) {
    const dnnl::reorder::primitive_desc desc(engine(), from.get_desc(), engine(), to.get_desc(), attributes());
    return make_step(
        dnnl::reorder(desc),
        {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, scratch(desc.scratchpad_desc())}});
}

void Program::reserve() const { thread_scratch(scratch_bytes_); }

void Program::set_addresses(const Buffers& buffers) {
    std::byte* const base = thread_scratch(scratch_bytes_);
    for (Binding& binding : bindings_) {
        const float* at = binding.locate(buffers);
        if (at == nullptr && binding.spare_offset != no_spare) {
            at = reinterpret_cast<const float*>(base + binding.spare_offset);
        }
        binding.memory.set_data_handle(const_cast<float*>(at));  // oneDNN has one kind of handle, for reading too
    }
    if (base == scratch_at_) return;
    for (Scratch& part : scratch_) part.memory.set_data_handle(base + part.offset);
    scratch_at_ = base;
}

void Program::run(const Buffers& buffers) {
    set_addresses(buffers);
    const auto execute = [&](const Step& step) {
        // The C++ call would build a new argument list each time.
        dnnl::error::wrap_c_api(dnnl_primitive_execute(step.primitive.get(), stream_.get(),
                                                       static_cast<int>(step.arguments.size()), step.arguments.data()),
                                "could not execute a primitive");
    };
    for (const Step& step : steps_) execute(step);
    for (const Step& step : last_steps_) execute(step);
    stream_.wait();
}

}  // namespace rehearse::kernels::onednn
