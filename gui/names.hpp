// SPDX-License-Identifier: Apache-2.0
// What screen readers say of the controls that have no label of their own.
#pragma once

class QWidget;

namespace rehearse::gui {

/// Gives all controls below `widget` that have none an accessible name, by their object names. A test finds every
/// control that is left without.
void name_controls(QWidget& widget);

}  // namespace rehearse::gui
