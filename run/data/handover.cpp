// SPDX-License-Identifier: Apache-2.0
#include "run/data/handover.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "kernels/device.hpp"
#include "kernels/memory.hpp"

namespace rehearse::run {

Handover::Handover(Program& program) : program_(&program) {
    Tensors& tensors = program.tensors();
    const std::size_t input = tensors.input().size(), ids = tensors.indices().size(), labels = tensors.labels().size();
    static_assert(sizeof(float) == sizeof(std::int32_t), "all three lie in one room");
    const std::size_t bytes = (input + ids + labels) * sizeof(float);
    kernels::Device* const device = program.device();
    memory_ = device != nullptr ? device->allocate_staging(bytes) : kernels::allocate_host(bytes);
    auto* const integers = reinterpret_cast<std::int32_t*>(memory_.get()) + input;
    room_ = {{reinterpret_cast<float*>(memory_.get()), input}, {integers, ids}, {integers + ids, labels}};
}

void bring(const ReadBatch& batch, Program& program) {
    kernels::Device* const device = program.device();
    if (device != nullptr && std::ranges::any_of(batch.labels, [](std::int32_t label) { return label < 0; }))
        throw InputError("labels that ask for nothing are not left out on a GPU, in this version");
    const auto copy = [device](const auto& from, const auto& to) {
        if (device == nullptr || from.empty()) {
            std::ranges::copy(from, to.begin());
        } else {
            device->copy_beside(to.data(), from.data(), from.size_bytes());
        }
    };
    Tensors& tensors = program.tensors();
    copy(batch.input, tensors.input());
    copy(batch.ids, tensors.indices());
    copy(batch.labels, tensors.labels());
}

}  // namespace rehearse::run
