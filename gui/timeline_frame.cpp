// SPDX-License-Identifier: Apache-2.0
// What stands around the rows: their names, the time, and the whole timeline as one line.
#include <fmt/format.h>

#include <QPainter>
#include <algorithm>

#include "gui/theme.hpp"
#include "gui/timeline_size.hpp"
#include "gui/timeline_view.hpp"
#include "picture/ticks.hpp"

namespace rehearse::gui {

void TimelineView::draw_heads(QPainter& painter) {
    const auto& colors = picture::palette(theme_);
    painter.save();
    painter.fillRect(QRect(0, size::map, size::heads, height()), palette().window());
    painter.setClipRect(QRect(0, plot().top(), size::heads, plot().height()));
    double free_from = -1e9;
    for (const TimelineRow& row : rows_) {
        const double top = y_of(row);
        // The name of a low first row is not cut by the ruler.
        const double middle =
            top < plot().top() ? top + row.height / 2 : std::max(top + row.height / 2, plot().top() + 8.0);
        if (top + row.height < plot().top() || top > plot().bottom()) continue;
        const bool selected = selected_ && std::ranges::find(row.lanes, selected_->lane) != row.lanes.end();
        if (middle - 8 < free_from && !(selected && row.is_lane)) continue;
        free_from = middle + 8;
        painter.setPen(qcolor(selected ? colors.series[0] : row.is_child ? colors.faint_text : colors.text));
        QString text = QString::fromStdString(row.name);
        if (row.is_pinned) text = QString::fromUtf8("★ ") + text;
        const bool can_open = !row.is_lane && row.ranks.size() == 1 && row.lanes.size() > 1 && row.height >= 12;
        if (can_open) text = QString::fromUtf8(row.is_open ? "▾ " : "▸ ") + text;
        const int indent = row.is_child ? 24 : 8;
        painter.drawText(QRectF(indent, middle - 10, size::heads - indent - 8, 20), Qt::AlignVCenter | Qt::AlignLeft,
                         painter.fontMetrics().elidedText(text, Qt::ElideRight, size::heads - indent - 8));
    }
    painter.restore();
    painter.setPen(qcolor(colors.grid));
    painter.drawLine(size::heads - 1, size::map, size::heads - 1, height());
}

void TimelineView::draw_ruler(QPainter& painter) {
    const auto& colors = picture::palette(theme_);
    const QRect ruler(0, size::map, width(), size::ruler);
    painter.fillRect(ruler, palette().window());
    const picture::Range range{view_.from * 1e-9, view_.to * 1e-9};
    const std::vector<double> ticks = picture::linear_ticks(range, std::max(plot().width() / 120, 2)).major;
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : range.high - range.low;
    for (const double value : ticks) {
        const double x = x_of(value * 1e9);
        if (x < plot().left()) continue;
        QColor grid = qcolor(colors.axis);
        grid.setAlpha(40);
        painter.setPen(grid);
        painter.drawLine(QPointF(x, plot().top()), QPointF(x, height()));
        painter.setPen(qcolor(colors.axis));
        painter.drawLine(QPointF(x, ruler.bottom() - 5), QPointF(x, ruler.bottom()));
        const QString text = QString::fromStdString(picture::text_of_time(value, step));
        if (x + painter.fontMetrics().horizontalAdvance(text) / 2.0 > width()) continue;
        painter.setPen(qcolor(colors.text));
        const double half = painter.fontMetrics().horizontalAdvance(text) / 2.0 + 2;
        const double middle = std::max(x, plot().left() + half);  // not below the names
        painter.drawText(QRectF(middle - 60, ruler.top() + 2, 120, 18), Qt::AlignCenter, text);
    }
    painter.setPen(qcolor(colors.faint_text));
    const double span = (view_.to - view_.from) * 1e-9;
    painter.drawText(QRect(8, ruler.top(), size::heads - 12, ruler.height()), Qt::AlignVCenter | Qt::AlignLeft,
                     QString::fromStdString(fmt::format("{} shown", to_string(Seconds{span}))));
}

// All ranks in one row over the whole time; what the view shows of it is framed.
void TimelineView::draw_map(QPainter& painter) {
    const QRect room(plot().left(), 4, plot().width(), size::map - 8);
    const double first = static_cast<double>(lanes_->first), last = static_cast<double>(lanes_->last);
    if (map_.width() != room.width()) {
        std::vector<picture::RankLanes> ranks;
        for (const TimelineRow& row : lay_out(*lanes_, {}, 1e9))
            ranks.insert(ranks.end(), row.ranks.begin(), row.ranks.end());
        map_ = QImage(room.size(), QImage::Format_RGB32);
        const std::span line(reinterpret_cast<std::uint32_t*>(map_.scanLine(0)),
                             static_cast<std::size_t>(room.width()));
        paint(ranks, *lanes_, {first, last}, colors_, line);
        for (int y = 1; y < map_.height(); ++y)
            std::ranges::copy(line, reinterpret_cast<std::uint32_t*>(map_.scanLine(y)));
    }
    painter.fillRect(QRect(0, 0, width(), size::map), palette().window());
    painter.drawImage(room.topLeft(), map_);
    const auto x = [&](double ns) { return room.left() + (ns - first) / (last - first) * room.width(); };
    const QRectF shown(QPointF(std::max<double>(x(view_.from), room.left()), room.top()),
                       QPointF(std::min<double>(x(view_.to), room.right()), room.bottom()));
    QColor shade = palette().window().color();
    shade.setAlpha(170);
    painter.fillRect(QRectF(room.topLeft(), QPointF(shown.left(), room.bottom() + 1)), shade);
    painter.fillRect(QRectF(QPointF(shown.right(), room.top()), QPointF(room.right() + 1, room.bottom() + 1)), shade);
    painter.setPen(QPen(palette().highlight().color(), 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(shown);
    painter.setPen(qcolor(picture::palette(theme_).faint_text));
    painter.drawText(QRect(8, 0, size::heads - 12, size::map), Qt::AlignVCenter | Qt::AlignLeft, "whole timeline");
}

}  // namespace rehearse::gui
