// SPDX-License-Identifier: Apache-2.0
// What goes into the window and comes out: files, dropped or damaged, children, full disks, sessions.
#include <sys/mount.h>

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QDropEvent>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QtTest/QTest>
#include <cerrno>
#include <cstring>

#include "gui/picture_view.hpp"
#include "tests/gui/window_fixture.hpp"

namespace rehearse::gui {
namespace {

using testing::HasSubstr;

TEST_F(Gui, CopiesCsvWithNumbersInBaseUnits) {
    EXPECT_EQ(to_csv({{"name", "time"}, {{{"a,\"b\"", {}}, seconds(0.0015)}}}), "name,time\n\"a,\"\"b\"\"\",0.0015\n");
}

TEST_F(Gui, SaysWhatIsWrongWithFilesAndLosesNothing) {
    open("predicted.pftrace");
    write("broken.json", R"({"traceEvents": [{"ph": "X", "name": !)");
    write("empty.json", "");
    for (const char* name : {"broken.json", "empty.json", "vanished.json"}) {
        window_->open(qpath(name));
        ASSERT_TRUE(wait([&] { return window_->message().contains(name); })) << name;
    }
    EXPECT_EQ(window_->session().documents.size(), 1U);
    QFile::remove(qpath("predicted.pftrace"));  // what is open stays
    window_->go("timeline");
    EXPECT_GT(colors(timeline()), 10);
}

TEST_F(Gui, TakesDroppedFiles) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(qpath("prediction.json"))});
    QDragEnterEvent enter({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window_.get(), &enter);
    QDropEvent drop({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
    QApplication::sendEvent(window_.get(), &drop);
    EXPECT_TRUE(wait([&] { return window_->session().documents.size() == 1; }));
}

TEST_F(Gui, TakesAnExperimentFromAFile) {
    write("e.toml", "[experiment]\nmodel = 'vgg16'\nplan = 'data=12'\ndevices = [12]\nbatch = 7\n");
    open("prediction.json");
    window_->open(qpath("e.toml"));
    EXPECT_EQ(window_->screen(), "editor");
    EXPECT_EQ(find<QLineEdit>("plan")->text(), "data=12");
    EXPECT_EQ(find<QComboBox>("model")->currentText(), "vgg16");
    EXPECT_EQ(find<QLineEdit>("devices")->text(), "12");
    EXPECT_EQ(find<QComboBox>("machine")->currentText(), "summit");  // as before
    QTest::mouseClick(find<QPushButton>("undo"), Qt::LeftButton);
    EXPECT_EQ(find<QLineEdit>("plan")->text(), "data");
    write("broken.toml", "[experiment\n");
    window_->open(qpath("broken.toml"));
    EXPECT_THAT(window_->message().toStdString(), HasSubstr("broken.toml"));
    EXPECT_EQ(window_->session().documents.size(), 1U);
}

// A disk of 64 KB that is full: what was saved before stays, and each failure is a message.
TEST_F(Gui, FullDiskIsAMessageAndLosesNothing) {
    QDir(folder_.path()).mkdir("disk");
    const std::string disk = path("disk");
    if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
        GTEST_SKIP() << "a small disk cannot be mounted here: " << strerror(errno);
    const std::unique_ptr<const std::string, void (*)(const std::string*)> mounted(
        &disk, [](const std::string* at) { umount2(at->c_str(), MNT_DETACH); });
    window_->go("pipeline");
    auto* pipeline = find<PictureView>("pipeline_picture");
    const QString picture = qpath("disk/p.svg");
    pipeline->save(picture);
    const QByteArray before = content_of(picture);
    EXPECT_GT(before.size(), 1000);
    QFile filler(qpath("disk/filler"));
    ASSERT_TRUE(filler.open(QIODevice::WriteOnly));
    while (filler.write(QByteArray(4096, 'x')) > 0 && filler.flush()) {
    }
    filler.close();
    for (const char* name : {"disk/p.svg", "disk/p.png", "disk/p.pdf"}) {
        EXPECT_THROW(pipeline->save(qpath(name)), std::exception) << name;
    }
    EXPECT_EQ(content_of(picture), before);
    EXPECT_FALSE(QFile::exists(qpath("disk/p.png")));
    // A run whose output does not fit: its message, and what is open stays.
    open("prediction.json");
    fake("cat /dev/zero > " + disk + "/trace || exit 3");
    QString said = "-";
    window_->runner().start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return said != "-"; }));
    EXPECT_THAT(said.toStdString(), HasSubstr("No space left on device"));
    EXPECT_EQ(window_->session().documents.size(), 1U);
}

