// SPDX-License-Identifier: Apache-2.0
// Applications whose figures can be worked out by hand, in every format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "picture/text.hpp"
#include "report/document/application.hpp"

namespace rehearse::report {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A step of `ms` with so many samples on so many nodes of two devices.
predict::Point point(std::int64_t nodes, std::int64_t batch, double ms, bool fits = true) {
    predict::Point point;
    point.figures.devices = 2 * nodes;
    point.figures.global_batch = batch;
    point.figures.time.step = Seconds{ms / 1000};
    point.nodes = nodes;
    point.band = {Seconds{0.5 * ms / 1000}, Seconds{2 * ms / 1000}};
    point.memory = {Bytes{8e9}, Bytes{16e9}, fits};
    return point;
}

// 100 ms on 1, 2 and 4 nodes: 100, 200 and, as the step takes twice as long there, 200 samples a second.
Application small() {
    Application application{
        .title = "A title with 100 % of the signs & none_left",
        .applicant = "Group",
        .project = "A project.",
        .machine = {"m", "a machine", "card", 100, 2, {}, {}},
        .job = {"net", "data", "fp32", "all in f32", "sgd", "frame", "a framework", 2000000, "Trained with frame."},
        .data = {},
        .floor = 0.7,
        .studies = {{false, 5, {point(1, 10, 100), point(2, 20, 100), point(4, 40, 200)}}},
        .phases = {{"tests", "month 1", 3, 2, Seconds{7200}, "as asked for", false},
                   {"runs", "month 2", 10, 4, Seconds{36000}, "90 epochs", false}},
        .track = {},
        .command = "rehearse report r.toml --output o",
        .version = "0"};
    application.studies[0].points[0].measured = Seconds{0.1};
    application.studies[0].points[1].anchor = predict::Anchor{.devices = 2};
    application.machine.charge = models::Charge{
        "SU", {4, "a guide"}, {{"short", 1, 4, Seconds{3600}, "a guide"}, {"long", 1, 2, Seconds{7200}, "a guide"}}};
    return application;
}

const Table& table(const Document& document, const std::string& key) {
    const Table* found = nullptr;
    for_each<Table>(document, [&](const Table& each, int) { found = each.key == key ? &each : found; });
    EXPECT_NE(found, nullptr) << key;
    return *found;
}

std::vector<std::string> texts(const std::vector<Cell>& row) {
    std::vector<std::string> all;
    for (const Cell& cell : row) all.push_back(cell.text);
    return all;
}

TEST(Application, ScalingIsRelativeToTheSmallestSize) {
    const Document document = document_of(small());
    const Table& scaling = table(document, "weak-scaling");
    ASSERT_EQ(scaling.rows.size(), 3U);
    EXPECT_THAT(texts(scaling.rows[0]),
                ElementsAre("1", "2", "10", "100", "measured", "100", "1.00", "100.0", "8.00 of 16.0", "measured"));
    EXPECT_THAT(texts(scaling.rows[1]),
                ElementsAre("2", "4", "20", "100", "50.0 to 200", "200", "2.00", "100.0", "8.00 of 16.0", "anchored"));
    EXPECT_THAT(texts(scaling.rows[2]),
                ElementsAre("4", "8", "40", "200", "100 to 400", "200", "2.00", "50.0", "8.00 of 16.0", "predicted"));
    EXPECT_THAT(scaling.caption, HasSubstr("1 node (2 devices), the smallest size"));
}

TEST(Application, SizesWithoutMemoryAreNamedAndNothingIsRelativeToThem) {
    Application application = small();
    application.studies[0].points[0].memory.fits = false;
    const Table scaling = table(document_of(application), "weak-scaling");
    EXPECT_EQ(scaling.rows[0].back().text, "does not fit");
    EXPECT_EQ(scaling.rows[1][6].text, "1.00");
    EXPECT_THAT(scaling.caption, HasSubstr("2 nodes (4 devices)"));
}

// 3 x 2 x 2 + 10 x 4 x 10 node-hours, 4 SU each; 412 of 100 x 8,760 node-hours are 0.047 %.
TEST(Application, JobsAreChargedByTheMachinesFactor) {
    const Table jobs = table(document_of(small()), "jobs");
    ASSERT_EQ(jobs.rows.size(), 3U);
    EXPECT_THAT(texts(jobs.rows[0]), ElementsAre("tests", "month 1", "3", "as asked for", "2", "2.0", "2.00", "12.0",
                                                 "48.0", "long, 2.00 h"));
    EXPECT_THAT(texts(jobs.rows[1]), ElementsAre("runs", "month 2", "10", "90 epochs", "4", "4.0", "10.0", "400",
                                                 "1,600", "short, 1.00 h: 10 jobs a run"));
    EXPECT_EQ(jobs.rows[2][7].value, 412);
    EXPECT_EQ(jobs.rows[2][8].value, 4 * 412);
    EXPECT_THAT(jobs.note, HasSubstr("0.047 %"));
    EXPECT_EQ(jobs.columns[8].unit, "SUs");
}

TEST(Application, SaysWhyThisSize) {
    const Document document = document_of(small());
    const auto& text = std::get<Paragraph>(document.sections[3].blocks[0]).text;
    EXPECT_THAT(text, HasSubstr("asked for on 4 nodes"));
    EXPECT_THAT(text, HasSubstr("50.0 % efficiency, below the floor of 70 %"));
    EXPECT_THAT(text, HasSubstr("knee lies at 2 nodes"));
    const Table& sizes = table(document, "sizes");
    EXPECT_EQ(sizes.rows[1].back().text, "fastest, knee, last above the floor");
    EXPECT_EQ(sizes.rows[2].back().text, "asked for");
}

// From 1 to 2 nodes twice the throughput, from 2 to 4 none.
TEST(Knee, IsTheLastStepThatGivesHalfOfWhatItPaysFor) {
    EXPECT_EQ(knee(small().studies[0].points), 1U);
    EXPECT_EQ(knee({point(1, 10, 100)}), 0U);
    EXPECT_EQ(knee({point(1, 10, 100), point(2, 20, 100), point(4, 40, 110)}), 2U);
}

TEST(Application, HasNoEmptyCellAndNoFigureWithoutAUnit) {
    EXPECT_THAT(faults(document_of(small())), IsEmpty());
    Application bare = small();
    bare.phases.clear(), bare.machine.charge.reset(), bare.applicant.clear(), bare.project.clear();
    EXPECT_THAT(faults(document_of(bare)), IsEmpty());
}

TEST(Document, FaultsAreFound) {
    Document document{"t", "s", "", {{"one", {Table{"k", "c", {{"a", "a", ""}}, {{{" "}}}}}}, {"two", {}}}, ""};
    EXPECT_THAT(faults(document), ElementsAre(HasSubstr("'a' have no unit"), HasSubstr("an empty cell"),
                                              HasSubstr("section 'two' is empty")));
    document = {"t", "s", "", {{"one", {Table{"k", "c", {{"a", "a", "s"}}, {}}}}}, ""};
    EXPECT_THAT(faults(document), ElementsAre("table k has no rows"));
}

TEST(Document, LatexEscapesWhatTexWouldRead) {
    const std::string text = to_latex(document_of(small()), "figures");
    EXPECT_THAT(text, HasSubstr("\\title{A title with 100 \\% of the signs \\& none\\_left}"));
    EXPECT_THAT(text, HasSubstr("\\toprule"));
    EXPECT_THAT(text, HasSubstr("\\includegraphics[width=\\linewidth]{figures/throughput.pdf}"));
    EXPECT_THAT(text, HasSubstr("$\\leq$ 4"));
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (i > 0 && text[i - 1] == '\\') continue;
        depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
        ASSERT_GE(depth, 0) << text.substr(0, i);
    }
    EXPECT_EQ(depth, 0);
}

