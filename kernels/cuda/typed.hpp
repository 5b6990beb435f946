// SPDX-License-Identifier: Apache-2.0
// Tasks of this folder by run-time data type.
#pragma once

#include "kernels/cuda/kernels.hpp"

namespace rehearse::kernels::cuda {

/// `count` elements further.
inline std::byte* offset(void* begin, std::int64_t count, DataType type) {
    return static_cast<std::byte*>(begin) + count * static_cast<std::int64_t>(size_of(type).value);
}

/// Calls with a value of the element's C++ type.
template <typename F>
void with_type(DataType type, F f) {
    if (type == DataType::f32) return f(float{});
    if (type == DataType::f16) return f(Float16{});
    f(BFloat16{});
}

/// The task whose blocks are as large as they can be while each multiprocessor gets two.
template <template <typename, typename> typename Form>
Tiled<Form> tiled(Form<float, LargeFloats> task, DataType type, Cores cores, int processors) {
    const Blocks blocks = task.blocks();
    const bool large = blocks.x * blocks.y * blocks.z >= 2 * processors;
    constexpr bool has_partial = requires { task.partial; };
    const auto as = [&](auto form) -> Tiled<Form> {
        static_cast<ImplicitGemm&>(form) = task;
        if constexpr (has_partial) {
            form.partial = task.partial;
            form.splits = task.splits;
        }
        return form;
    };
    if (cores == Cores::ordinary) return large ? as(Form<float, LargeFloats>{}) : as(Form<float, SmallFloats>{});
    Tiled<Form> made;
    with_type(type, [&]<typename Element>(Element) {
        made = large ? as(Form<Element, LargeTensor<Element>>{}) : as(Form<Element, SmallTensor<Element>>{});
    });
    return made;
}

}  // namespace rehearse::kernels::cuda
