// SPDX-License-Identifier: Apache-2.0
// Several files that are open at once: which of them a screen shows when one is closed, opened again or was clicked;
// what is said beside their figures.
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QtTest/QTest>

#include "core/error.hpp"
#include "gui/picture_view.hpp"
#include "gui/timeline_tables.hpp"
#include "picture/text.hpp"
#include "tests/gui/window_fixture.hpp"

namespace rehearse::gui {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class OpenFiles : public Gui {
protected:
    QListWidget* files() const { return window_->findChild<QWidget*>("files_dock")->findChild<QListWidget*>(); }
    void click(int row) const {
        const QRect place = files()->visualItemRect(files()->item(row));
        QTest::mouseClick(files()->viewport(), Qt::LeftButton, {}, place.center());
    }
    void close_chosen() const {
        for (QAction* action : window_->commands()) {
            if (action->text() == "Close file" && action->shortcut() == QKeySequence("Ctrl+W")) action->trigger();
        }
    }
    std::vector<std::string> labels() const {
        std::vector<std::string> all;
        for (const Document& document : window_->session().documents) all.push_back(document.label);
        return all;
    }
    std::vector<std::string> texts(const char* name) const { return texts_of(find<PictureView>(name)->shown()); }
    static std::vector<std::string> texts_of(const picture::Picture& picture) {
        std::vector<std::string> all;
        for (const picture::Mark& mark : picture.marks) {
            if (const auto* text = std::get_if<picture::Text>(&mark.shape)) all.push_back(text->text);
        }
        return all;
    }
    void write_changed(const char* name, const std::string& what, const std::string& by) const {
        std::string text = prediction;
        text.replace(text.find(what), what.size(), by);
        write(name, text);
    }
};

// Of two predictions the second is compared: it still is when the first is closed.
TEST_F(OpenFiles, CompareKeepsWhatWasChosen) {
    trace::write(two_ranks(false, 2), path("slow.pftrace"));
    open("predicted.pftrace"), open("slow.pftrace"), open("measured.pftrace");
    window_->go("compare");
    auto* predicted = find<QComboBox>("compare_0");
    predicted->setCurrentIndex(1);
    Q_EMIT predicted->activated(1);
    const auto verdict = [&] { return find<QLabel>("compare_verdict")->text().toStdString(); };
    // Steps of 20 * 2.2 + 5 = 49 ms and of 32.5 ms: 50.8 % off.
    ASSERT_TRUE(wait([&] { return verdict().find("50.8 %") != std::string::npos; })) << verdict();
    click(0), close_chosen();
    EXPECT_THAT(labels(), testing::ElementsAre("slow.pftrace (predicted)", "measured.pftrace (measured)"));
    EXPECT_EQ(predicted->currentText(), "slow.pftrace (predicted)");
    EXPECT_EQ(find<QComboBox>("compare_1")->currentText(), "measured.pftrace (measured)");
    EXPECT_TRUE(wait([&] { return verdict().find("50.8 %") != std::string::npos; })) << verdict();
}

TEST_F(OpenFiles, PipelineKeepsWhatWasChosen) {
    open("predicted.pftrace"), open("measured.pftrace");
    window_->go("pipeline");
    auto* lower = window_->findChild<QWidget*>("lower_pipeline")->findChild<QComboBox*>("pipeline_shown");
    EXPECT_EQ(lower->currentText(), "measured.pftrace (measured)");
    click(0), close_chosen();
    EXPECT_EQ(lower->currentText(), "measured.pftrace (measured)");
}

TEST_F(OpenFiles, TheOneThatWasClickedIsClosed) {
    open("predicted.pftrace"), open("measured.pftrace"), open("prediction.json");
    click(1);
    EXPECT_EQ(files()->currentRow(), 1);  // it is seen which
    EXPECT_EQ(window_->session().timeline, 1);
    close_chosen();
    EXPECT_THAT(labels(), testing::ElementsAre("predicted.pftrace (predicted)", "prediction.json"));
    EXPECT_EQ(window_->session().timeline, 0);
    EXPECT_EQ(window_->session().prediction, 1);
}

// What is shown stays when another file is closed.
TEST_F(OpenFiles, ClosingAnotherChangesNothing) {
    open("predicted.pftrace"), open("measured.pftrace"), open("prediction.json");
    click(0);
    window_->session().point = 0;
    click(1), close_chosen();
    EXPECT_EQ(window_->session().timeline, 0);
    EXPECT_EQ(window_->session().prediction, 1);
    EXPECT_EQ(window_->session().point, 0);
}

TEST_F(OpenFiles, OpenedAgainAreReadAnewByTheirWholePath) {
    open("predicted.pftrace"), open("measured.pftrace");
    window_->go("compare");
    const int id = window_->session().documents[0].id;
    trace::write(two_ranks(false, 2), path("predicted.pftrace"));
    const QString relative = QDir::current().relativeFilePath(qpath("predicted.pftrace"));
    window_->open(relative);
    ASSERT_TRUE(wait([&] { return !window_->is_busy() && window_->session().documents.back().id == id; }));
    ASSERT_EQ(window_->session().documents.size(), 2U);
    const Document& again = window_->session().documents.back();
    EXPECT_EQ(again.path, path("predicted.pftrace"));
    EXPECT_NEAR(again.summary->step.value, 0.049, 1e-9);
    EXPECT_TRUE(wait([&] { return find<QLabel>("compare_verdict")->text().contains("50.8 %"); }));
}

// The folder of a network is no part of the name of a trace.
TEST_F(OpenFiles, PredictWritesItsTraceIntoAFolderOfItsOwn) {
    write("answer.json", prediction);
    fake("echo \"$@\" >> " + path("asked") + "; cat " + path("answer.json"));
    window_->session().experiment.model = path("net.onnx");
    window_->go("editor");
    window_->screen("editor")->refresh();
    QTest::mouseClick(find<QPushButton>("predict"), Qt::LeftButton);
    ASSERT_TRUE(wait([&] { return !window_->session().documents.empty(); }));
    const std::string asked = content_of(qpath("asked")).toStdString();
    const std::string trace = asked.substr(asked.find("--trace ") + 8);
    EXPECT_THAT(trace, HasSubstr("/rehearse-run-"));
    EXPECT_THAT(trace, Not(HasSubstr("net.onnx")));
}

TEST_F(OpenFiles, NotesAndWarningsStandBesideTheFigures) {
    write_changed("noted.json", "\"points\"",
                  R"("notes": ["'fc' could not be cut"], "warnings": ["device 'card' has no launch"], "points")");
    open("noted.json");
    EXPECT_THAT(texts("overview_picture"),
                testing::IsSupersetOf({"note: 'fc' could not be cut", "warning: device 'card' has no launch"}));
    fake("cat " + path("noted.json"));
    window_->go("editor");
    const auto* verdict = find<QLabel>("verdict");
    EXPECT_TRUE(wait([&] { return verdict->text().contains("has no launch") && verdict->text().contains("be cut"); }));
}

TEST_F(OpenFiles, WhatDoesNotFitHasNoEfficiency) {
    std::string text = prediction;
    const std::size_t last = text.rfind("\"efficiency\": 0.93");
    text.replace(last, 18, "\"efficiency\": null");
    text.replace(text.rfind("\"fits\": true"), 12, "\"fits\": false");
    write("large.json", text);
    open("large.json");
    EXPECT_THAT(texts("overview_picture"), Contains("none: does not fit"));
    window_->go("scaling");
    const auto& rows = find<Table>("points")->model_of_rows().rows();
    const auto column = std::ranges::find(rows.titles, "efficiency") - rows.titles.begin();
    EXPECT_EQ(rows.rows.at(0)[static_cast<std::size_t>(column)].text, "100.0 %");
    EXPECT_EQ(rows.rows.at(1)[static_cast<std::size_t>(column)].text, "");
    for (const picture::Mark& mark : find<PictureView>("scaling_picture")->shown().marks)
        EXPECT_THAT(mark.title, Not(HasSubstr("efficiency 0.0 %")));
}

// A machine of the user's that is called as one that is built in.
TEST_F(OpenFiles, TopologyShowsTheMachineThatWasPredicted) {
    write("ours.toml", "name = \"summit\"\nextends = \"eos\"\n");
    write_changed("ours.json", "\"machine\": \"summit\"",
                  "\"machine\": \"summit\", \"machine_file\": \"" + path("ours.toml") + "\"");
    open("ours.json");
    window_->go("topology");
    EXPECT_EQ(find<QComboBox>("topology_machine")->currentText(), qpath("ours.toml"));
    QFile::remove(qpath("ours.toml"));
    window_->screen("topology")->refresh();
    find<PictureView>("topology_picture")->remake();
    std::string said;
    for (const std::string& line : texts("topology_picture")) said += line;
    EXPECT_THAT(said, HasSubstr("ours.toml"));
}

TEST_F(OpenFiles, LongReasonsAreBrokenIntoLines) {
    const std::string reason = "unknown machine '" + std::string(200, 'm') + "'; choose one of this, that and another";
    const picture::Picture page = note({400, 300}, picture::Theme::light, reason);
    const auto lines = texts_of(page);
    EXPECT_GT(lines.size(), 3U);
    for (const std::string& line : lines) EXPECT_LE(picture::text_width(line, 13), 400) << line;
    EXPECT_EQ(lines.front(), "unknown machine");
    EXPECT_EQ(lines.back(), "another");
}

TEST_F(OpenFiles, TheRunWhoseLogIsShownIsChosenInTheTable) {
    fake("echo \"log of $1\" >&2");
    Runner& runner = window_->runner();
    int done = 0;
    for (const char* word : {"first", "second"}) runner.start(word, {word}, [&](const Runner::Result&) { ++done; });
    window_->go("runs");
    ASSERT_TRUE(wait([&] { return done == 2; }));
    auto* table = find<Table>("runs_table");
    const auto log = [&] { return find<QPlainTextEdit>("log")->toPlainText(); };
    EXPECT_EQ(table->currentIndex().row(), 1);
    EXPECT_TRUE(log().contains("log of second"));
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(0, 0)).center());
    EXPECT_TRUE(log().contains("log of first"));
    window_->screen("runs")->refresh();
    EXPECT_EQ(table->currentIndex().row(), 0);
}

