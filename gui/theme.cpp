// SPDX-License-Identifier: Apache-2.0
#include "gui/theme.hpp"

#include <QApplication>
#include <QPalette>
#include <QStyleFactory>

namespace rehearse::gui {

QColor qcolor(picture::Color color) {
    return QColor(color.r, color.g, color.b, static_cast<int>(color.alpha * 255 + 0.5));
}

void apply(picture::Theme theme, QApplication& application) {
    const bool dark = theme == picture::Theme::dark;
    const QColor window = dark ? QColor(36, 40, 48) : QColor(245, 246, 248);
    const QColor base = dark ? QColor(27, 30, 36) : QColor(255, 255, 255);
    const QColor text = dark ? QColor(232, 232, 232) : QColor(34, 34, 34);
    const QColor faint = dark ? QColor(140, 144, 152) : QColor(130, 134, 140);
    const QColor accent = dark ? QColor(58, 122, 180) : QColor(0, 114, 178);
    QPalette palette;
    palette.setColor(QPalette::Window, window);
    palette.setColor(QPalette::Base, base);
    palette.setColor(QPalette::AlternateBase, dark ? QColor(32, 36, 43) : QColor(248, 249, 251));
    palette.setColor(QPalette::Button, dark ? QColor(48, 53, 62) : QColor(236, 238, 241));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText}) {
        palette.setColor(role, text);
        palette.setColor(QPalette::Disabled, role, faint);
    }
    palette.setColor(QPalette::PlaceholderText, faint);
    if (dark) {  // edges of tabs, frames and grooves, which Fusion draws of these
        palette.setColor(QPalette::Light, QColor(60, 66, 77));
        palette.setColor(QPalette::Midlight, QColor(54, 59, 69));
        palette.setColor(QPalette::Mid, QColor(44, 48, 57));
        palette.setColor(QPalette::Dark, QColor(22, 24, 29));
        palette.setColor(QPalette::Shadow, QColor(12, 13, 16));
    }
    palette.setColor(QPalette::ToolTipBase, dark ? QColor(48, 53, 62) : QColor(255, 255, 240));
    palette.setColor(QPalette::Highlight, accent);
    palette.setColor(QPalette::HighlightedText, Qt::white);
    palette.setColor(QPalette::Link, dark ? QColor(86, 180, 233) : accent);
    palette.setColor(QPalette::BrightText, QColor(213, 94, 0));
    application.setStyle(QStyleFactory::create("Fusion"));
    application.setPalette(palette);
    application.setStyleSheet(
        QString("QToolTip { color: %1; background: %2; border: 1px solid %3; padding: 3px; }"
                "QHeaderView::section { padding: 3px 6px; border: none; border-bottom: 1px solid %3; background: %4; }"
                "QTableView { border: none; gridline-color: transparent; }"
                "QMainWindow::separator { width: 4px; height: 4px; background: %4; }"
                "QListWidget { border: none; background: %4; outline: none; }"
                "QListWidget::item { padding: 7px 10px; border-radius: 4px; margin: 1px 6px; }"
                "QListWidget::item:selected { background: %5; color: white; }"
                "QDockWidget::title { padding: 6px; background: %4; }")
            .arg(text.name(), palette.color(QPalette::ToolTipBase).name(), dark ? "#3c424d" : "#d5d8dd", window.name(),
                 accent.name()));
}

}  // namespace rehearse::gui
