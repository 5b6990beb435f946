// SPDX-License-Identifier: Apache-2.0
#include "run/steps/ready_step.hpp"

#include "core/error.hpp"
#include "kernels/comm/reduction.hpp"
#include "kernels/convert.hpp"

namespace rehearse::run {

void finish(const ReadyStep& ready) {
    if (ready.after) ready.after();
    for (const Addition& addition : ready.additions) {
        if (addition.first) {
            kernels::convert(addition.part, addition.sum);
            continue;
        }
        kernels::ConstView part = addition.part;
        if (!addition.wide.empty()) {
            kernels::convert(part, addition.wide);
            part = addition.wide;
        }
        require(part.type() == addition.sum.type(), "numbers of one type are added");
        kernels::add(addition.sum.type(), static_cast<std::byte*>(addition.sum.bytes()),
                     static_cast<const std::byte*>(part.bytes()), static_cast<std::int64_t>(addition.sum.size()));
    }
}

void finish(const ReadyStep& ready, kernels::Device& device) {
    if (ready.after && ready.host_works) device.finish();
    if (ready.after) ready.after();
    for (const Addition& addition : ready.additions) {
        if (addition.first) {
            device.copy(addition.part, addition.sum);
        } else {
            device.add(addition.sum, addition.part);
        }
    }
}

}  // namespace rehearse::run
