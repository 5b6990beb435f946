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

/// The window begins `halo.before` rows before a rank's own rows.
auto SpatialSplitter::inner_rows(Conv op, std::int64_t dim, const Halo& halo) -> Inner {
    if (halo.step != halo.own) return {};  // it would depend on the rank
    const Along w = window_along(op.window, is_volume(op), dim);
    const std::int64_t reach = w.dilation * (w.kernel - 1) + 1, rows = (halo.size - reach) / w.stride + 1;
    return {(halo.before + w.stride - 1) / w.stride,
            std::min(rows, floor_div(halo.before + halo.own - reach, w.stride) + 1)};
}

int SpatialSplitter::rows_of(int from, std::int64_t dim, std::int64_t begin, std::int64_t end, const Label& label) {
    Rearrangement rows{.kind = "slice", .inputs = {part_.network.layers[at(from)].output}, .output = {}};
    rows.output = rows.inputs.front();
    if (begin == 0 && end == rows.output[at(dim)]) return from;
    rows.output[at(dim)] = end - begin;
    rows.numbers.assign(2 * rows.output.size(), 0);
    std::fill(rows.numbers.begin() + std::ssize(rows.output), rows.numbers.end(), 1);
    rows.numbers[at(dim)] = begin;
    return append(label.with(".rows"), std::move(rows), {from}, {});
}

auto SpatialSplitter::split_edges(const Conv& op, int own, int exchanged, unsigned cut, Inner inner) -> Held {
    const auto& moved = std::get<Communication>(part_.network.layers[at(exchanged)].op);
    const std::int64_t dim = moved.dim, before = moved.halo.before;
    Conv whole = op;
    const Along w = window_along(whole.window, is_volume(whole), dim);
    const std::int64_t reach = w.dilation * (w.kernel - 1) + 1, outputs = (moved.halo.size - reach) / w.stride + 1;
    int owner = -1;
    const auto some = [&](int from, std::int64_t moved_by, std::int64_t begin, std::int64_t end, const Label& label) {
        const std::int64_t first = begin * w.stride - moved_by, last = (end - 1) * w.stride + reach - moved_by;
        const int rows = rows_of(from, dim, first, last, label);
        Conv mine = whole;
        size_along(mine, dim) = last - first;
        if (owner < 0) return owner = append(label, mine, {rows}, origin(cut, {}));
        Origin from_owner = origin(cut, {});
        from_owner.summed.clear();  // its gradient is the owner's
        const int made =
            append(label, Shared{std::make_shared<const SharedOp>(SharedOp{Op{mine}})}, {rows}, std::move(from_owner));
        part_.network.layers.back().weights_of = owner;
        return made;
    };
    const Label label{layer()};
    std::vector<int> all{some(own, before, inner.begin, inner.end, label)};
    if (inner.begin > 0) all.insert(all.begin(), some(exchanged, 0, 0, inner.begin, label.with(".before")));
    if (inner.end < outputs) all.push_back(some(exchanged, 0, inner.end, outputs, label.with(".after")));
    Rearrangement joined{.kind = "join", .inputs = {}, .output = block_of(layer().output, cut), .numbers = {dim}};
    for (const int part : all) joined.inputs.push_back(part_.network.layers[at(part)].output);
    return {cut, {{cut, append(label.with(".join"), std::move(joined), std::move(all), {})}}};
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
    if constexpr (std::is_same_v<Windows, Conv>) {
        const Communication* last = std::get_if<Communication>(&part_.network.layers[at(from)].op);
        if (edges_.apart && last != nullptr && last->movement == Movement::halo) {
            const Inner inner = inner_rows(mine, last->dim, last->halo);
            const int own = part_.network.layers[at(from)].inputs.front();
            if (inner.begin < inner.end) return split_edges(mine, own, from, cut, inner);
        }
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
