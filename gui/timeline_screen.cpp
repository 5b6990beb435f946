// SPDX-License-Identifier: Apache-2.0
// The timeline with its tools above and its figures below.
#include <fmt/format.h>

#include <QBoxLayout>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSplitter>
#include <QTabWidget>

#include "gui/session.hpp"
#include "gui/timeline_view.hpp"
#include "picture/timeline_picture.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t most_by_step = 3'000'000;  // events that are counted by name; more take longer than a frame may

// How much later it could have ended: by what the steps wait for, else by what begins next on its rank.
const char* slack_name(const picture::Slack* slack) { return slack != nullptr ? "slack" : "free slack"; }
Value slack_of(const picture::Lanes& lanes, const picture::Slack* slack, picture::EventAt at) {
    return seconds(static_cast<double>(slack != nullptr ? slack->of(at) : free_slack(lanes, at)) * 1e-9);
}

Rows details_of(const picture::Lanes& lanes, const picture::Slack* slack, picture::EventAt at) {
    const picture::Lane& lane = lanes.lanes[at.lane];
    const picture::What& what = lanes.whats[lane.what(at.event)];
    const double start = static_cast<double>(lane.start(at.event)) * 1e-9;
    const double length = static_cast<double>(lane.end(at.event) - lane.start(at.event)) * 1e-9;
    Rows rows{{"property", "value"}, {}};
    const auto add = [&](const char* name, Value value) { rows.rows.push_back({{name, {}}, std::move(value)}); };
    add("step", {what.step, {}});
    add("activity", {std::string{to_string(what.activity)}, {}});
    add("on", {name_of_rank(lanes, lane.rank) + ", " + name_of_lane(lane), {}});
    add("start", seconds(start));
    add("duration", seconds(length));
    add(slack_name(slack), slack_of(lanes, slack, at));
    if (!what.layer.empty()) add("layer", {what.layer, {}});
    if (!what.pass.empty()) add("pass or category", {what.pass, {}});
    add("micro-batch", count(what.micro_batch));
    add("iteration", count(lane.iteration(at.event)));
    if (what.bytes > 0) add("bytes", bytes(what.bytes));
    if (what.bytes > 0 && length > 0) add("bandwidth", rate(what.bytes / length, "B/s"));
    if (what.flops > 0) add("work", {to_string(Flops{what.flops}), what.flops});
    if (what.flops > 0 && length > 0) add("rate", rate(what.flops / length, "FLOP/s"));
    return rows;
}

Rows area_of(const picture::Lanes& lanes, const TimelineView::Area& area) {
    const auto from = static_cast<std::int64_t>(area.from), to = static_cast<std::int64_t>(area.to);
    const picture::Statistics s = statistics(lanes, area.lanes, from, to);
    Rows rows{{"what", "total", "share of the area", "count", "mean", "shortest", "longest"}, {}};
    for (std::size_t a = 0; a < picture::activity_count; ++a) {
        if (s.busy[a] == 0) continue;
        rows.rows.push_back({{"■ " + std::string{to_string(static_cast<picture::Activity>(a))}, {}},
                             seconds(static_cast<double>(s.busy[a]) * 1e-9),
                             percent(static_cast<double>(s.busy[a]) / static_cast<double>(s.span))});
    }
    if (s.events > most_by_step) return rows;
    for (const auto& row : statistics_by_step(lanes, area.lanes, from, to)) {
        const double total = static_cast<double>(row.total) * 1e-9, n = static_cast<double>(row.count);
        rows.rows.push_back({{row.step, {}},
                             seconds(total),
                             percent(static_cast<double>(row.total) / static_cast<double>(s.span)),
                             count(n),
                             seconds(total / n),
                             seconds(static_cast<double>(row.shortest) * 1e-9),
                             seconds(static_cast<double>(row.longest) * 1e-9)});
    }
    return rows;
}

