// SPDX-License-Identifier: Apache-2.0
// What stands in the tables below a timeline. No Qt widgets here.
#pragma once

#include "gui/table.hpp"
#include "gui/timeline_view.hpp"

namespace rehearse::gui {

/// Of one event. `slack`: null where the timeline does not say what its steps wait for.
Rows details_of(const picture::Lanes& lanes, const picture::Slack* slack, picture::EventAt at);
/// How the area's time is spent, by activity and, where they are few enough, by step.
Rows area_of(const picture::Lanes& lanes, const TimelineView::Area& area, picture::Theme theme);
Rows path_rows(const picture::Lanes& lanes, const picture::Slack* slack, const std::vector<picture::PathStep>& path);

}  // namespace rehearse::gui
