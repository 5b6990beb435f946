// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pieces.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "calibrate/fit.hpp"
#include "core/error.hpp"

namespace rehearse::calibrate {

namespace {

// Small messages take the same time whatever their size: a line must not fall, and needs a slope to be a rate.
constexpr double least_slope = 1e-13;  // 10 TB/s
constexpr std::size_t fewest_sizes = 3;
// What medians of a clock and a scheduler are worth at best: residuals below it are no reason for another line.
constexpr double worth = 0.005;
// The relative spread of a size's samples at which its median counts half.
constexpr double doubtful = 0.02;

// F of a line that begins below zero over one through the origin: five points reach it by chance once in a hundred.
constexpr double convincing = 34;

struct Point {
    double size = 0, time = 0;
    double weight = 1;  // at most 1
};

struct Line {
    double start = 0, slope = least_slope;
    double at(double size) const { return start + slope * size; }
};

double misfit(std::span<const Point> points, const Line& line) {
    double sum = 0;
    for (const Point& p : points) sum += p.weight * std::pow(line.at(p.size) / p.time - 1, 2);
    return sum;
}

// Least weighted squares of time / measured time - 1, of messages larger than `after`: the slope is never negative, nor
// a time. Beyond a cache a byte takes longer than before: that line begins below zero, at sizes that it is not for.
// Drawn through the origin, it was 13 to 19 % too low at 6 MB (docs/calibration.md).
Line line_through(std::span<const Point> points, double after) {
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (const Point& p : points) {
        const double weight = p.weight / (p.time * p.time);
        w += weight;
        wx += weight * p.size;
        wy += weight * p.time;
        wxx += weight * p.size * p.size;
        wxy += weight * p.size * p.time;
    }
    const double spread = w * wxx - wx * wx;
    const double slope = spread > 0 ? (w * wxy - wx * wy) / spread : 0;
    if (slope < least_slope) return {std::max(0.0, wy - least_slope * wx) / w, least_slope};
    const double start = (wy - slope * wx) / w;
    const Line line{start, slope}, from_origin{0, std::max(wxy / wxx, least_slope)};
    if (start >= 0) return line;
    const double freedom = std::max(1.0, static_cast<double>(points.size()) - 2), own = misfit(points, line);
    const bool bends = (misfit(points, from_origin) - own) * freedom > convincing * own;
    return bends && line.at(after) >= 0 ? line : from_origin;
}

std::vector<Point> medians(std::span<const MessageSample> samples) {
    std::map<double, std::vector<double>> by_size;
    for (const MessageSample& sample : samples) {
        if (sample.one_way.value <= 0 || sample.size.value <= 0)
            throw InputError("message samples: every size and time must be positive");
        by_size[sample.size.value].push_back(sample.one_way.value);
    }
    if (by_size.size() < 2) throw InputError("message samples: at least two sizes are needed to fit overhead and rate");
    std::vector<Point> points;
    for (const auto& [size, times] : by_size) {
        const double middle = median(times);
        points.push_back({size, middle, 1 / (1 + std::pow(robust_deviation(times) / middle / doubtful, 2))});
    }
    return points;
}

// best[k][n]: the least misfit of k lines through the first n points, and where the last of them begins.
struct Cut {
    double misfit = std::numeric_limits<double>::infinity();
    std::size_t from = 0;
};

std::vector<std::vector<Cut>> cuts(std::span<const Point> points, int most) {
    const std::size_t n = points.size();
    const std::size_t fewest = std::min(fewest_sizes, n);
    std::vector<std::vector<Cut>> best(static_cast<std::size_t>(most) + 1, std::vector<Cut>(n + 1));
    best[0][0].misfit = 0;
    for (std::size_t from = 0; from < n; ++from) {
        for (std::size_t to = from + fewest; to <= n; ++to) {
            const auto part = points.subspan(from, to - from);
            const double own = misfit(part, line_through(part, from == 0 ? 0 : points[from - 1].size));
            for (std::size_t k = 1; k < best.size(); ++k) {
                const double sum = best[k - 1][from].misfit + own;
                if (sum < best[k][to].misfit) best[k][to] = {sum, from};
            }
        }
    }
    return best;
}

double schwarz(double misfit, std::size_t points, std::size_t lines) {
    const auto n = static_cast<double>(points);
    // Start and slope of each, and cuts between them; these count twice, being the best of many places (why they
    // must count for more than a parameter: Zhang and Siegmund 2007).
    const auto parameters = static_cast<double>(4 * lines - 2);
    return n * std::log(misfit / n + worth * worth) + parameters * std::log(n);
}

}  // namespace

MessagePiece fit_line(std::span<const MessageSample> samples) {
    const Line line = line_through(medians(samples), 0);
    return {{}, Seconds{line.start}, Bandwidth{1 / line.slope}, {}};
}

PieceFit fit_pieces(std::span<const MessageSample> samples, int most) {
    const std::vector<Point> points = medians(samples);
    const auto best = cuts(points, most);
    std::size_t lines = 1;
    for (std::size_t k = 2; k < best.size(); ++k) {
        const auto value = [&](std::size_t count) { return schwarz(best[count].back().misfit, points.size(), count); };
        if (value(k) < value(lines)) lines = k;
    }
    PieceFit fit;
    fit.grows = line_through(points, 0).slope > least_slope;
    fit.samples = static_cast<std::int64_t>(samples.size());
    for (std::size_t to = points.size(); lines > 0; --lines) {
        const std::size_t from = best[lines][to].from;
        const Line line =
            line_through(std::span{points}.subspan(from, to - from), from == 0 ? 0 : points[from - 1].size);
        const Bytes up_to{to == points.size() ? 0 : points[to - 1].size};
        fit.pieces.insert(fit.pieces.begin(), {up_to, Seconds{line.start}, Bandwidth{1 / line.slope}, {}});
        to = from;
    }
    Messaging messaging;
    messaging.pieces = fit.pieces;
    std::vector<double> residuals;
    for (const MessageSample& sample : samples) {
        residuals.push_back(sample.one_way / beyond_wire(messaging, sample.size, Seconds{0}) - 1);
    }
    fit.error = robust_deviation(residuals);
    return fit;
}

}  // namespace rehearse::calibrate
