// SPDX-License-Identifier: Apache-2.0
// Images and volumes read at points that a grid says (ONNX's GridSample; Jaderberg et al. 2015), for who runs them: no
// kernel does it at once, and prices are those of one operator.
//
//   grid {points, axes} --- where each lies --- pixels around it --- places --+
//                                  |                                          +-- values {channels, points} --+
//   image {channels, pixels} ------|------------------------------------------+                               +-- sum
//                                  +------------ how much of each pixel ---------------------------------------+
#include <cmath>
#include <utility>

#include "models/onnx/parts.hpp"
#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

constexpr std::int64_t most_pixels = 1 << 24;  // whole numbers that f32 holds
constexpr double cubic = -0.75;                // as ONNX and PyTorch have it (Keys 1981)

class Sampled {
public:
    Sampled(Import& import, const onnx::NodeProto& node, Shape image, Shape grid)
        : import_(import),
          node_(node),
          image_(std::move(image)),
          grid_(std::move(grid)),
          axes_(image_.size() - 1),
          points_(elements(grid_) / grid_.back()),
          mode_(text(node, "mode", "bilinear")),
          outside_(text(node, "padding_mode", "zeros")),
          corners_(integer(node, "align_corners", 0) != 0) {}

    void put() {
        const std::int64_t channels = image_.front();
        const int image = seen_as(import_, node_, import_.source(node_, 0), {channels, elements(image_) / channels});
        const int grid = seen_as(import_, node_, import_.source(node_, 1), {points_, grid_.back()});
        std::vector<std::vector<Pixel>> along;
        for (std::size_t axis = 0; axis < axes_; ++axis) along.push_back(pixels(axis, grid));
        std::size_t all = 1;
        for (const auto& each : along) all *= each.size();
        int sum = -1;
        for (std::size_t which = 0; which < all; ++which) {
            const int value = value_of(image, along, which);
            sum = sum < 0 ? value : both("add", sum, value);
        }
        import_.places[node_.output(0)] = {sum, ""};
    }

private:
    // Of each point {1, points}: a pixel along an axis, and how much of it is taken; -1: all of it.
    struct Pixel {
        int at = -1, share = -1;
    };

    int layer(const std::string& what, Op op, std::vector<int> from) {
        return add_part(import_, node_, what, std::move(op), std::move(from));
    }
    int one(const std::string& function, int from, std::vector<double> numbers = {}) {
        const Shape& shape = import_.builder.shape(from);
        return layer(function, Elementwise{function, shape, {shape}, {}, {}, std::move(numbers)}, {from});
    }
    int both(const std::string& function, int a, int b) {
        const Shape left = import_.builder.shape(a), right = import_.builder.shape(b);
        return layer(function, Elementwise{function, left, {left, right}}, {a, b});
    }
    int linear(int from, double factor, double added) { return one("add", one("mul", from, {factor}), {added}); }
    double size(std::size_t axis) const { return static_cast<double>(image_[axis + 1]); }

