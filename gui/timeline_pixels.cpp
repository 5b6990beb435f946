// SPDX-License-Identifier: Apache-2.0
// The rows of the timeline as pixels.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "gui/theme.hpp"
#include "gui/timeline_view.hpp"
#include "picture/parallel_for.hpp"

namespace rehearse::gui {

// How many columns of what is drawn stay, moved to the left by `shift`: those of a view that was only moved, to the
// next whole pixel. Draws them as if the view began there.
TimelineView::Kept TimelineView::keep_columns(QSize room) {
    const bool is_new = image_.size() != room;
    if (is_new) image_ = QImage(room, QImage::Format_RGB32);
    const double span = view_.to - view_.from, each = span / room.width();
    const double moved = std::round((view_.from - drawn_.from) / each);
    const bool same_zoom = std::abs(drawn_.to - drawn_.from - span) < 1e-9 * span;
    if (is_new || stale_ || !same_zoom || std::abs(moved) >= room.width()) {
        drawn_ = view_;
        return {0, 0};
    }
    drawn_ = {drawn_.from + moved * each, drawn_.from + moved * each + span};
    return {static_cast<int>(moved), room.width() - std::abs(static_cast<int>(moved))};
}

// One line of pixels a row, copied as often as the row is high; rows on all cores, as each has lines of its own. Of
// rows of ranks only the columns that were not there before.
void TimelineView::render() {
    const QSize room = plot().size();
    const Kept kept = keep_columns(room);
    if (kept.columns == room.width()) return;
    auto* const pixels = reinterpret_cast<std::uint32_t*>(image_.bits());
    const auto stride = static_cast<std::size_t>(image_.bytesPerLine()) / sizeof(std::uint32_t);
    const auto width = static_cast<std::size_t>(room.width());
    const std::uint32_t ground = picture::pixel_of(picture::palette(theme_).background);
    struct Lines {
        const TimelineRow* row;
        int top, bottom;  // of the row's own pixels
    };
    std::vector<Lines> lines;
    int free_from = 0;
    const auto clear = [&](int end) {
        for (int y = free_from; y < end; ++y) std::fill_n(pixels + static_cast<std::size_t>(y) * stride, width, ground);
    };
    for (const TimelineRow& row : rows_) {
        const int edge = row.height >= 6 ? 1 : 0;
        const int top = std::max(static_cast<int>(std::lround(row.y - scroll_)) + edge, free_from);
        const int bottom = std::min(static_cast<int>(std::lround(row.y + row.height - scroll_)) - edge, room.height());
        if (top >= room.height()) break;
        if (bottom <= top) continue;
        clear(top);
        lines.push_back({&row, top, bottom});
        free_from = bottom;
    }
    clear(room.height());
    picture::parallel_for(lines.size(), [&](std::size_t i) {
        const auto& [row, top, bottom] = lines[i];
        std::uint32_t* const first = pixels + static_cast<std::size_t>(top) * stride;
        if (row->is_lane) {
            paint(*row->ranks[0][0], *lanes_, drawn_, colors_, true, std::span(first, width));
        } else {
            paint_ranks(*row, kept, std::span(first, width));
        }
        for (int y = top + 1; y < bottom; ++y)
            std::memcpy(pixels + static_cast<std::size_t>(y) * stride, first, width * sizeof(std::uint32_t));
    });
    stale_ = false;
}

void TimelineView::paint_ranks(const TimelineRow& row, Kept kept, std::span<std::uint32_t> line) const {
    const auto columns = static_cast<std::size_t>(kept.columns);
    const std::size_t from = kept.shift > 0 ? columns : 0, count = line.size() - columns;
    const auto shift = static_cast<std::size_t>(std::abs(kept.shift));
    std::memmove(line.data() + (kept.shift < 0 ? shift : 0), line.data() + (kept.shift > 0 ? shift : 0),
                 columns * sizeof(std::uint32_t));
    const double each = (drawn_.to - drawn_.from) / static_cast<double>(line.size());
    const picture::TimeView part{drawn_.from + static_cast<double>(from) * each,
                                 drawn_.from + static_cast<double>(from + count) * each};
    paint(row.ranks, *lanes_, part, colors_, line.subspan(from, count), row.height < 4 ? 3 : 2);
}

}  // namespace rehearse::gui
