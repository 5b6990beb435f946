// SPDX-License-Identifier: Apache-2.0
#include "models/huggingface/windows.hpp"

#include <utility>

namespace rehearse::models::huggingface {
namespace {

constexpr float hidden = -100;  // as Microsoft's and Hugging Face's code has it

using Places = std::vector<std::int32_t>;

// `width` numbers of a pixel; -1: none.
void put(Places& places, std::int64_t pixel, std::int64_t width) {
    for (std::int64_t i = 0; i < width; ++i)
        places.push_back(static_cast<std::int32_t>(pixel < 0 ? -1 : pixel * width + i));
}

Windows::Told told(Places places) { return std::make_shared<const Given>(Given{.places = {std::move(places)}}); }

}  // namespace

auto Windows::cut(std::int64_t width) const -> Told {
    Places places;
    const std::int64_t all = along() * window, seen = window * window;
    for (std::int64_t i = 0; i < all * all; ++i) {
        const std::int64_t of = i / seen, within = i % seen;
        const std::int64_t y = (of / along() * window + within / window + shift) % all;
        const std::int64_t x = (of % along() * window + within % window + shift) % all;
        put(places, y < side && x < side ? y * side + x : -1, width);
    }
    return told(std::move(places));
}

auto Windows::joined(std::int64_t width) const -> Told {
    Places places;
    const std::int64_t all = along() * window;
    for (std::int64_t i = 0; i < side * side; ++i) {
        const std::int64_t y = (i / side + all - shift) % all, x = (i % side + all - shift) % all;
        const std::int64_t of = y / window * along() + x / window;
        put(places, (of * window + y % window) * window + x % window, width);
    }
    return told(std::move(places));
}

auto Windows::mask() const -> Told {
    const std::int64_t all = along() * window, seen = window * window;
    const auto region = [&](std::int64_t at) { return at < all - window ? 0 : at < all - shift ? 1 : 2; };
    std::vector<float> values;
    for (std::int64_t of = 0; of < along() * along(); ++of) {
        const auto region_of = [&](std::int64_t pixel) {
            return 3 * region(of / along() * window + pixel / window) + region(of % along() * window + pixel % window);
        };
        for (std::int64_t i = 0; i < seen * seen; ++i)
            values.push_back(region_of(i / seen) == region_of(i % seen) ? 0 : hidden);
    }
    return std::make_shared<const Given>(Given{.fixed = {std::move(values)}});
}

auto Windows::distances(std::int64_t heads) const -> Told {
    Places places;
    const std::int64_t seen = window * window, wide = 2 * window - 1;
    for (std::int64_t i = 0; i < seen * seen; ++i) {
        const std::int64_t a = i / seen, b = i % seen;
        const std::int64_t down = a / window - b / window + window - 1, right = a % window - b % window + window - 1;
        put(places, down * wide + right, heads);
    }
    return told(std::move(places));
}

auto Windows::neighbours(std::int64_t width) const -> Told {
    Places places;
    const std::int64_t half = (side + 1) / 2;
    for (std::int64_t i = 0; i < half * half; ++i) {
        for (const auto& [down, right] : {std::pair{0, 0}, std::pair{1, 0}, std::pair{0, 1}, std::pair{1, 1}}) {
            const std::int64_t y = 2 * (i / half) + down, x = 2 * (i % half) + right;
            put(places, y < side && x < side ? y * side + x : -1, width);
        }
    }
    return told(std::move(places));
}

}  // namespace rehearse::models::huggingface