    // Where the points lie along an axis, in pixels. The last number of a point is that of the first axis.
    int coordinate(std::size_t axis, int grid) {
        const auto column = static_cast<std::int64_t>(axes_ - 1 - axis);
        const int cut =
            layer("piece", Rearrangement{"slice", {{points_, grid_.back()}}, {points_, 1}, {0, column, 1, 1}}, {grid});
        const double half = (corners_ ? size(axis) - 1 : size(axis)) / 2;
        return linear(seen_as(import_, node_, cut, {1, points_}), half, corners_ ? half : half - 0.5);
    }
    // What lies outside is mirrored, at the outer pixels' centres or edges, or is the outermost pixel.
    int brought_inside(std::size_t axis, int at) {
        const double last = size(axis) - 1;
        if (outside_ == "reflection") {
            const double low = corners_ ? 0 : -0.5, span = corners_ ? last : last + 1;
            if (span > 0) {
                const int round = one("mod", one("add", at, {-low}), {2 * span});
                at = linear(one("abs", one("add", round, {-span})), -1, low + span);
            }
        }
        return outside_ == "zeros" ? at : one("clip", at, {0, last});
    }
    std::vector<Pixel> pixels(std::size_t axis, int grid) {
        const int at = coordinate(axis, grid);
        if (mode_ == "bicubic" || mode_ == "cubic") {
            const int low = one("floor", at), part = both("sub", at, low);
            std::vector<Pixel> four;
            for (int k = -1; k <= 2; ++k)
                four.push_back(inside(axis, brought_inside(axis, one("add", low, {static_cast<double>(k)})),
                                      cubic_share(part, k)));
            return four;
        }
        const int here = brought_inside(axis, at);
        if (mode_ == "nearest") return {inside(axis, one("round", here), -1)};
        const int low = one("floor", here), part = both("sub", here, low);
        return {inside(axis, low, linear(part, -1, 1)), inside(axis, one("add", low, {1}), part)};
    }
    // Of a point `part` behind pixel 0 the share of pixel k, a polynomial of their distance.
    int cubic_share(int part, int k) {
        const int far = k <= 0 ? one("add", part, {static_cast<double>(-k)}) : linear(part, -1, k);
        const bool near = k == 0 || k == 1;
        const double a = near ? cubic + 2 : cubic, b = near ? -(cubic + 3) : -5 * cubic, c = near ? 0 : 8 * cubic,
                     d = near ? 1 : -4 * cubic;
        int sum = linear(far, a, b);
        for (const double each : {c, d}) sum = one("add", both("mul", sum, far), {each});
        return sum;
    }
    // A pixel that exists: of one that does not, nothing is taken.
    Pixel inside(std::size_t axis, int at, int share) {
        const int clipped = one("clip", at, {0, size(axis) - 1});
        if (outside_ != "zeros") return {clipped, share};
        const int exists = both("equal", at, clipped);
        return {clipped, share < 0 ? exists : both("mul", share, exists)};
    }

    // {channels, points}: one of the pixels around each point, with its share.
    int value_of(int image, const std::vector<std::vector<Pixel>>& along, std::size_t which) {
        int place = -1, share = -1;
        std::int64_t stride = 1;
        for (std::size_t axis = axes_; axis-- > 0;) {
            const Pixel& pixel = along[axis][which % along[axis].size()];
            which /= along[axis].size();
            const int own = stride == 1 ? pixel.at : one("mul", pixel.at, {static_cast<double>(stride)});
            place = place < 0 ? own : both("add", place, own);
            if (pixel.share >= 0) share = share < 0 ? pixel.share : both("mul", share, pixel.share);
            stride *= image_[axis + 1];
        }
        const Shape made{image_.front(), points_};
        if (made.front() > 1) place = layer("expand", Rearrangement{"expand", {{1, points_}}, made}, {place});
        const int value =
            layer("values", Rearrangement{"takeeach", {{made.front(), stride}, made}, made, {1}}, {image, place});
        return share < 0 ? value : both("mul", value, share);
    }

    Import& import_;
    const onnx::NodeProto& node_;
    Shape image_, grid_;
    std::size_t axes_;
    std::int64_t points_;
    std::string mode_, outside_;
    bool corners_;
};

}  // namespace

bool put_sampled(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() < 2 || !import.places.contains(node.input(0))) return false;
    import.source(node, 1);  // a constant grid becomes a layer
    const Shape image = import.sample(node, node.input(0)), grid = import.sample(node, node.input(1));
    const bool fits =
        image.size() > 1 && grid.size() == image.size() && grid.back() == static_cast<std::int64_t>(image.size()) - 1;
    if (!fits || elements(image) / image.front() > most_pixels) return false;
    Sampled{import, node, image, grid}.put();
    return true;
}

}  // namespace rehearse::models