Rows path_rows(const picture::Lanes& lanes, const picture::Slack* slack, const std::vector<picture::PathStep>& path) {
    Rows rows{{"step", "rank", "lane", "start", "duration", "waited before", slack_name(slack), "activity"}, {}};
    for (const picture::PathStep& step : path) {
        if (rows.rows.size() >= 20'000) break;
        const picture::Lane& lane = lanes.lanes[step.at.lane];
        const picture::What& what = lanes.whats[lane.what(step.at.event)];
        rows.rows.push_back({{what.step, {}},
                             count(static_cast<double>(lane.rank)),
                             {name_of_lane(lane), {}},
                             seconds(static_cast<double>(lane.start(step.at.event)) * 1e-9),
                             seconds(static_cast<double>(lane.end(step.at.event) - lane.start(step.at.event)) * 1e-9),
                             seconds(static_cast<double>(step.waited) * 1e-9),
                             slack_of(lanes, slack, step.at),
                             {std::string{to_string(what.activity)}, {}}});
    }
    return rows;
}

class TimelineScreen : public Screen {
public:
    explicit TimelineScreen(Session& session) : Screen(session) {
        files_ = new QComboBox;
        coloring_ = new QComboBox;
        coloring_->addItems({"coloured by activity", "heat: waiting", "heat: network"});
        search_ = new QLineEdit;
        search_->setObjectName("search");
        search_->setPlaceholderText("Search steps  ( / )");
        search_->setClearButtonEnabled(true);
        filter_ = new QLineEdit;
        filter_->setObjectName("filter");
        filter_->setPlaceholderText("Only ranks with…");
        filter_->setMaximumWidth(160);
        path_ = new QCheckBox("Critical path");
        hint_ = new QLabel("W/S zoom · A/D move · F focus · drag: statistics · ? all keys");
        hint_->setEnabled(false);
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 4);
        for (QWidget* widget : std::initializer_list<QWidget*>{files_, coloring_, path_, search_, filter_})
            tools->addWidget(widget);
        tools->addStretch();
        tools->addWidget(hint_);
        view_ = new TimelineView;
        view_->setObjectName("timeline_view");
        details_ = new Table;
        details_->setObjectName("details");
        tabs_ = new QTabWidget;
        tabs_->setDocumentMode(true);
        tabs_->addTab(details_, "Selection");
        auto* split = new QSplitter(Qt::Vertical);
        split->addWidget(view_);
        split->addWidget(tabs_);
        split->setStretchFactor(0, 4);
        split->setStretchFactor(1, 1);
        split->setSizes({700, 190});
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->setSpacing(0);
        all->addLayout(tools);
        all->addWidget(split);
        wire();
    }

    void refresh() override {
        const auto with = session_.with([](const Document& d) { return d.lanes != nullptr; });
        const QSignalBlocker quiet(files_);
        files_->clear();
        for (const int i : with) files_->addItem(QString::fromStdString(session_.at(i)->label), i);
        files_->setCurrentIndex(files_->findData(session_.timeline));
        files_->setVisible(!with.empty());
        const Document* document = session_.at(session_.timeline);
        const auto lanes = document != nullptr ? document->lanes : nullptr;
        if (lanes != view_->lanes()) view_->show(lanes);
    }

    void set_theme(picture::Theme theme) override {
        theme_ = theme;
        view_->set_theme(theme);
    }

    picture::Picture picture() const override {
        if (view_->lanes() == nullptr) return {};
        picture::TimelineView shown;
        shown.time = view_->view();
        shown.coloring = static_cast<picture::Coloring>(coloring_->currentIndex());
        return timeline_picture(*view_->lanes(), shown, 1200, theme_);
    }

    void search() override { search_->setFocus(), search_->selectAll(); }

private:
    void wire() {
        connect(files_, &QComboBox::activated, this, [this](int) {
            session_.timeline = files_->currentData().toInt();
            session_.refresh();
        });
        connect(coloring_, &QComboBox::currentIndexChanged, this,
                [this](int i) { view_->set_coloring(static_cast<picture::Coloring>(i)); });
        connect(path_, &QCheckBox::toggled, this, [this](bool on) { view_->set_critical_path(on); });
        connect(search_, &QLineEdit::returnPressed, this, [this] {
            const bool found = view_->find_next(search_->text().toStdString());
            hint_->setText(found ? "Return: the next one" : "no step has this in its name");
        });
        connect(filter_, &QLineEdit::textChanged, this,
                [this](const QString& text) { view_->set_filter(text.toStdString()); });
        view_->selection_changed = [this] { show_selection(); };
        view_->cursor_moved = [this](double ns) { session_.cursor_ns = ns; };
    }

    void show_selection() {
        const auto lanes = view_->lanes();
        const bool path = lanes != nullptr && !view_->path().empty();
        if (path && tabs_->count() == 1) {
            auto* table = new Table;
            table->setObjectName("path");
            table->show(path_rows(*lanes, view_->slack(), view_->path()));
            table->activated_row = [this](int row) {
                const auto at = view_->path()[static_cast<std::size_t>(row)].at;
                view_->select(at);
                view_->focus();
            };
            tabs_->addTab(table, "Critical path");
            tabs_->setCurrentIndex(1);
        } else if (!path && tabs_->count() > 1) {
            delete tabs_->widget(1);
            const QSignalBlocker quiet(path_);
            path_->setChecked(false);
        }
        if (lanes == nullptr) return details_->show({});
        if (view_->selected())
            return tabs_->setTabText(0, "Selection"),
                   details_->show(details_of(*lanes, view_->slack(), *view_->selected()));
        if (view_->area()) return tabs_->setTabText(0, "Area"), details_->show(area_of(*lanes, *view_->area()));
        std::vector<std::size_t> all;
        for (std::size_t l = 0; l < lanes->lanes.size(); ++l) all.push_back(l);
        tabs_->setTabText(0, "All");
        details_->show(area_of(*lanes, {static_cast<double>(lanes->first), static_cast<double>(lanes->last), all}));
    }

    QComboBox *files_, *coloring_;
    QLineEdit *search_, *filter_;
    QCheckBox* path_;
    QLabel* hint_;
    TimelineView* view_;
    Table* details_;
    QTabWidget* tabs_;
    picture::Theme theme_ = picture::Theme::light;
};

}  // namespace

std::unique_ptr<Screen> make_timeline(Session& session) { return std::make_unique<TimelineScreen>(session); }

}  // namespace rehearse::gui
