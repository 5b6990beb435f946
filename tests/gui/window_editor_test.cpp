// SPDX-License-Identifier: Apache-2.0
// The form of an experiment: what is undone, when it is looked at, where it stands.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QtTest/QTest>

#include "tests/gui/window_fixture.hpp"

namespace rehearse::gui {
namespace {

class EditorForm : public Gui {
protected:
    EditorForm() {
        write("answer.json", prediction);
        fake("echo run >> " + path("runs") + "; cat " + path("answer.json"));
        window_->activateWindow();
        window_->go("editor");
    }
    void type(QLineEdit* field, const char* text) const {
        field->setFocus();
        field->selectAll();
        QTest::keyClicks(field, text);
    }
    int predictions() const { return static_cast<int>(window_->runner().jobs().size()); }
};

// Three fields, each typed letter by letter: three undos lead back, and each takes one field.
TEST_F(EditorForm, UndoesAFieldAtATimeAlsoByCtrlZ) {
    const Experiment first = window_->session().experiment;
    auto *plan = find<QLineEdit>("plan"), *devices = find<QLineEdit>("devices");
    type(plan, "data:zero=1");
    type(devices, "12,24");
    type(plan, "data:zero=2");
    EXPECT_EQ(window_->session().experiment.plan, "data:zero=2");
    QTest::keyClick(plan, Qt::Key_Z, Qt::ControlModifier);
    EXPECT_EQ(window_->session().experiment.plan, "data:zero=1");
    EXPECT_EQ(window_->session().experiment.devices, "12,24");
    QTest::keyClick(plan, Qt::Key_Z, Qt::ControlModifier);
    EXPECT_EQ(window_->session().experiment.devices, first.devices);
    EXPECT_EQ(window_->session().experiment.plan, "data:zero=1");
    QTest::mouseClick(find<QPushButton>("undo"), Qt::LeftButton);
    EXPECT_EQ(window_->session().experiment, first);
    EXPECT_FALSE(find<QPushButton>("undo")->isEnabled());
    QTest::keyClick(plan, Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    EXPECT_EQ(window_->session().experiment.plan, "data:zero=1");
}

// Typed without a pause, eleven letters ask for the ends of the curve and then for the whole: two processes.
TEST_F(EditorForm, PredictsOncePerPauseOfTyping) {
    ASSERT_TRUE(wait([&] { return predictions() == 2 && !window_->is_busy(); }));
    type(find<QLineEdit>("plan"), "data:zero=1");
    EXPECT_EQ(predictions(), 2);  // nothing yet
    ASSERT_TRUE(wait([&] { return predictions() == 4 && !window_->is_busy(); }));
    QTest::qWait(400);
    EXPECT_EQ(predictions(), 4);
}

// Four nodes of six: 10 devices cannot be cut into four stages, 12 can.
TEST_F(EditorForm, ChecksEveryNumberOfDevices) {
    Experiment experiment{"lenet5", "summit", "pipe=4:microbatches=4,data", "fp32", "sgd", "10,12", 8};
    EXPECT_THAT(check(experiment).problem, testing::StartsWith("10 devices: "));
    experiment.devices = "12,8";
    EXPECT_EQ(check(experiment).problem, "");
    EXPECT_THAT(check(experiment).summary, testing::HasSubstr("data=3"));  // of the largest
    experiment.devices = "8,30000";
    EXPECT_THAT(check(experiment).problem, testing::StartsWith("30000 devices: "));
}

TEST_F(EditorForm, DoesNotMoveWhenItsVerdictGrows) {
    ASSERT_TRUE(wait([&] { return find<QLabel>("verdict")->text().contains("can be run"); }));
    const auto places = [&] {
        std::vector<QPoint> found;
        for (const char* name : {"model", "plan", "batch", "predict", "undo", "copy", "plan_help", "curve"})
            found.push_back(find<QWidget>(name)->mapTo(window_.get(), QPoint()));
        return found;
    };
    const auto before = places();
    find<QLineEdit>("plan")->setText(QString("data,") + QString("no-such-axis-of-a-plan=4:").repeated(20));
    EXPECT_EQ(places(), before);
    ASSERT_TRUE(wait([&] { return find<QLabel>("verdict")->text().contains("no-such"); }));
    QTest::qWait(50);
    EXPECT_EQ(places(), before);
    EXPECT_EQ(window_->message(), "");
}

// Nothing of the form lies outside of what is seen of it.
TEST_F(EditorForm, ShowsTheLongestExampleWithoutCuttingIt) {
    window_->session().experiment = {
        "gpt3-175b", "selene", "pipe=16:schedule=interleaved:microbatches=96,data,tensor=8:sequence=on",
        "mixed",     "adam",   "1024,2048",
        96};
    window_->screen("editor")->refresh();
    ASSERT_TRUE(wait([&] { return find<QLabel>("verdict")->text().contains("can be run"); }));
    for (const QSize size : {QSize(1280, 800), QSize(800, 600)}) {
        window_->resize(size);
        QTest::qWait(20);
        for (const char* name : {"model", "machine", "plan", "devices", "predict", "copy", "undo", "redo", "verdict"}) {
            const auto* widget = find<QWidget>(name);
            EXPECT_EQ(widget->visibleRegion().boundingRect().width(), widget->width()) << name << size.width();
            EXPECT_GT(widget->width(), 80) << name;
        }
        if (size.width() < 1280) continue;
        const auto* plan = find<QLineEdit>("plan");
        EXPECT_GT(plan->width() - 12, plan->fontMetrics().horizontalAdvance(plan->text()));
    }
}

TEST_F(Gui, FitsInto800x600OnEveryScreen) {
    open("prediction.json"), open("predicted.pftrace"), open("measured.pftrace");
    for (const char* name : {"overview", "timeline", "editor", "scaling", "pipeline", "compare", "topology", "memory",
                             "kernels", "runs"}) {
        window_->go(name);
        window_->resize(800, 600);
        QTest::qWait(1);
        EXPECT_EQ(window_->size(), QSize(800, 600)) << name;
        EXPECT_LE(window_->minimumSizeHint().width(), 800) << name;
        EXPECT_LE(window_->minimumSizeHint().height(), 600) << name;
    }
}

}  // namespace
}  // namespace rehearse::gui
