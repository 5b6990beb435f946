// SPDX-License-Identifier: Apache-2.0
// What is shown of a timeline, and what is selected.
#include "gui/timeline_view.hpp"

#include <fmt/format.h>

#include <QEvent>
#include <algorithm>
#include <cmath>

#include "gui/timeline_size.hpp"

namespace rehearse::gui {

TimelineView::TimelineView(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(320, 160);
    setAttribute(Qt::WA_OpaquePaintEvent);
}

void TimelineView::show(std::shared_ptr<const picture::Lanes> lanes) {
    lanes_ = std::move(lanes);
    choice_ = {};
    selected_.reset();
    area_.reset();
    partners_.clear();
    path_.clear();
    path_on_ = false;
    scroll_ = 0;
    map_ = QImage();
    if (lanes_ != nullptr) {
        choice_.open = open_at_first(*lanes_);
        limits_ = {static_cast<double>(lanes_->first), static_cast<double>(lanes_->last)};
        show_all();
    }
    relayout();
    if (selection_changed) selection_changed();
}

void TimelineView::set_theme(picture::Theme theme) {
    theme_ = theme;
    colors_ = picture::PixelColors(theme, coloring_);
    map_ = QImage();
    changed();
}

void TimelineView::set_coloring(picture::Coloring coloring) {
    coloring_ = coloring;
    set_theme(theme_);
}

void TimelineView::set_filter(const std::string& filter) {
    choice_.filter = filter;
    relayout();
}

void TimelineView::set_critical_path(bool on) {
    path_on_ = on;
    if (on && path_.empty() && lanes_ != nullptr && !lanes_->lanes.empty()) path_ = critical_path(*lanes_);
    if (selection_changed) selection_changed();
    update();
}

void TimelineView::set_view(picture::TimeView view) {
    if (lanes_ == nullptr) return;
    const double first = limits_.from, last = limits_.to;
    const double margin = 0.01 * (last - first);
    const double span = std::clamp(view.to - view.from, 10.0, last - first + 2 * margin);
    const double middle = (view.from + view.to) / 2;
    view_.from = std::max(std::min(middle - span / 2, last + margin - span), first - margin);
    view_.to = view_.from + span;
    changed();
    if (view_changed) view_changed();
}

void TimelineView::set_limits(picture::TimeView limits) {
    limits_ = limits;
    set_view(view_);
}

void TimelineView::zoom(double factor, double at_ns) {
    set_view({at_ns - (at_ns - view_.from) / factor, at_ns + (view_.to - at_ns) / factor});
}

void TimelineView::pan(double share) {
    const double by = share * (view_.to - view_.from);
    set_view({view_.from + by, view_.to + by});
}

void TimelineView::show_all() {
    if (lanes_ != nullptr) set_view({-1e300, 1e300});
}

void TimelineView::focus() {
    if (lanes_ == nullptr) return;
    picture::TimeView wanted{static_cast<double>(lanes_->first), static_cast<double>(lanes_->last)};
    if (area_) wanted = {area_->from, area_->to};
    if (selected_ && !area_) {
        const picture::Lane& lane = lanes_->lanes[selected_->lane];
        wanted = {static_cast<double>(lane.start(selected_->event)), static_cast<double>(lane.end(selected_->event))};
    }
    const double margin = 0.1 * (wanted.to - wanted.from);
    const picture::TimeView with_margin{wanted.from - margin, wanted.to + margin};
    if (std::abs(with_margin.from - view_.from) < 1e-3 * (view_.to - view_.from) &&
        std::abs(with_margin.to - view_.to) < 1e-3 * (view_.to - view_.from)) {
        return show_all();
    }
    selected_ || area_ ? set_view(with_margin) : show_all();
}

void TimelineView::select(std::optional<picture::EventAt> event) {
    selected_ = event;
    partners_ = event && lanes_ != nullptr ? picture::partners(*lanes_, *event) : std::vector<picture::EventAt>{};
    if (event) area_.reset();
    update();
    if (selection_changed) selection_changed();
}

void TimelineView::select_area(std::optional<Area> area) {
    area_ = std::move(area);
    if (area_) {
        selected_.reset();
        partners_.clear();
    }
    update();
    if (selection_changed) selection_changed();
}

// In the order of lanes and time, round the whole timeline.
bool TimelineView::find_next(const std::string& text, bool backwards) {
    if (lanes_ == nullptr || lanes_->lanes.empty() || text.empty()) return false;
    std::vector<bool> wanted(lanes_->whats.size());
    bool any = false;
    for (std::size_t w = 0; w < wanted.size(); ++w) {
        wanted[w] = lanes_->whats[w].step.find(text) != std::string::npos;
        any = any || wanted[w];
    }
    if (!any) return false;
    picture::EventAt at = selected_ ? *selected_ : picture::EventAt{0, SIZE_MAX};
    for (std::size_t lanes_left = lanes_->lanes.size() + 1; lanes_left > 0;) {
        const picture::Lane& lane = lanes_->lanes[at.lane];
        const std::size_t next = backwards ? at.event - 1 : at.event + 1;
        if (next >= lane.size()) {  // also of -1
            --lanes_left;
            const std::size_t count = lanes_->lanes.size();
            at.lane = (at.lane + (backwards ? count - 1 : 1)) % count;
            at.event = backwards ? lanes_->lanes[at.lane].size() : SIZE_MAX;
            if (!selected_ && lanes_left == count) at = {0, SIZE_MAX};
            continue;
        }
        at.event = next;
        if (!wanted[lane.what(next)]) continue;
        select(at);
        reveal(at);
        return true;
    }
    return false;
}

void TimelineView::next_on_lane(int by) {
    if (!selected_) return;
    picture::EventAt at = *selected_;
    if (by < 0 && at.event == 0) return;
    at.event += static_cast<std::size_t>(by);
    if (at.event >= lanes_->lanes[at.lane].size()) return;
    select(at);
    reveal(at);
}

void TimelineView::open_rank(std::int64_t rank, bool open) {
    if (open) {
        choice_.open.insert(rank);
    } else {
        choice_.open.erase(rank);
    }
    relayout();
}

void TimelineView::pin_rank_of_selection() {
    if (!selected_) return;
    const std::int64_t rank = lanes_->lanes[selected_->lane].rank;
    if (choice_.pinned.erase(rank) == 0) choice_.pinned.insert(rank);
    scroll_ = 0;
    relayout();
}

void TimelineView::reveal(picture::EventAt event) {
    const picture::Lane& lane = lanes_->lanes[event.lane];
    const auto start = static_cast<double>(lane.start(event.event)), end = static_cast<double>(lane.end(event.event));
    if (end < view_.from || start > view_.to) {
        const double half = (view_.to - view_.from) / 2;
        set_view({(start + end) / 2 - half, (start + end) / 2 + half});
    }
    const TimelineRow* row = row_of_lane(event.lane);
    if (row == nullptr) return;
    const double top = y_of(*row) - plot().top();
    if (top < 0) scroll(top - 20);
    if (top + row->height > plot().height()) scroll(top + row->height - plot().height() + 20);
}

QRect TimelineView::plot() const {
    const int top = size::map + size::ruler;
    return {size::heads, top, std::max(width() - size::heads, 1), std::max(height() - top, 1)};
}

double TimelineView::ns_at(double x) const {
    return view_.from + (x - plot().left()) / plot().width() * (view_.to - view_.from);
}
double TimelineView::x_of(double ns) const {
    return plot().left() + (ns - view_.from) / (view_.to - view_.from) * plot().width();
}
double TimelineView::y_of(const TimelineRow& row) const { return plot().top() + row.y - scroll_; }

const TimelineRow* TimelineView::row_at(double y) const {
    if (y < plot().top()) return nullptr;
    const double at = y - plot().top() + scroll_;
    const auto after = std::ranges::upper_bound(rows_, at, {}, &TimelineRow::y);
    if (after == rows_.begin()) return nullptr;
    const TimelineRow& row = *(after - 1);
    return at < row.y + row.height ? &row : nullptr;
}

// The lane's own row before that of its rank.
const TimelineRow* TimelineView::row_of_lane(std::size_t lane) const {
    const TimelineRow* found = nullptr;
    for (const TimelineRow& row : rows_) {
        if (std::ranges::find(row.lanes, lane) == row.lanes.end()) continue;
        if (row.is_lane) return &row;
        if (found == nullptr) found = &row;
    }
    return found;
}

std::optional<picture::EventAt> TimelineView::event_at(QPointF at) const {
    if (lanes_ == nullptr || !plot().contains(at.toPoint())) return std::nullopt;
    const TimelineRow* row = row_at(at.y());
    if (row == nullptr || row->ranks.size() > 1) return std::nullopt;
    const double half = 2 * (view_.to - view_.from) / plot().width();  // two pixels to each side
    for (const double ns : {ns_at(at.x()), ns_at(at.x()) - half, ns_at(at.x()) + half}) {
        for (const std::size_t l : row->lanes) {
            if (const auto event = lanes_->lanes[l].at(static_cast<std::int64_t>(ns))) {
                return picture::EventAt{l, *event};
            }
        }
    }
    return std::nullopt;
}

void TimelineView::relayout() {
    rows_ = lanes_ != nullptr ? lay_out(*lanes_, choice_, plot().height()) : std::vector<TimelineRow>{};
    content_height_ = rows_.empty() ? 0 : rows_.back().y + rows_.back().height;
    scroll(0);
    changed();
}

void TimelineView::scroll(double by) {
    scroll_ = std::clamp(scroll_ + by, 0.0, std::max(content_height_ - plot().height(), 0.0));
    changed();
}

void TimelineView::changed() {
    stale_ = true;
    update();
}

std::string TimelineView::text_of(picture::EventAt event) const {
    const picture::Lane& lane = lanes_->lanes[event.lane];
    const picture::What& what = lanes_->whats[lane.what(event.event)];
    const double duration = static_cast<double>(lane.end(event.event) - lane.start(event.event)) * 1e-9;
    std::string text = fmt::format("{}\n{}, {}, {}\n{}", what.step, name_of_rank(*lanes_, lane.rank),
                                   name_of_lane(lane), picture::to_string(what.activity), to_string(Seconds{duration}));
    if (what.bytes > 0) text += fmt::format(", {}", to_string(Bytes{what.bytes}));
    if (what.bytes > 0 && duration > 0) text += fmt::format(" at {}", to_string(Bandwidth{what.bytes / duration}));
    if (what.flops > 0 && duration > 0) text += fmt::format(", {}", to_string(FlopRate{what.flops / duration}));
    return text;
}

bool TimelineView::event(QEvent* event) {
    return event->type() == QEvent::ToolTip ? show_tip(event) : QWidget::event(event);
}

}  // namespace rehearse::gui
