// SPDX-License-Identifier: Apache-2.0
// Light and dark: Qt 6.4 does not tell which the desktop has, so the window brings its own palettes.
#pragma once

#include <QColor>

#include "picture/palette.hpp"

class QApplication;

namespace rehearse::gui {

void apply(picture::Theme theme, QApplication& application);
QColor qcolor(picture::Color color);

}  // namespace rehearse::gui
