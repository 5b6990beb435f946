// SPDX-License-Identifier: Apache-2.0
// What stands on the rows of pixels.
#include <fmt/format.h>

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/theme.hpp"
#include "gui/timeline_size.hpp"
#include "gui/timeline_view.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t most_names = 4000;

// As the window's text grows; lanes are 20 pixels high.
QFont small_font(double scale) {
    QFont font("DejaVu Sans");
    font.setPixelSize(static_cast<int>(std::lround(11 * std::clamp(scale, 0.8, 1.5))));
    return font;
}

QString elided(const QString& text, const QFontMetrics& metrics, double room) {
    return metrics.elidedText(text, Qt::ElideRight, static_cast<int>(room));
}

}  // namespace

void TimelineView::paintEvent(QPaintEvent* /*event*/) {
    QPainter painter(this);
    painter.setFont(small_font(font().pointSizeF() / points_));
    if (lanes_ == nullptr || rows_.empty()) {
        const auto& colors = picture::palette(theme_);
        painter.fillRect(rect(), qcolor(colors.background));
        painter.setPen(qcolor(colors.faint_text));
        painter.drawText(rect(), Qt::AlignCenter,
                         lanes_ == nullptr ? "Open a timeline (Ctrl+O), or drop one here" : "No rank has such a name");
        return;
    }
    render();
    painter.drawImage(plot().topLeft(), image_);
    draw_names(painter);
    draw_ruler(painter);
    draw_path(painter);
    draw_flows(painter);
    draw_selection(painter);
    draw_heads(painter);
    draw_map(painter);
}

// Where it is moved, the same text is drawn frame after frame: laying it out takes longer than drawing it.
const QStaticText& TimelineView::name_of(std::uint32_t what, int room, const QFont& font) {
    const auto size = static_cast<std::uint64_t>(font.pixelSize());
    const std::uint64_t key = (std::uint64_t{what} << 32U) | (static_cast<std::uint64_t>(room) << 8U) | size;
    if (names_.size() > 2 * most_names) names_.clear();
    const auto [place, is_new] = names_.try_emplace(key);
    if (is_new) {
        const picture::What& said = lanes_->whats[what];
        QString name = QString::fromStdString(said.step);
        if (room > 84 && said.micro_batch > 0) name += QString(" · %1").arg(said.micro_batch);
        place->second.setTextFormat(Qt::PlainText);
        place->second.setText(elided(name, QFontMetrics(font), room));
        place->second.prepare({}, font);
    }
    return place->second;
}

void TimelineView::draw_names(QPainter& painter) {
    names_drawn_ = 0;
    if (coloring_ != picture::Coloring::activity) return;
    painter.save();
    painter.setClipRect(plot());
    for (const TimelineRow& row : rows_) {
        const double top = y_of(row);
        if (!row.is_lane || top + row.height < plot().top() || top > plot().bottom()) continue;
        const picture::Lane& lane = *row.ranks[0][0];
        for (const auto& box : named_boxes(lane, view_, static_cast<std::size_t>(plot().width()), 26)) {
            if (++names_drawn_ > most_names) break;
            const int room = (static_cast<int>(std::min(box.right - box.left, 65000.0)) - 6) & ~3;
            const QStaticText& name = name_of(lane.what(box.event), room, painter.font());
            painter.setPen(qcolor(picture::readable_on(picture::color_of(lane.activity(box.event), theme_))));
            painter.drawStaticText(QPointF(plot().left() + box.left + 4, top + (row.height - name.size().height()) / 2),
                                   name);
        }
    }
    painter.restore();
}

std::optional<QRectF> TimelineView::rect_of(picture::EventAt event) const {
    const TimelineRow* row = row_of_lane(event.lane);
    if (row == nullptr) return std::nullopt;
    const picture::Lane& lane = lanes_->lanes[event.lane];
    const double left = x_of(static_cast<double>(lane.start(event.event)));
    const double right = x_of(static_cast<double>(lane.end(event.event)));
    return QRectF(left, y_of(*row), std::max(right - left, 1.5), row->height);
}

