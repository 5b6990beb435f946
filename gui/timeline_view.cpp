// SPDX-License-Identifier: Apache-2.0
// What is shown of a timeline, and what is selected.
#include "gui/timeline_view.hpp"

#include <fmt/format.h>

#include <QEvent>
#include <algorithm>
#include <cmath>

#include "gui/background.hpp"
#include "gui/timeline_size.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t found_at_once = 100'000;  // events; a path through more takes longer than a frame

}  // namespace

TimelineView::TimelineView(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(320, 80);
    setAttribute(Qt::WA_OpaquePaintEvent);
}

TimelineView::~TimelineView() { *alive_ = false; }

void TimelineView::show(std::shared_ptr<const picture::Lanes> lanes) {
    slack_.reset();
    lanes_ = std::move(lanes);
    stale_ = true;
    choice_ = {};
    selected_.reset();
    area_.reset();
    partners_.clear();
    path_.clear();
    path_on_ = false;
    scroll_ = 0;
    map_ = QImage();
    names_.clear();
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
    if (on && path_.empty() && lanes_ != nullptr && !lanes_->lanes.empty()) find_path();
    if (selection_changed) selection_changed();
    update();
}

void TimelineView::find_path() {
    if (slack() != nullptr) {
        path_ = slack()->path();
    } else if (lanes_->size() <= found_at_once) {
        path_ = critical_path(*lanes_);
    } else if (sought_ != lanes_) {
        sought_ = lanes_;
        in_background(
            alive_, [lanes = lanes_] { return critical_path(*lanes); },
            [this, lanes = lanes_](std::vector<picture::PathStep> path) {
                sought_.reset();
                if (lanes != lanes_) return;
                path_ = std::move(path);
                if (selection_changed) selection_changed();
                update();
            });
    }
}

const picture::Slack* TimelineView::slack() {
    if (slack_ == nullptr && lanes_ != nullptr && knows_slack(*lanes_))
        slack_ = std::make_unique<picture::Slack>(*lanes_);
    return slack_.get();
}

void TimelineView::set_view(picture::TimeView view) {
    if (lanes_ == nullptr) return;
    const double first = limits_.from, last = limits_.to;
    const double margin = 0.01 * (last - first);
    const double span = std::clamp(view.to - view.from, 10.0, last - first + 2 * margin);
    const double middle = (view.from + view.to) / 2;
    view_.from = std::max(std::min(middle - span / 2, last + margin - span), first - margin);
    view_.to = view_.from + span;
    update();
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

const TimelineRow* TimelineView::row_of_lane(std::size_t lane) const {
    const std::size_t row = row_of_lane_[lane];
    return row < rows_.size() ? &rows_[row] : nullptr;
}

void TimelineView::relayout() {
    rows_ = lanes_ != nullptr ? lay_out(*lanes_, choice_, plot().height()) : std::vector<TimelineRow>{};
    row_of_lane_.assign(lanes_ != nullptr ? lanes_->lanes.size() : 0, SIZE_MAX);
    for (std::size_t r = 0; r < rows_.size(); ++r) {  // the lane's own row comes after that of its rank
        for (const std::size_t l : rows_[r].lanes) row_of_lane_[l] = r;
    }
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

bool TimelineView::event(QEvent* event) {
    return event->type() == QEvent::ToolTip ? show_tip(event) : QWidget::event(event);
}

}  // namespace rehearse::gui