TEST_F(OpenFiles, ExperimentsTakeTheBatchesThatPlansTake) {
    window_->session().experiment.batch = 1'000'000'000;
    window_->go("editor");
    window_->screen("editor")->refresh();
    EXPECT_EQ(find<QSpinBox>("batch")->value(), 1'000'000'000);
}

TEST_F(OpenFiles, ARequestSaysWhatOpensIt) {
    write("request.toml", "[request]\ntitle = \"t\"\n");
    window_->open(qpath("request.toml"));
    EXPECT_THAT(window_->message().toStdString(), HasSubstr("rehearse report"));
    EXPECT_THAT(window_->message().toStdString(), HasSubstr("neither a machine nor an experiment"));
}

// Of two ranks one is filtered away, and its lanes are closed.
TEST_F(OpenFiles, TimelinesAreSavedAsTheyAreSeen) {
    open("predicted.pftrace");
    window_->go("timeline");
    const auto rows = [&] { return texts_of(window_->screen("timeline")->picture()); };
    EXPECT_THAT(rows(), testing::IsSupersetOf({"rank 0", "rank 1", "rank 1 compute"}));
    find<QLineEdit>("filter")->setText("rank 1");
    EXPECT_THAT(rows(), Not(Contains("rank 0")));
    timeline()->open_rank(1, false);
    EXPECT_THAT(rows(), Not(Contains("rank 1 compute")));
    EXPECT_THAT(rows(), Contains("rank 1"));
}

// An event of 1 s of which a millisecond lies in the area takes at most all of it.
TEST_F(OpenFiles, SharesOfAnAreaAreOfItsOwnTime) {
    Timeline timeline{"t", true, 1, {}, {}};
    timeline.events.push_back(
        {RankIndex{0}, Stream::compute, "long", "", "forward", 0, 0, Seconds{0.001}, Seconds{1.001}, {}, {}});
    const Rows rows = area_of(picture::lanes_of(timeline), {0, 2e6, {0}}, picture::Theme::light);
    ASSERT_EQ(rows.rows.size(), 2U);  // the activity and the step
    for (const auto& row : rows.rows) EXPECT_NEAR(*row[2].number, 0.5, 1e-9);
}

}  // namespace
}  // namespace rehearse::gui