void TimelineView::draw_path(QPainter& painter) {
    if (!path_on_ || path_.empty()) return;
    painter.save();
    painter.setClipRect(plot());
    painter.setRenderHint(QPainter::Antialiasing);
    QColor veil = qcolor(picture::palette(theme_).background);
    veil.setAlpha(110);
    painter.fillRect(plot(), veil);
    const QColor color = theme_ == picture::Theme::dark ? QColor(255, 214, 80) : QColor(200, 30, 60);
    std::optional<QRectF> before;
    double drawn_to = -1e9;
    for (const picture::PathStep& step : path_) {
        const auto box = rect_of(step.at);
        if (!box) continue;
        if (box->right() >= plot().left() && box->left() <= plot().right()) {
            const bool thin = box->width() < 2 && before && before->top() == box->top();
            if (!thin || box->right() > drawn_to + 1) {
                painter.fillRect(QRectF(box->left(), box->bottom() - std::min(4.0, box->height()), box->width(),
                                        std::min(4.0, box->height())),
                                 color);
                drawn_to = box->right();
            }
            if (before && before->top() != box->top()) {
                painter.setPen(QPen(color, 1.2));
                painter.drawLine(QPointF(box->left(), before->bottom() - 2), QPointF(box->left(), box->bottom() - 2));
            }
        }
        before = box;
    }
    painter.restore();
}

// From the middle of the selection to its partners, as curves.
void TimelineView::draw_flows(QPainter& painter) {
    if (!selected_ || partners_.empty()) return;
    const auto from = rect_of(*selected_);
    if (!from) return;
    painter.save();
    painter.setClipRect(plot());
    painter.setRenderHint(QPainter::Antialiasing);
    QColor color = qcolor(picture::palette(theme_).text);
    color.setAlpha(partners_.size() > 40 ? 60 : 190);
    painter.setPen(QPen(color, partners_.size() > 40 ? 1 : 1.6));
    painter.setBrush(Qt::NoBrush);
    const std::size_t step = partners_.size() / 2000 + 1;
    for (std::size_t i = 0; i < partners_.size(); i += step) {
        const auto to = rect_of(partners_[i]);
        if (!to) continue;
        const QPointF a = from->center(), b = to->center();
        QPainterPath curve(a);
        const double bend = 8 + std::abs(b.x() - a.x()) / 2;
        curve.cubicTo(a + QPointF(bend, 0), b - QPointF(bend, 0), b);
        painter.drawPath(curve);
        painter.setBrush(color);
        painter.drawEllipse(b, 3, 3);
        painter.setBrush(Qt::NoBrush);
    }
    painter.restore();
}

// How long the area is, in its middle, also while it is dragged.
void TimelineView::draw_extent(QPainter& painter, const QRectF& box) {
    const QString text = QString::fromStdString(extent());
    const double width = painter.fontMetrics().horizontalAdvance(text) + 14;
    QRectF label(box.center().x() - width / 2, box.top() + 4, width, 20);
    label.moveLeft(
        std::clamp<double>(label.left(), plot().left(), std::max(plot().right() - width, 0.0 + plot().left())));
    painter.setPen(Qt::NoPen);
    painter.setBrush(palette().highlight());
    painter.drawRoundedRect(label, 3, 3);
    painter.setPen(palette().highlightedText().color());
    painter.drawText(label, Qt::AlignCenter, text);
}

void TimelineView::draw_selection(QPainter& painter) {
    painter.save();
    painter.setClipRect(plot());
    if (area_) {
        QColor color = palette().highlight().color();
        color.setAlpha(50);
        double top = 1e9, bottom = -1e9;
        for (const TimelineRow& row : rows_) {
            const bool inside = std::ranges::any_of(
                row.lanes, [&](std::size_t l) { return std::ranges::binary_search(area_->lanes, l); });
            if (!inside) continue;
            top = std::min(top, y_of(row));
            bottom = std::max(bottom, y_of(row) + row.height);
        }
        const QRectF box(QPointF(x_of(area_->from), top), QPointF(x_of(area_->to), bottom));
        painter.fillRect(box, color);
        painter.setPen(QPen(palette().highlight().color(), 1));
        painter.drawRect(box);
        draw_extent(painter, box.intersected(plot()));
    }
    if (selected_) {
        if (const auto box = rect_of(*selected_)) {
            painter.setPen(QPen(qcolor(picture::palette(theme_).text), 2));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(box->adjusted(0, 1, 0, -1));
        }
    }
    if (pointer_.x() >= plot().left() && drag_ == Drag::none) {
        QColor color = qcolor(picture::palette(theme_).text);
        color.setAlpha(90);
        painter.setPen(QPen(color, 1, Qt::DotLine));
        painter.drawLine(QPointF(pointer_.x(), plot().top()), QPointF(pointer_.x(), height()));
    }
    painter.restore();
}

}  // namespace rehearse::gui
