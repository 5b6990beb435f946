// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rehearse {

/// An index, which is signed everywhere here, as containers take it.
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// The place of one kind of thing in its list: a layer's of a network, a bucket's of a part. It is made of a number by
/// name only, and of no other kind's index: what takes a layer cannot be given a bucket. It goes wherever a number
/// does. Below 0 (as it is made): of none.
template <typename Kind>
class Index {
public:
    constexpr Index() = default;
    template <std::integral Number>
    constexpr explicit Index(Number number) : value_(static_cast<int>(number)) {}
    constexpr operator int() const { return value_; }

private:
    int value_ = -1;
};

/// Places in two lists are never the same.
template <typename One, typename Other>
requires(!std::same_as<One, Other>) bool operator==(Index<One>, Index<Other>) = delete;

using LayerIndex = Index<struct LayerKind>;    // of Part::network
using BucketIndex = Index<struct BucketKind>;  // of Part::buckets
using StageIndex = Index<struct StageKind>;    // of a pipeline: place along its axis
using AxisIndex = Index<struct AxisKind>;      // of Schedule::mesh, or of two joined (core/mesh.hpp)

}  // namespace rehearse
