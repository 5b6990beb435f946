// SPDX-License-Identifier: Apache-2.0
// The window without a mouse and without seeing it: names, Tab, arrow keys.
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QComboBox>
#include <QTabWidget>
#include <QtTest/QTest>

#include "gui/picture_view.hpp"
#include "gui/timeline_size.hpp"
#include "tests/gui/window_fixture.hpp"

namespace rehearse::gui {
namespace {

// Whoever does not see the window, or has no mouse: each control has a name for screen readers, and by Tab and arrow
// keys the marks of pictures are reached and opened.
TEST_F(Gui, EveryControlHasANameAndIsReachedByKeys) {
    open("prediction.json");
    open("predicted.pftrace");
    std::set<std::string> nameless;
    for (const char* screen : {"overview", "timeline", "editor", "scaling", "pipeline", "compare", "topology", "memory",
                               "kernels", "runs"}) {
        window_->go(screen);
        for (QWidget* widget : window_->screen(screen)->findChildren<QWidget*>()) {
            const std::string kind = widget->metaObject()->className(), own = widget->objectName().toStdString();
            if (widget->focusPolicy() == Qt::NoFocus || own.starts_with("qt_") || kind == "QScrollArea" ||
                kind == "QTabBar" || kind == "QTabWidget" || kind == "QHeaderView" || kind.ends_with("Container") ||
                kind == "QComboBoxListView" || qobject_cast<QComboBox*>(widget->parentWidget()) != nullptr ||
                qobject_cast<QAbstractSpinBox*>(widget->parentWidget()) != nullptr)
                continue;
            QAccessibleInterface* face = QAccessible::queryAccessibleInterface(widget);
            if (face == nullptr || face->text(QAccessible::Name).isEmpty())
                nameless.insert(std::string{screen} + ": " + kind + " " + own);
        }
    }
    EXPECT_THAT(nameless, testing::IsEmpty());
}

TEST_F(Gui, MarksOfAPictureAreReachedByArrowKeys) {
    open("prediction.json");
    window_->go("scaling");
    auto* view = find<PictureView>("scaling_picture");
    view->setFocus();
    QTest::keyClick(view, Qt::Key_Right);
    ASSERT_NE(view->current(), nullptr);
    const std::string first = view->current()->title;
    EXPECT_EQ(view->accessibleDescription().toStdString(), first);
    QTest::keyClick(view, Qt::Key_Right);
    EXPECT_NE(view->current()->title, first);
    QTest::keyClick(view, Qt::Key_Left);
    EXPECT_EQ(view->current()->title, first);
    for (int i = 0; i < 20 && view->current()->title.find("384 devices") == std::string::npos; ++i)
        QTest::keyClick(view, Qt::Key_Right);
    QTest::keyClick(view, Qt::Key_Return);
    EXPECT_EQ(window_->screen(), "overview");
}

}  // namespace
}  // namespace rehearse::gui
