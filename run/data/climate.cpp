// SPDX-License-Identifier: Apache-2.0
#include "run/data/climate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

enum Purpose : std::uint64_t { weather_of = 1, waves_of = 2 };
constexpr double turn = 2 * std::numbers::pi;

/// Long waves, deviation about `size` round `mean`.
std::vector<float> smooth(std::int64_t height, std::int64_t width, std::uint64_t seed, double mean, double size) {
    std::vector<float> field(at(height * width), static_cast<float>(mean));
    Uniform random{seed};
    constexpr int waves = 3;
    for (int wave = 0; wave < waves; ++wave) {
        const double fx = turn * (3 * random.next() - 1.5) / static_cast<double>(width);
        const double fy = turn * (3 * random.next() - 1.5) / static_cast<double>(height);
        const double phase = turn * random.next(), amplitude = size * std::sqrt(2.0 / waves);
        for (std::int64_t y = 0; y < height; ++y) {
            for (std::int64_t x = 0; x < width; ++x) {
                const double angle = fx * static_cast<double>(x) + fy * static_cast<double>(y) + phase;
                field[at(y * width + x)] += static_cast<float>(amplitude * std::cos(angle));
            }
        }
    }
    return field;
}

template <typename Visit>
void for_each_pixel(const Fields& fields, const Visit& visit) {
    for (std::int64_t y = 0; y < fields.height; ++y) {
        for (std::int64_t x = 0; x < fields.width; ++x) {
            visit(static_cast<double>(x), static_cast<double>(y), at(y * fields.width + x));
        }
    }
}

/// Wind that is fastest at the radius and dies away like a bell, pressure and warmth of the same width.
void plant(const Cyclone& cyclone, Fields& fields) {
    for_each_pixel(fields, [&](double x, double y, std::size_t pixel) {
        const double dx = (x - cyclone.x) / cyclone.radius, dy = (y - cyclone.y) / cyclone.radius;
        const double square = dx * dx + dy * dy;
        if (square > 25) return;
        const double bell = std::exp(-square / 2);
        const double swirl = cyclone.turn * cyclone.wind * std::exp(0.5) * bell;  // times the distance: 1 at the radius
        fields.u[pixel] -= static_cast<float>(swirl * dy);
        fields.v[pixel] += static_cast<float>(swirl * dx);
        fields.pressure[pixel] -= static_cast<float>(0.8 * cyclone.wind * bell);
        fields.moisture[pixel] += static_cast<float>(15 * bell);
        fields.temperature[pixel] += static_cast<float>(0.1 * cyclone.wind * bell);
    });
}

void plant(const River& river, Fields& fields) {
    const double cosine = std::cos(river.direction), sine = std::sin(river.direction);
    for_each_pixel(fields, [&](double x, double y, std::size_t pixel) {
        const double along = (x - river.x) * cosine + (y - river.y) * sine;
        const double reach = 2 * along / river.length;  // -1 to 1
        if (std::abs(reach) > 1.5) return;
        const double across = (y - river.y) * cosine - (x - river.x) * sine - river.bend * reach * reach;
        const double bell =
            std::exp(-across * across / (2 * river.width * river.width)) * std::exp(-std::pow(std::abs(reach), 8));
        const double slope = 4 * river.bend * reach / river.length;  // of the arc
        const double length = std::hypot(1.0, slope);
        fields.u[pixel] += static_cast<float>(river.wind * bell * (cosine - slope * sine) / length);
        fields.v[pixel] += static_cast<float>(river.wind * bell * (sine + slope * cosine) / length);
        fields.moisture[pixel] += static_cast<float>(river.moisture * bell);
    });
}

}  // namespace

std::vector<float> Fields::vorticity() const {
    std::vector<float> curl(u.size());
    const auto between = [](std::int64_t i, std::int64_t size) { return std::clamp<std::int64_t>(i, 0, size - 1); };
    for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
            const auto pixel = [&](std::int64_t dy, std::int64_t dx) {
                return at(between(y + dy, height) * width + between(x + dx, width));
            };
            curl[at(y * width + x)] = (v[pixel(0, 1)] - v[pixel(0, -1)] - u[pixel(1, 0)] + u[pixel(-1, 0)]) / 2;
        }
    }
    return curl;
}

std::vector<float> Fields::transport() const {
    std::vector<float> flux(u.size());
    for (std::size_t i = 0; i < flux.size(); ++i) flux[i] = moisture[i] * std::hypot(u[i], v[i]);
    return flux;
}

