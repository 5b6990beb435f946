// SPDX-License-Identifier: Apache-2.0
// The rule of each operator.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/index.hpp"
#include "schedule/axes/spatial_splitter.hpp"

namespace rehearse::schedule {

namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

bool is_volume(const auto& op) {
    if constexpr (requires { op.depth; }) return op.depth > 0;
    return false;
}

/// An operator's size along dimension `dim` of its images.
std::int64_t& size_along(auto& op, std::int64_t dim) {
    const std::int64_t place = dim + (is_volume(op) ? 0 : 1);
    if constexpr (requires { op.depth; }) {
        if (place == 1) return op.depth;
    }
    return place == 2 ? op.height : op.width;
}

struct Along {
    std::int64_t kernel, stride, dilation;
    std::int64_t &before, &after;
};
Along window_along(Window& w, bool volume, std::int64_t dim) {
    switch (dim + (volume ? 0 : 1)) {
        case 1:
            return {w.kernel_d, w.stride_d, w.dilation_d, w.pad_front, w.pad_back};
        case 2:
            return {w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, w.pad_bottom};
        default:
            return {w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, w.pad_right};
    }
}

/// What each of `parts` ranks needs to compute its share of `outputs` windows. The block is then windowed without
/// padding.
template <typename Windows>
std::optional<Halo> to_block(Windows& op, std::int64_t dim, std::int64_t parts, std::int64_t outputs) {
    if (outputs % parts != 0) return std::nullopt;
    const Along w = window_along(op.window, is_volume(op), dim);
    const std::int64_t mine = outputs / parts, own = size_along(op, dim) / parts;
    const Halo halo{own, (mine - 1) * w.stride + w.dilation * (w.kernel - 1) + 1, mine * w.stride, w.before};
    w.before = w.after = 0;
    size_along(op, dim) = halo.stays() ? own : halo.size;
    return halo;
}

/// Output o comes of inputs i with o = stride i - padding + dilation t, 0 <= t < kernel.
std::optional<Halo> to_block(ConvTranspose& op, std::int64_t dim, std::int64_t parts, std::int64_t outputs) {
    const Along w = window_along(op.window, is_volume(op), dim);
    if (outputs % parts != 0 || outputs / parts % w.stride != 0) return std::nullopt;
    const std::int64_t mine = outputs / parts, reach = w.dilation * (w.kernel - 1);
    const std::int64_t before = floor_div(reach - w.before, w.stride);
    const std::int64_t last = floor_div(mine - 1 + w.before, w.stride);
    const Halo halo{size_along(op, dim) / parts, last + before + 1, mine / w.stride, before};
    if (halo.size < 1) return std::nullopt;
    w.before += w.stride * before;
    w.after = w.stride * (halo.size - 1) + reach + 1 - w.before - mine;
    const std::array outside{&op.output_pad_d, &op.output_pad_h, &op.output_pad_w};
    std::int64_t& output_pad = *outside[at(dim - (is_volume(op) ? 1 : 0))];
    output_pad = std::max<std::int64_t>(0, -w.after);
    w.after = std::max<std::int64_t>(0, w.after);
    size_along(op, dim) = halo.size;
    return w.before < 0 || output_pad >= w.stride ? std::nullopt : std::optional{halo};
}

}  // namespace

auto SpatialSplitter::split(const Input& op) -> Held {
    if (op.vocabulary > 0 || op.shape.size() < 3) return on_all();
    if (op.shape.size() <= at(axes_.back().dim)) {
        throw InputError(fmt::format("samples of {} have {} dimensions to cut, spatial has {}", to_string(op.shape),
                                     op.shape.size() - 1, axes_.back().dim));
    }
    for (const SpatialAxis& axis : axes_) {
        const std::int64_t size = op.shape[at(axis.dim)];
        if (size % axis.parts == 0) continue;
        throw InputError(fmt::format("{} ranks cannot share dimension {} of samples of {} evenly ({} % {} = {})",
                                     axis.parts, axis.dim, to_string(op.shape), size, axis.parts, size % axis.parts));
    }
    return made(Input{block_of(op.shape, all_)}, {}, all_, cuts_of_sample(all_, 1));
}

/// From the outermost axis on, as long as the ranks can share the output evenly.
template <typename Windows>
auto SpatialSplitter::split_windows(const Windows& op, bool lowest, unsigned refused) -> Held {
    const Shape whole = output_shape(Op{op});
    Windows mine = op;
    unsigned cut = 0;
    std::vector<Halo> halos;
    for (const std::size_t a : axes_of(outer(source(0).cut & ~refused))) {
        Windows tried = mine;
        const auto halo = to_block(tried, axes_[a].dim, axes_[a].parts, whole[at(axes_[a].dim)]);
        if (!halo) break;
        mine = tried;
        cut |= 1U << a;
        halos.push_back(*halo);
    }
    int from = lying(source(0), cut);
    for (std::size_t a = 0; a < halos.size(); ++a) {
        if (halos[a].stays() && !std::is_same_v<Windows, ConvTranspose>) continue;
        if (halos[a].stays() && halos[a].size == halos[a].own) continue;
        Communication halo{Movement::halo, axes_[a].name, {}, axes_[a].parts};
        halo.dim = axes_[a].dim;
        halo.halo = halos[a];
        halo.lowest = lowest;
        from = communicate(Label{layer()}.with(fmt::format(".halo{}", axes_[a].dim)), std::move(halo), from);
    }
    Held held = made(mine, {from}, cut);
    require(part_.network.layers.back().output == block_of(whole, cut), "each rank computes its block");
    return held;
}

