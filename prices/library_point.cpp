// SPDX-License-Identifier: Apache-2.0
#include "prices/library_point.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "prices/measured_board.hpp"

namespace rehearse {

namespace {

bool was_measured(const prices::ConvolutionShape& s) {
    return s.pass == Pass::forward && s.kernel_height == 3 && s.kernel_width == 3 && s.stride_height == 1 &&
           s.stride_width == 1 && s.groups == 1 && !s.dilated;
}

std::optional<LibraryPoint> convolution_point(const Problem& problem, const prices::Board& board) {
    const auto shape = prices::convolution_shape(problem);
    if (!shape || !was_measured(*shape)) return std::nullopt;
    const prices::LibraryChoice choice = prices::library_choice(*shape, board);
    const Seconds best = choice.best().time;
    const prices::FamilyTime& fused = choice.times[0].value_or(choice.best());
    const prices::FamilyTime& transformed = choice.times[1].value_or(choice.best());
    const double waves = fused.blocks / (2 * board.processors);
    const Seconds computed = Flops{2 * shape->products()} / board.peak;
    const Seconds read = shape->values() * board.element / board.bandwidth;
    return LibraryPoint{
        {{std::log2(shape->outputs()), std::log2(shape->channels), std::log2(shape->filters), choice.behind(0),
          choice.behind(1), choice.behind(2), std::log(read / computed), 4 * std::log(fused.waste),
          std::log2(std::max(waves, 1.0 / 64)), 4 * std::log(transformed.waste), 4 * std::log(std::ceil(waves) / waves),
          std::log2(shape->batch), std::log2(std::sqrt(shape->height * shape->width))},
         static_cast<int>(problem.pass)},
        best};
}

}  // namespace

std::optional<LibraryPoint> library_point(const Problem& problem, const prices::Board& board) {
    if (problem.type != DataType::f32) return std::nullopt;
    if (auto point = convolution_point(problem, board)) return point;
    if (auto point = product_point(problem, board)) return point;
    return row_point(problem, board);
}

RanFamily ran(const BoardKernel& kernel, const DeviceSheet& sheet) {
    auto point = library_point(kernel.sample.problem, *sheet.board);
    require(point.has_value(), "a board's kernel has features");
    return {std::move(point->point), kernel.family};
}

}  // namespace rehearse
