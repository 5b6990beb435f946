// SPDX-License-Identifier: Apache-2.0
// Descriptions of primitives, as oneDNN 2.6 and 3 take them. Version 2 has a description of the operation inside that
// of the primitive, and knows the result's tensor by itself where it is like the source; version 3 takes all in one
// list, each tensor named. Only this file and `scaled` in attention.cpp know the difference.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "kernels/onednn/program.hpp"

namespace rehearse::kernels::onednn {

#if DNNL_VERSION_MAJOR >= 3
using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
#else
using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
#endif

/// A primitive with these attributes; `operation` in version 3's order, which is version 2's where both have the same.
template <class Primitive, class... Operation>
typename Primitive::primitive_desc described(const dnnl::primitive_attr& attr, Operation&&... operation) {
#if DNNL_VERSION_MAJOR >= 3
    return {engine(), std::forward<Operation>(operation)..., attr};
#else
    return {typename Primitive::desc(std::forward<Operation>(operation)...), attr, engine()};
#endif
}

/// A backward pass with our attributes; `forward` describes the pass whose gradient it is.
template <class Primitive, class Forward, class... Operation>
typename Primitive::primitive_desc described_back(const Forward& forward, Operation&&... operation) {
#if DNNL_VERSION_MAJOR >= 3
    return {engine(), std::forward<Operation>(operation)..., forward, attributes()};
#else
    return {typename Primitive::desc(std::forward<Operation>(operation)...), attributes(), engine(), forward};
#endif
}

/// A forward pass whose result has the shape of its source `data`; `first` comes before the tensors, `rest` behind.
template <class Primitive, class First, class... Rest>
typename Primitive::primitive_desc described_alike(const First& first, const dnnl::memory::desc& data, Rest... rest) {
    return std::apply(
        [&](const auto&... words) {
#if DNNL_VERSION_MAJOR >= 3
            return described<Primitive>(attributes(), words..., data, data, rest...);
#else
            return described<Primitive>(attributes(), words..., data, rest...);
#endif
        },
        first);
}

/// Its backward pass: gradients and the tensor that it reads have the shape of `data`.
template <class Primitive, class Forward, class First, class... Rest>
typename Primitive::primitive_desc described_alike_back(const Forward& forward, const First& first,
                                                        const dnnl::memory::desc& data, Rest... rest) {
    return std::apply(
        [&](const auto&... words) {
#if DNNL_VERSION_MAJOR >= 3
            return described_back<Primitive>(forward, words..., data, data, data, rest...);
#else
            return described_back<Primitive>(forward, words..., data, data, rest...);
#endif
        },
        first);
}

inline dnnl::softmax_forward::primitive_desc described_softmax(const dnnl::memory::desc& data, int axis) {
#if DNNL_VERSION_MAJOR >= 3
    const std::tuple words{dnnl::prop_kind::forward_training, dnnl::algorithm::softmax_accurate};
#else
    const std::tuple words{dnnl::prop_kind::forward_training};
#endif
    return described_alike<dnnl::softmax_forward>(words, data, axis);
}

inline dnnl::softmax_backward::primitive_desc described_softmax_back(const dnnl::memory::desc& data, int axis) {
#if DNNL_VERSION_MAJOR >= 3
    const std::tuple words{dnnl::algorithm::softmax_accurate};
#else
    const std::tuple<> words;
#endif
    return described_alike_back<dnnl::softmax_backward>(described_softmax(data, axis), words, data, axis);
}

inline dnnl::concat::primitive_desc described_concat(const dnnl::memory::desc& whole, int axis,
                                                     const std::vector<dnnl::memory::desc>& parts) {
#if DNNL_VERSION_MAJOR >= 3
    return {engine(), whole, axis, parts, attributes()};
#else
    return {whole, axis, parts, engine(), attributes()};
#endif
}

/// The sizes of a tensor.
inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
    return desc.get_dims();
#else
    return desc.dims();
#endif
}

inline void append_eltwise(dnnl::post_ops& after, dnnl::algorithm algorithm, float alpha) {
#if DNNL_VERSION_MAJOR >= 3
    after.append_eltwise(algorithm, alpha, 0.0F);
#else
    after.append_eltwise(1.0F, algorithm, alpha, 0.0F);
#endif
}

}  // namespace rehearse::kernels::onednn