auto SpatialSplitter::split(const Pool& op) -> Held {
    const bool average = op.kind == PoolKind::average;
    Pool whole = op;
    bool all_of_it = average;
    unsigned refused = 0;
    for (const std::size_t a : axes_of(source(0).cut)) {
        const Along w = window_along(whole.window, is_volume(op), axes_[a].dim);
        const bool padded = w.before > 0 || w.after > 0;
        all_of_it = all_of_it && !padded && w.kernel == size_along(whole, axes_[a].dim) && w.dilation == 1;
        // How much of a window lies inside the image would depend on the rank.
        if (average && !op.count_padding && padded) refused |= 1U << a;
    }
    return all_of_it && source(0).cut != 0 ? split_mean(op) : split_windows(op, !average, refused);
}

/// Each rank's part of the mean is its block's sum over the whole's size: a window that hangs over the block.
auto SpatialSplitter::split_mean(Pool op) -> Held {
    const unsigned cut = source(0).cut;
    op.count_padding = true;
    for (const std::size_t a : axes_of(cut)) {
        std::int64_t& size = size_along(op, axes_[a].dim);
        const std::int64_t own = size / axes_[a].parts;
        window_along(op.window, is_volume(op), axes_[a].dim).after = size - own;
        size = own;
    }
    const int own = append(layer(), op, {lying(source(0), cut)}, origin(0, {}));
    return {0, {{0, over_grid(Movement::sum, cut, own)}}};
}

auto SpatialSplitter::split(const BatchNorm& op) -> Held {
    const unsigned cut = common_cut();
    if (cut == 0) return on_all();
    BatchNorm mine = op;
    for (const std::size_t a : axes_of(cut)) size_along(mine, axes_[a].dim) /= axes_[a].parts;
    mine.parts = parts(cut);
    std::vector<int> inputs = inputs_lying(cut);
    const ChannelSums sums{mine.channels, mine.height, mine.width, mine.depth};
    int from = append(Label{layer()}.with(".sums"), sums, {inputs.front()}, {});
    from = over_grid(Movement::sum, cut, from);
    if (needed_[index_]) from = over_grid(Movement::copy, cut, from);
    inputs.push_back(from);
    return made(mine, std::move(inputs), cut);
}

/// The mean over a block's pixels: a part of the mean over all.
auto SpatialSplitter::split(const SoftmaxLoss& op) -> Held {
    const unsigned cut = source(0).cut;
    if (op.image.empty() || cut == 0) return on_all();
    SoftmaxLoss mine = op;
    for (const std::size_t a : axes_of(cut)) mine.image[at(axes_[a].dim - 1)] /= axes_[a].parts;
    const int own = append(layer(), mine, {lying(source(0), cut)}, origin(0, cuts_of_sample(cut, 0)));
    return {0, {{0, own}}};
}

auto SpatialSplitter::split(const Resize& /*op*/) -> Held {
    Held held = on_all();
    const Shape& shape = layer().output;
    unsigned cut = 0;
    for (const std::size_t a : axes_of(all_)) {
        if (shape.size() > at(axes_[a].dim) && shape[at(axes_[a].dim)] % axes_[a].parts == 0) cut |= 1U << a;
    }
    cut = outer(cut);
    return {cut, {{cut, lying(held, cut)}}};
}

auto SpatialSplitter::split(const Dropout& op) -> Held {
    const unsigned cut = common_cut();
    return made(Dropout{block_of(op.shape, cut), op.keep}, inputs_lying(cut), cut, cuts_of_sample(cut, 1));
}

template <typename Shaped>
auto SpatialSplitter::split_shaped(Shaped op) -> Held {
    const unsigned cut = common_cut();
    op.shape = block_of(op.shape, cut);
    return made(std::move(op), inputs_lying(cut), cut);
}

template <typename Pixels>
auto SpatialSplitter::split_pixels(Pixels op) -> Held {
    const unsigned cut = common_cut();
    for (const std::size_t a : axes_of(cut)) size_along(op, axes_[a].dim) /= axes_[a].parts;
    return made(std::move(op), inputs_lying(cut), cut);
}

template auto SpatialSplitter::split_windows(const Conv& op, bool lowest, unsigned refused) -> Held;
template auto SpatialSplitter::split_windows(const ConvTranspose& op, bool lowest, unsigned refused) -> Held;
template auto SpatialSplitter::split_shaped(Activation op) -> Held;
template auto SpatialSplitter::split_shaped(Add op) -> Held;
template auto SpatialSplitter::split_pixels(Concat op) -> Held;
template auto SpatialSplitter::split_pixels(ChannelPad op) -> Held;
template auto SpatialSplitter::split_pixels(Lrn op) -> Held;

}  // namespace rehearse::schedule
