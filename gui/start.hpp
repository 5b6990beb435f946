// SPDX-License-Identifier: Apache-2.0
// What stands in the window before anything is open. No Qt here.
#pragma once

#include <span>

#include "gui/experiment.hpp"
#include "picture/chart.hpp"

namespace rehearse::gui {

struct Example {
    const char *name, *detail;
    Experiment experiment;
};
std::span<const Example> examples();

/// Cards and lines to click on. The title of each says what for: "open: ...", "editor: ..." (a screen), "example:
/// NAME", "recent: PATH".
picture::Picture start_picture(const std::vector<std::string>& recent, picture::Size size, picture::Theme theme);

}  // namespace rehearse::gui