TEST(Document, CsvHasPlainNumbersAndQuotes) {
    const std::string text = to_csv(table(document_of(small()), "jobs"));
    EXPECT_THAT(text, HasSubstr("phase,period,runs,"));
    EXPECT_THAT(text, HasSubstr("\"short, 1.00 h: 10 jobs a run\""));
    EXPECT_THAT(text, HasSubstr(",1600.0,"));
}

// An interval of 50 to 200 ms: its ends in seconds, as the step beside it, also where that was measured.
TEST(Document, IntervalsAreTwoColumnsInBaseUnits) {
    const Document document = document_of(small());
    const std::string text = to_csv(table(document, "weak-scaling"));
    EXPECT_THAT(text, HasSubstr("nodes,devices,global_batch,step_s,step_low_s,step_high_s,samples_per_s,"));
    EXPECT_THAT(text, HasSubstr("1,2,10,0.1,0.05,0.2,"));
    EXPECT_THAT(text, HasSubstr("2,4,20,0.1,0.05,0.2,"));
    const auto row = json_of(document)["tables"]["weak-scaling"]["rows"][1];
    EXPECT_EQ(row["step_low_s"], 0.05);
    EXPECT_EQ(row["step_high_s"], 0.2);
    EXPECT_EQ(json_of(document)["tables"]["weak-scaling"]["columns"].size(), row.size());
}