TEST_F(Gui, ChildThatIsKilledIsAMessageAndCancelIsNone) {
    fake("kill -SEGV $$");
    Runner& runner = window_->runner();
    QString said = "-";
    runner.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return said != "-"; }));
    EXPECT_THAT(said.toStdString(), HasSubstr("killed or crashed"));
    fake("exec sleep 100");
    said = "-";
    const int id = runner.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return runner.is_running(id); }));
    runner.cancel(id);
    ASSERT_TRUE(wait([&] { return said != "-"; }));
    EXPECT_EQ(said, "");
    EXPECT_EQ(runner.jobs().back()->state, "cancelled");
    fake("echo 'no space left on device' >&2; exit 3");
    runner.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return !said.isEmpty(); }));
    EXPECT_THAT(said.toStdString(), HasSubstr("no space left on device"));
    Runner missing("/no/such/program");
    said.clear();
    missing.start("a run", {}, [&](const Runner::Result& result) { said = result.message; });
    ASSERT_TRUE(wait([&] { return !said.isEmpty(); }));
    EXPECT_THAT(said.toStdString(), HasSubstr("cannot be started"));
}

// The curve of what does not fit is shown, with what would help; a child that dies is a message, and no curve of before
// stays.
TEST_F(Gui, EditorShowsWhatDoesNotFitAndSaysWhenItsChildDies) {
    write("answer.json", prediction);
    fake("cat " + path("answer.json") + "; printf 'does not fit\nit fits with (tried)\n  batch 16\n' >&2; exit 4");
    window_->session().experiment.batch = 100'000;
    window_->go("editor");
    const auto marks = [&] { return find<PictureView>("curve")->shown().marks.size(); };
    ASSERT_TRUE(wait([&] { return marks() > 20; }));
    const auto* verdict = find<QLabel>("verdict");
    EXPECT_TRUE(wait([&] { return verdict->text().contains("batch 16") && verdict->text().contains("does not fit:"); }))
        << verdict->text().toStdString();
    EXPECT_EQ(window_->message(), "");
    fake("kill -9 $$");
    find<QSpinBox>("batch")->setValue(99'999);
    ASSERT_TRUE(wait([&] { return window_->message().contains("killed or crashed"); }));
    EXPECT_LT(marks(), 5U);
}

TEST_F(Gui, ShowsHowFarARunIs) {
    fake("echo reading >&2; echo 'progress 1/4 6 devices' >&2; exec sleep 100");
    Runner& runner = window_->runner();
    const int id = runner.start("a run", {}, [](const Runner::Result&) {});
    window_->go("runs");
    const auto row = [&] { return find<Table>("runs_table")->model_of_rows().rows().rows.at(0); };
    ASSERT_TRUE(wait([&] { return row()[3].text == "1 of 4: 6 devices"; }));
    EXPECT_EQ(row()[1].text, "running");
    EXPECT_EQ(row()[2].number, 0.25);
    EXPECT_THAT(find<QPlainTextEdit>("log")->toPlainText().toStdString(), testing::EndsWith("reading\n"));
    QTest::mouseClick(find<QPushButton>("cancel"), Qt::LeftButton);
    EXPECT_TRUE(wait([&] { return !runner.is_running(id); }));
    EXPECT_EQ(row()[1].text, "cancelled");
}

TEST_F(Gui, RunsCommandsFromThePalette) {
    EXPECT_GT(window_->commands().size(), 15);
    window_->show_palette();
    auto* input = window_->findChild<QLineEdit*>("palette_input");
    ASSERT_NE(input, nullptr);
    QTest::keyClicks(input, "pipesch");
    QTest::keyClick(input, Qt::Key_Return);
    EXPECT_EQ(window_->screen(), "pipeline");
    QTest::keyClick(window_.get(), Qt::Key_Question, Qt::ShiftModifier);
    EXPECT_NE(window_->findChild<QWidget*>("keys"), nullptr);
}

TEST_F(Gui, CopiesAndSavesPictures) {
    window_->go("pipeline");
    window_->copy_picture();
    EXPECT_FALSE(QApplication::clipboard()->image().isNull());
    find<PictureView>("pipeline_picture")->save(qpath("p.svg"));
    EXPECT_TRUE(QFile::exists(qpath("p.svg")));
    if (QFile::exists("/dev/full")) {
        EXPECT_THROW(find<PictureView>("pipeline_picture")->save("/dev/full/p.svg"), std::exception);
    }
    EXPECT_THROW(find<PictureView>("pipeline_picture")->save(qpath("p.jpg")), std::exception);
}

TEST_F(Gui, RemembersItsSession) {
    {
        Window first(true, qpath("rehearse"));
        first.show();
        first.open(qpath("predicted.pftrace"));
        ASSERT_TRUE(wait([&] { return first.session().documents.size() == 1; }));
        first.go("memory");
        first.set_theme(picture::Theme::dark);
        first.findChild<QDockWidget*>("files_dock")->hide();
        first.put_beside("topology");
        first.close();
    }
    Window second(true, qpath("rehearse"));
    second.show();
    EXPECT_TRUE(wait([&] { return second.session().documents.size() == 1; }));
    EXPECT_EQ(second.screen(), "memory");
    EXPECT_TRUE(second.findChild<QDockWidget*>("files_dock")->isHidden());
    EXPECT_TRUE(second.screen("topology")->isVisible());
    EXPECT_EQ(QSettings().value("theme").toString(), "dark");
}

}  // namespace
}  // namespace rehearse::gui