Climate::Climate(const Shape& sample, std::uint64_t seed) : height_(0), width_(0), seed_(seed) {
    if (sample.size() != 3 || sample[0] != channels || sample[1] < 16 || sample[2] < 16) {
        throw InputError(
            fmt::format("--data climate: the network takes samples of {}, these data are {} channels of at "
                        "least 16x16: choose deeplabv3plus-small or tiramisu-small",
                        to_string(sample), channels));
    }
    height_ = sample[1];
    width_ = sample[2];
}

Weather Climate::weather(std::int64_t index) const {
    Uniform random{key(key(seed_, weather_of), static_cast<std::uint64_t>(index))};
    const auto height = static_cast<double>(height_), width = static_cast<double>(width_);
    const double scale = std::sqrt(height * width / (48 * 72));
    Weather weather;
    const auto between = [&](double least, double most) { return least + (most - least) * random.next(); };
    const int cyclones = static_cast<int>(between(0, 3));
    for (int i = 0; i < cyclones; ++i) {
        Cyclone made{between(0.15, 0.85) * width, between(0.15, 0.85) * height, between(1.4, 2.1) * scale,
                     between(40, 70), random.next() < 0.5 ? 1.0 : -1.0};
        const bool apart = std::ranges::all_of(weather.cyclones, [&](const Cyclone& other) {
            return std::hypot(made.x - other.x, made.y - other.y) > 6 * (made.radius + other.radius);
        });
        if (apart) weather.cyclones.push_back(made);
    }
    if (random.next() < 0.6) {
        weather.rivers.push_back({between(0.3, 0.7) * width, between(0.3, 0.7) * height, between(-0.6, 0.6),
                                  between(-4, 4) * scale, between(26, 36) * scale, between(0.9, 1.3) * scale,
                                  between(35, 50), between(22, 32)});
    }
    return weather;
}

Fields Climate::fields(std::int64_t index) const {
    const std::uint64_t own = key(key(seed_, waves_of), static_cast<std::uint64_t>(index));
    const auto wave = [&](std::uint64_t which, double mean, double size) {
        return smooth(height_, width_, key(own, which), mean, size);
    };
    Fields fields{height_, width_, wave(0, 1013, 4), wave(1, 5, 4), wave(2, 0, 4), wave(3, 20, 4), wave(4, 260, 4)};
    const Weather planted = weather(index);
    for (const River& each : planted.rivers) plant(each, fields);
    for (const Cyclone& each : planted.cyclones) plant(each, fields);
    return fields;
}

// The other variables follow from the five, with long waves of their own. Names are those of the model's output.
void Climate::fill(std::int64_t index, std::span<float> sample, std::span<std::int32_t> labels) const {
    const Fields f = fields(index);
    label(f, labels);
    if (sample.empty()) return;
    const std::size_t area = at(height_ * width_);
    require(sample.size() == at(channels) * area, "room for one map");
    const std::uint64_t own = key(key(seed_, waves_of), static_cast<std::uint64_t>(index));
    std::size_t channel = 0;
    const auto put = [&](const std::vector<float>& field, float mean, float size) {
        const std::span<float> to = sample.subspan(channel++ * area, area);
        std::ranges::transform(field, to.begin(), [=](float value) { return (value - mean) / size; });
    };
    const auto mixed_with = [&](const std::vector<float>& field, float mean, float factor, double waves) {
        std::vector<float> made = smooth(height_, width_, key(own, 100 + channel), 0, waves);
        for (std::size_t i = 0; i < area; ++i) made[i] += factor * (field[i] - mean);
        return made;
    };
    put(f.moisture, 22, 7);                                   // TMQ
    put(f.u, 5, 7);                                           // U850
    put(f.v, 0, 7);                                           // V850
    put(mixed_with(f.u, 5, 0.8F, 2), 0, 6);                   // UBOT
    put(mixed_with(f.v, 0, 0.8F, 2), 0, 6);                   // VBOT
    put(mixed_with(f.moisture, 22, 0.3F, 1), 0, 2.5F);        // QREFHT
    put(mixed_with(f.pressure, 1013, 1, 2), 0, 6);            // PS
    put(f.pressure, 1013, 5);                                 // PSL
    put(mixed_with(f.temperature, 260, 0.6F, 2), 0, 3);       // T200
    put(f.temperature, 260, 4);                               // T500
    put(mixed_with(f.transport(), 150, 0.01F, 1), 0, 3);      // PRECT
    put(smooth(height_, width_, key(own, 111), 0, 1), 0, 1);  // TS
    put(smooth(height_, width_, key(own, 112), 0, 1), 0, 1);  // TREFHT
    put(mixed_with(f.pressure, 1013, 8, 10), 0, 45);          // Z1000
    put(smooth(height_, width_, key(own, 114), 0, 1), 0, 1);  // Z200
    put(mixed_with(f.pressure, 1013, 1, 3), 0, 6);            // ZBOT
}

}  // namespace rehearse::run
