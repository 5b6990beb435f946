// SPDX-License-Identifier: Apache-2.0
// What is selected, and how it is found.
#include <fmt/format.h>

#include <algorithm>

#include "gui/timeline_view.hpp"
#include "picture/ticks.hpp"

namespace rehearse::gui {

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

double TimelineView::pixel_s() const { return (view_.to - view_.from) / plot().width() * 1e-9; }

std::string TimelineView::extent() const {
    return area_ ? picture::text_of_time((area_->to - area_->from) * 1e-9, pixel_s()) : "";
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

std::optional<picture::EventAt> TimelineView::find_step(const std::string& step, double from) {
    if (lanes_ == nullptr) return std::nullopt;
    std::vector<bool> wanted(lanes_->whats.size());
    for (std::size_t w = 0; w < wanted.size(); ++w) wanted[w] = lanes_->whats[w].step == step;
    for (std::size_t l = 0; l < lanes_->lanes.size(); ++l) {
        const picture::Lane& lane = lanes_->lanes[l];
        for (std::size_t i = lane.first_after(static_cast<std::int64_t>(from)); i < lane.size(); ++i) {
            if (!wanted[lane.what(i)] || static_cast<double>(lane.start(i)) < from) continue;
            select(picture::EventAt{l, i});
            return picture::EventAt{l, i};
        }
    }
    return std::nullopt;
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

std::string TimelineView::text_of(picture::EventAt event) const {
    const picture::Lane& lane = lanes_->lanes[event.lane];
    const picture::What& what = lanes_->whats[lane.what(event.event)];
    const double duration = static_cast<double>(lane.end(event.event) - lane.start(event.event)) * 1e-9;
    std::string text = fmt::format("{}\n{}, {}, {}\n{}", what.step, name_of_rank(*lanes_, lane.rank),
                                   name_of_lane(lane), picture::to_string(what.activity), to_string(Seconds{duration}));
    text +=
        fmt::format(" from {}", picture::text_of_time(static_cast<double>(lane.start(event.event)) * 1e-9, pixel_s()));
    if (what.bytes > 0) text += fmt::format(", {}", to_string(Bytes{what.bytes}));
    if (what.bytes > 0 && duration > 0) text += fmt::format(" at {}", to_string(Bandwidth{what.bytes / duration}));
    if (what.flops > 0 && duration > 0) text += fmt::format(", {}", to_string(FlopRate{what.flops / duration}));
    return text;
}

}  // namespace rehearse::gui