TEST(Document, MarkdownNumbersTablesAndFigures) {
    const std::string text = to_markdown(document_of(small()), "figures");
    EXPECT_THAT(text, HasSubstr("## 1. Scaling"));
    EXPECT_THAT(text, HasSubstr("**Table 1.**"));
    EXPECT_THAT(text, HasSubstr("(figures/efficiency.svg)"));
    EXPECT_THAT(text, HasSubstr("| nodes | devices | batch (samples) |"));
}

TEST(Document, JsonHasValuesInBaseUnits) {
    const auto json = json_of(document_of(small()));
    EXPECT_EQ(json["tables"]["weak-scaling"]["rows"][0]["step_s"], 0.1);
    EXPECT_EQ(json["tables"]["weak-scaling"]["rows"][2]["efficiency_percent"], 50.0);
    EXPECT_EQ(json["tables"]["jobs"]["columns"][7]["unit"], "node-hours");
}

// Nothing is set beyond the margins, whatever the length of a word or of a table.
TEST(Pages, KeepTheirMargins) {
    Application application = small();
    application.project = std::string(400, 'x') + " " + std::string(50, 'y');
    const auto phase = application.phases.front();
    for (int i = 0; i < 80; ++i) application.phases.push_back(phase);
    application.phases.back().name =
        "a name of a phase that is so long that it has to be broken over several lines of its cell";
    const std::vector<picture::Picture> all = pages(document_of(application));
    EXPECT_GE(all.size(), 3U);
    for (const picture::Picture& page : all) {
        for (const picture::Mark& mark : page.marks) {
            const auto* text = std::get_if<picture::Text>(&mark.shape);
            if (text == nullptr || text->rotation != 0) continue;
            const double wide = picture::text_width(text->text, text->size, text->bold);
            const double begin = text->anchor == picture::Anchor::start    ? text->at.x
                                 : text->anchor == picture::Anchor::middle ? text->at.x - wide / 2
                                                                           : text->at.x - wide;
            EXPECT_GT(begin, 40) << text->text;
            EXPECT_LT(begin + wide, page.width - 40) << text->text;
            EXPECT_LT(text->at.y, page.height - 30) << text->text;
        }
    }
}

TEST(Application, RefusesAStudyWhosePointsAllLackMemory) {
    Application application = small();
    application.studies.push_back({true, 60000, {point(1, 60000, 100, false), point(2, 60000, 50, false)}});
    EXPECT_THAT([&] { (void)document_of(application); },
                testing::ThrowsMessage<InfeasibleError>(HasSubstr("strong scaling: no size has enough memory")));
}

}  // namespace
}  // namespace rehearse::report
