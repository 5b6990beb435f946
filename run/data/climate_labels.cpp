// SPDX-License-Identifier: Apache-2.0
// Which pixel belongs to a cyclone or a river, by thresholds on what can be measured.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/data/climate.hpp"

namespace rehearse::run {

namespace {

// Of a cyclone's centre: a local minimum so far below the map's mean, with wind and vorticity nearby.
constexpr double deep = 15;         // hPa
constexpr double storm = 25;        // m/s
constexpr double strong_swirl = 8;  // m/s a pixel
constexpr std::int64_t nearby = 4;  // pixels
// Of the pixels round it.
constexpr double depression = 10;  // hPa below the mean
constexpr double gale = 25;        // m/s
// Of a river.
constexpr double wet_wind = 800;          // kg/(m s)
constexpr std::int64_t long_enough = 14;  // pixels, of its bounding box's diagonal
constexpr double narrow = 0.35;           // of the square of that, at most what it covers

double mean_of(const std::vector<float>& values) {
    double sum = 0;
    for (const float value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

class Labeller {
public:
    Labeller(const Fields& fields, std::span<std::int32_t> labels)
        : fields_(fields), labels_(labels), mean_(mean_of(fields.pressure)), vorticity_(fields.vorticity()) {}

    void run() {
        std::ranges::fill(labels_, background);
        find_rivers();
        find_cyclones();
    }

private:
    double wind(std::size_t pixel) const { return std::hypot(fields_.u[pixel], fields_.v[pixel]); }

    template <typename Visit>
    void around(std::int64_t pixel, std::int64_t reach, const Visit& visit) const {
        const std::int64_t y = pixel / fields_.width, x = pixel % fields_.width;
        for (std::int64_t j = std::max<std::int64_t>(0, y - reach); j <= std::min(fields_.height - 1, y + reach); ++j) {
            for (std::int64_t i = std::max<std::int64_t>(0, x - reach); i <= std::min(fields_.width - 1, x + reach);
                 ++i) {
                visit(at(j * fields_.width + i));
            }
        }
    }

    bool is_centre(std::int64_t pixel) const {
        const double pressure = fields_.pressure[at(pixel)];
        if (mean_ - pressure < deep) return false;
        bool lowest = true;
        double fastest = 0, swirl = 0;
        around(pixel, 2, [&](std::size_t other) { lowest = lowest && fields_.pressure[other] >= pressure; });
        if (!lowest) return false;
        around(pixel, nearby, [&](std::size_t other) {
            fastest = std::max(fastest, wind(other));
            swirl = std::max(swirl, std::abs(static_cast<double>(vorticity_[other])));
        });
        return fastest >= storm && swirl >= strong_swirl;
    }

    // Over low pressure or gales, no further than three times as far as they are looked for.
    void find_cyclones() {
        for (std::int64_t centre = 0; centre < static_cast<std::int64_t>(labels_.size()); ++centre) {
            if (!is_centre(centre)) continue;
            std::vector<bool> mask(labels_.size());
            around(centre, nearby, [&](std::size_t pixel) {
                mask[pixel] = mean_ - fields_.pressure[pixel] >= depression ||
                              (wind(pixel) >= gale && mean_ - fields_.pressure[pixel] >= depression / 2);
            });
            for (const std::int64_t pixel : flood_fill(mask, fields_.height, fields_.width, centre)) {
                labels_[at(pixel)] = cyclone;
            }
        }
    }

    void find_rivers() {
        const std::vector<float> transport = fields_.transport();
        std::vector<bool> wet(transport.size());
        for (std::size_t i = 0; i < wet.size(); ++i) {
            // A cyclone is moist and fast as well, but turns.
            wet[i] = transport[i] >= wet_wind;
        }
        std::vector<bool> seen(wet.size());
        for (std::int64_t start = 0; start < static_cast<std::int64_t>(wet.size()); ++start) {
            if (!wet[at(start)] || seen[at(start)]) continue;
            const std::vector<std::int64_t> pixels = flood_fill(wet, fields_.height, fields_.width, start);
            for (const std::int64_t pixel : pixels) seen[at(pixel)] = true;
            if (!is_long_and_narrow(pixels)) continue;
            for (const std::int64_t pixel : pixels) labels_[at(pixel)] = river;
        }
    }

    bool is_long_and_narrow(const std::vector<std::int64_t>& pixels) const {
        std::int64_t left = fields_.width, right = 0, top = fields_.height, bottom = 0;
        for (const std::int64_t pixel : pixels) {
            left = std::min(left, pixel % fields_.width);
            right = std::max(right, pixel % fields_.width);
            top = std::min(top, pixel / fields_.width);
            bottom = std::max(bottom, pixel / fields_.width);
        }
        const double length = std::hypot(static_cast<double>(right - left + 1), static_cast<double>(bottom - top + 1));
        return length >= static_cast<double>(long_enough) &&
               static_cast<double>(pixels.size()) <= narrow * length * length;
    }

    const Fields& fields_;
    std::span<std::int32_t> labels_;
    double mean_;
    std::vector<float> vorticity_;
};

}  // namespace

std::vector<std::int64_t> flood_fill(const std::vector<bool>& mask, std::int64_t height, std::int64_t width,
                                     std::int64_t start) {
    require(static_cast<std::int64_t>(mask.size()) == height * width, "a mask of the whole map");
    std::vector<std::int64_t> reached{start};
    std::vector<bool> seen(mask.size());
    seen[at(start)] = true;
    for (std::size_t next = 0; next < reached.size(); ++next) {
        const std::int64_t y = reached[next] / width, x = reached[next] % width;
        const auto visit = [&](std::int64_t to_y, std::int64_t to_x) {
            if (to_y < 0 || to_y >= height || to_x < 0 || to_x >= width) return;
            const std::int64_t pixel = to_y * width + to_x;
            if (!mask[at(pixel)] || seen[at(pixel)]) return;
            seen[at(pixel)] = true;
            reached.push_back(pixel);
        };
        visit(y - 1, x);
        visit(y + 1, x);
        visit(y, x - 1);
        visit(y, x + 1);
    }
    std::ranges::sort(reached);
    return reached;
}

void label(const Fields& fields, std::span<std::int32_t> labels) {
    require(labels.size() == fields.pressure.size(), "a label for each pixel");
    Labeller{fields, labels}.run();
}

}  // namespace rehearse::run
