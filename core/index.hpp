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
template <typename Kind, std::integral Value = int>
class Index {
public:
    constexpr Index() = default;
    template <std::integral Number>
    constexpr explicit Index(Number number) : value_(static_cast<Value>(number)) {}
    constexpr operator Value() const { return value_; }
    /// The next one.
    constexpr Index& operator++() {
        ++value_;
        return *this;
    }

private:
    Value value_ = -1;
};

/// Places in two lists are never the same.
template <typename One, typename OneValue, typename Other, typename OtherValue>
requires(!std::same_as<One, Other>) bool operator==(Index<One, OneValue>, Index<Other, OtherValue>) = delete;

using LayerIndex = Index<struct LayerKind>;    // of Part::network
using BucketIndex = Index<struct BucketKind>;  // of Part::buckets
using StageIndex = Index<struct StageKind>;    // of a pipeline: its place along it
using AxisIndex = Index<struct AxisKind>;      // of Schedule::mesh, or of two joined (core/mesh.hpp)
/// Of all ranks of a job, those of its mesh first, its servers behind them. A rank's place in a group, and so in the
/// rounds of a collective, is another number.
using RankIndex = Index<struct RankKind, std::int64_t>;

}  // namespace rehearse
