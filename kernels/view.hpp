// SPDX-License-Identifier: Apache-2.0
// A stretch of a tensor's elements with their data type: what Buffers are made of.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "core/half.hpp"

namespace rehearse::kernels {

/// logic_error: a bug, elements of type `held` were taken for others.
[[noreturn]] void refuse_view(DataType held, DataType taken);

/// Does not own its elements. Made from a span or a vector of float, Float16 or BFloat16, and a range of floats where
/// it holds f32: data(), [], begin() and the conversion to std::span<float> check that it does. as<Float16>() is the
/// span of another type. An empty view is of every type. `Void` is void or const void.
template <typename Void>
class BasicView {
    static constexpr bool read_only = std::is_const_v<Void>;
    template <typename Element>
    using Of = std::conditional_t<read_only, const Element, Element>;

public:
    BasicView() = default;
    BasicView(Void* data, std::size_t size, DataType type) : data_(data), size_(size), type_(type) {}

    template <typename Element>
    requires is_element<std::remove_const_t<Element>> &&
        (read_only ||
         !std::is_const_v<Element>)BasicView(std::span<Element> elements)  // NOLINT: implicit, as span's own
        : BasicView(elements.data(), elements.size(), data_type<std::remove_const_t<Element>>()) {}

    template <typename Element>
    requires is_element<Element> BasicView(std::vector<Element>& elements)  // NOLINT: implicit, as span's own
        : BasicView(std::span<Element>{elements}) {}

    template <typename Element>
    requires(is_element<Element>&& read_only)
        BasicView(const std::vector<Element>& elements)  // NOLINT: implicit, as span's own
        : BasicView(std::span<const Element>{elements}) {}

    /// What may be written may be read.
    template <typename Other>
    requires(read_only && !std::is_const_v<Other>) BasicView(const BasicView<Other>& other)  // NOLINT: implicit
        : BasicView(other.bytes(), other.size(), other.type()) {}

    DataType type() const { return type_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    Void* bytes() const { return data_; }
    std::size_t size_bytes() const { return size_ * element_bytes(); }

    template <typename Element>
    requires is_element<Element> std::span<Of<Element>> as()
    const {
        if (type_ != data_type<Element>() && size_ > 0) refuse_view(type_, data_type<Element>());
        return {static_cast<Of<Element>*>(data_), size_};
    }

    Of<float>* data() const { return as<float>().data(); }
    Of<float>* begin() const { return data(); }
    Of<float>* end() const { return data() + size_; }
    template <typename Index>
    Of<float>& operator[](Index i) const {
        return data()[i];
    }

    BasicView subspan(std::size_t offset, std::size_t count) const {
        using Byte = Of<std::byte>;
        return {static_cast<Byte*>(data_) + offset * element_bytes(), count, type_};
    }
    BasicView first(std::size_t count) const { return subspan(0, count); }

private:
    std::size_t element_bytes() const { return type_ == DataType::f32 ? 4 : 2; }

    Void* data_ = nullptr;
    std::size_t size_ = 0;
    DataType type_ = DataType::f32;
};

using View = BasicView<void>;
using ConstView = BasicView<const void>;

}  // namespace rehearse::kernels

template <typename Void>
inline constexpr bool std::ranges::enable_borrowed_range<rehearse::kernels::BasicView<Void>> = true;
