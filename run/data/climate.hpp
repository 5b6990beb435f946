// SPDX-License-Identifier: Apache-2.0
// Weather maps as the climate networks of Kurth et al. 2018 take them: 16 smooth fields with tropical cyclones and
// atmospheric rivers in some of them, each pixel labelled by what the fields themselves say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/op.hpp"

namespace rehearse::run {

enum WeatherClass : std::int32_t { background, cyclone, river };

/// A swirl of wind round low pressure, in pixels and m/s.
struct Cyclone {
    double x = 0, y = 0, radius = 3, wind = 50, turn = 1;  // turn: 1 or -1
};
/// A band of moist, fast air along an arc.
struct River {
    double x = 0, y = 0, direction = 0, bend = 0, length = 30, width = 2.5, moisture = 40, wind = 25;
};
struct Weather {
    std::vector<Cyclone> cyclones;
    std::vector<River> rivers;
};

/// What pixels are labelled by, in SI units; `area` is H x W.
struct Fields {
    std::int64_t height = 0, width = 0;
    std::vector<float> pressure;           // at sea level, hPa
    std::vector<float> u, v;               // wind at 850 hPa, m/s
    std::vector<float> moisture;           // water vapour of the whole column, kg/m^2
    std::vector<float> temperature;        // at 500 hPa, K
    std::vector<float> vorticity() const;  // dv/dx - du/dy by central differences, m/s a pixel
    std::vector<float> transport() const;  // moisture times wind, kg/(m s)
};

/// The pixels that can be reached from `start` over neighbours (four each) that are in the mask, `start` included.
std::vector<std::int64_t> flood_fill(const std::vector<bool>& mask, std::int64_t height, std::int64_t width,
                                     std::int64_t start);

/// As TECA's and ClimDeepLearn's heuristics do, by thresholds: a cyclone is what is reached, over low pressure or
/// strong wind, from a pressure minimum with strong wind and vorticity round it; a river what hangs together of high
/// vapour transport and is long and narrow. Everything else is background.
void label(const Fields& fields, std::span<std::int32_t> labels);

class Climate {
public:
    static constexpr std::int64_t channels = 16;

    /// Maps of {16, height, width}; InputError for any other sample.
    Climate(const Shape& sample, std::uint64_t seed);

    /// What was planted in sample `index`.
    Weather weather(std::int64_t index) const;
    Fields fields(std::int64_t index) const;
    /// Channels with mean about 0 and deviation about 1, and their labels. `sample` may be empty.
    void fill(std::int64_t index, std::span<float> sample, std::span<std::int32_t> labels) const;

private:
    std::int64_t height_, width_;
    std::uint64_t seed_;
};

}  // namespace rehearse::run
