// SPDX-License-Identifier: Apache-2.0
// Numbers that depend only on what they are for, never on who draws them or in which order.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::run {

/// Mixes well (the finalizer of SplitMix64, Steele et al. 2014).
constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

/// One key out of two: key(key(seed, step), layer_key(name)).
constexpr std::uint64_t key(std::uint64_t a, std::uint64_t b) {
    return mixed(mixed(a + 0x9E3779B97F4A7C15U) ^ (b + 0xD1B54A32D192ED03U));
}

/// A layer's key: its name, of a fused one the first (models/fuse.hpp), so that fusing changes no weight and no mask.
constexpr std::uint64_t layer_key(std::string_view name) {
    std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const char letter : name.substr(0, name.find('+'))) {
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
    }
    return hash;
}

/// What numbers are drawn for in a training run, each from a seed of its own.
enum Purpose : std::uint64_t { weights_of, data_of, dropout_of };

/// In [0, 1), with 53 bits.
constexpr double uniform(std::uint64_t bits) { return static_cast<double>(mixed(bits) >> 11) * 0x1p-53; }

/// The next ones of a sequence: for bulk, two multiplications a number.
class Uniform {
public:
    constexpr explicit Uniform(std::uint64_t seed) : state_(seed) {}
    constexpr double next() { return uniform(state_ += 0x9E3779B97F4A7C15U); }

private:
    std::uint64_t state_;
};

}  // namespace rehearse::run
