// SPDX-License-Identifier: Apache-2.0
// Keys and mouse of the timeline, as in Perfetto.
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/timeline_size.hpp"
#include "gui/timeline_view.hpp"

namespace rehearse::gui {

void TimelineView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    relayout();
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
    const bool inside = pointer_.x() >= plot().left();
    const double at = inside ? ns_at(pointer_.x()) : (view_.from + view_.to) / 2;
    const double page = plot().height() * 0.8;
    switch (event->key()) {
        case Qt::Key_W:
            return event->modifiers() & Qt::ShiftModifier ? (choice_.zoom *= 1.3, relayout()) : zoom(1.3, at);
        case Qt::Key_S:
            return event->modifiers() & Qt::ShiftModifier ? (choice_.zoom /= 1.3, relayout()) : zoom(1 / 1.3, at);
        case Qt::Key_A:
        case Qt::Key_Left:
            return pan(-0.15);
        case Qt::Key_D:
        case Qt::Key_Right:
            return pan(0.15);
        case Qt::Key_Up:
            return scroll(-40);
        case Qt::Key_Down:
            return scroll(40);
        case Qt::Key_PageUp:
            return scroll(-page);
        case Qt::Key_PageDown:
            return scroll(page);
        case Qt::Key_Home:
            return show_all();
        case Qt::Key_F:
            return focus();
        case Qt::Key_Period:
            return next_on_lane(1);
        case Qt::Key_Comma:
            return next_on_lane(-1);
        case Qt::Key_P:
            return pin_rank_of_selection();
        case Qt::Key_O: {
            if (!selected_) return;
            const std::int64_t rank = lanes_->lanes[selected_->lane].rank;
            open_rank(rank, !choice_.open.contains(rank));
            return reveal(*selected_);
        }
        case Qt::Key_C:
            return set_critical_path(!path_on_);
        case Qt::Key_R: {  // the selection as an area
            if (!selected_) return;
            const picture::Lane& lane = lanes_->lanes[selected_->lane];
            std::vector<std::size_t> all;
            for (std::size_t l = 0; l < lanes_->lanes.size(); ++l) all.push_back(l);
            return select_area(Area{static_cast<double>(lane.start(selected_->event)),
                                    static_cast<double>(lane.end(selected_->event)), all});
        }
        case Qt::Key_Escape:
            select_area({});
            return select({});
        default:
            QWidget::keyPressEvent(event);
    }
}

void TimelineView::wheelEvent(QWheelEvent* event) {
    const QPoint delta = event->angleDelta();
    if (event->modifiers() & Qt::ControlModifier) {
        zoom(std::pow(1.0015, delta.y()), ns_at(event->position().x()));
    } else if (event->modifiers() & Qt::ShiftModifier) {
        pan(-delta.y() / 1200.0);
    } else {
        if (delta.x() != 0) pan(-delta.x() / 1200.0);
        scroll(-delta.y() / 2.0);
    }
    event->accept();
}

void TimelineView::mousePressEvent(QMouseEvent* event) {
    setFocus();
    press_ = event->position();
    press_view_ = view_;
    if (lanes_ == nullptr) return;
    if (press_.y() < size::map) {
        drag_ = Drag::map;
        mouseMoveEvent(event);
    } else if (press_.x() < plot().left()) {
        const TimelineRow* row = row_at(press_.y());
        if (row != nullptr && row->ranks.size() == 1 && row->lanes.size() > 1) open_rank(row->rank, !row->is_open);
    } else if (event->button() == Qt::MiddleButton || (event->modifiers() & Qt::ShiftModifier)) {
        drag_ = Drag::pan;
    } else if (event->button() == Qt::LeftButton) {
        drag_ = Drag::area;
    }
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
    pointer_ = event->position();
    if (lanes_ == nullptr) return;
    const double moved = (press_.x() - pointer_.x()) / plot().width() * (press_view_.to - press_view_.from);
    if (drag_ == Drag::pan) {
        set_view({press_view_.from + moved, press_view_.to + moved});
    } else if (drag_ == Drag::map) {
        const double share = (pointer_.x() - plot().left()) / plot().width();
        const double at =
            static_cast<double>(lanes_->first) + share * static_cast<double>(lanes_->last - lanes_->first);
        const double half = (view_.to - view_.from) / 2;
        set_view({at - half, at + half});
    } else if (drag_ == Drag::area && (pointer_ - press_).manhattanLength() > 5) {
        Area area{ns_at(std::min(press_.x(), pointer_.x())), ns_at(std::max(press_.x(), pointer_.x())), {}};
        const double top = std::min(press_.y(), pointer_.y()), bottom = std::max(press_.y(), pointer_.y());
        std::set<std::size_t> chosen;
        for (const TimelineRow& row : rows_) {
            if (y_of(row) + row.height < top || y_of(row) > bottom) continue;
            chosen.insert(row.lanes.begin(), row.lanes.end());
        }
        area.lanes.assign(chosen.begin(), chosen.end());
        select_area(area);
    }
    if (cursor_moved && pointer_.x() >= plot().left()) cursor_moved(ns_at(pointer_.x()));
    update();
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
    const bool click = drag_ == Drag::area && (event->position() - press_).manhattanLength() <= 5;
    drag_ = Drag::none;
    if (!click) return;
    area_.reset();
    select(event_at(event->position()));
}

// A heat map's row opens into its lanes, and time into an eighth.
void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
    const QPointF at = event->position();
    if (lanes_ == nullptr || !plot().contains(at.toPoint())) return;
    const TimelineRow* row = row_at(at.y());
    if (row != nullptr && !row->is_lane) {
        choice_.open.insert(row->rank);
        relayout();
    }
    zoom(8, ns_at(at.x()));
}

void TimelineView::leaveEvent(QEvent* event) {
    pointer_ = {-1, -1};
    update();
    QWidget::leaveEvent(event);
}

bool TimelineView::show_tip(QEvent* event) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto under = event_at(help->pos())) {
        QToolTip::showText(help->globalPos(), QString::fromStdString(text_of(*under)), this);
    } else {
        QToolTip::hideText();
    }
    return true;
}

}  // namespace rehearse::gui
