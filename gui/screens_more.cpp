// SPDX-License-Identifier: Apache-2.0
// The screens that show two things, a machine, or what runs.
#include <QBoxLayout>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QTabWidget>
#include <QTimer>

#include "core/error.hpp"
#include "gui/pages.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "gui/timeline_view.hpp"
#include "models/models.hpp"
#include "picture/topology.hpp"
#include "schedule/orders.hpp"
#include "schedule/plan.hpp"

namespace rehearse::gui {

namespace {

picture::Picture words(picture::Size size, picture::Theme theme, const std::string& text) {
    picture::Picture picture = canvas(size, palette(theme), "");
    picture.marks.push_back({picture::Text{{size.width / 2, size.height / 2}, text, 13, picture::Anchor::middle},
                             palette(theme).faint_text,
                             {},
                             ""});
    return picture;
}

bool has_events(const Document& d) { return d.timeline != nullptr; }

// A pipeline to draw: one that is planned, or a timeline that is open.
class PipelineChoice : public QWidget {
public:
    PipelineChoice(Session& session, const char* strategy, std::function<void()> changed)
        : session_(session), changed_(std::move(changed)) {
        auto* row = new QHBoxLayout(this);
        row->setContentsMargins(0, 0, 0, 0);
        row->addWidget(what_ = new QComboBox);
        what_->setMinimumWidth(220);
        const auto spin = [&](const char* label, int value, int most) {
            auto* box = new QSpinBox;
            box->setRange(1, most);
            box->setValue(value);
            row->addWidget(new QLabel(label));
            row->addWidget(box);
            connect(box, &QSpinBox::valueChanged, this, [this](int) { changed_(); });
            return box;
        };
        stages_ = spin("stages", 4, 64);
        micro_batches_ = spin("micro-batches", 8, 512);
        chunks_ = spin("chunks", 1, 8);
        row->addStretch();
        fill();
        what_->setCurrentIndex(what_->findData(QString(strategy)));
        connect(what_, &QComboBox::activated, this, [this](int) {
            if (what_->currentData().toString() == "interleaved" && chunks_->value() == 1) chunks_->setValue(2);
            changed_();
        });
    }

    void fill() {
        const QVariant before = what_->currentData();
        what_->clear();
        for (const auto& strategy : schedule::pipeline_strategies()) {
            const QString name = QString::fromUtf8(strategy.name.data(), static_cast<qsizetype>(strategy.name.size()));
            what_->addItem("planned: " + name, name);
        }
        for (const int i : session_.with(has_events)) what_->addItem(QString::fromStdString(session_.at(i)->label), i);
        what_->setCurrentIndex(std::max(what_->findData(before), 0));
    }

    void show_document(int i) { what_->setCurrentIndex(std::max(what_->findData(i), 0)); }

    std::optional<picture::PipelineDrawing> drawing() const {
        const QVariant data = what_->currentData();
        const bool planned = data.metaType().id() == QMetaType::QString;
        for (QSpinBox* box : {stages_, micro_batches_, chunks_}) box->setEnabled(planned);
        if (planned)
            return planned_pipeline(data.toString().toStdString(), stages_->value(), micro_batches_->value(),
                                    chunks_->value());
        const Document* document = session_.at(data.toInt());
        if (document == nullptr || document->timeline == nullptr) return std::nullopt;
        return pipeline_of(*document->timeline);
    }

private:
    Session& session_;
    std::function<void()> changed_;
    QComboBox* what_;
    QSpinBox *stages_, *micro_batches_, *chunks_;
};

class Pipeline : public Screen {
public:
    explicit Pipeline(Session& session) : Screen(session), view_(new PictureView) {
        view_->setObjectName("pipeline_picture");
        for (PipelineChoice*& choice : choices_) {
            choice =
                new PipelineChoice(session, &choice == choices_.data() ? "gpipe" : "1f1b", [this] { view_->remake(); });
        }
        auto* tools = new QGridLayout;
        tools->setContentsMargins(8, 6, 8, 0);
        tools->addWidget(choices_[0], 0, 0);
        tools->addWidget(choices_[1], 1, 0);
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addLayout(tools);
        all->addWidget(scrolled(view_));
        view_->show([this](picture::Size size, picture::Theme theme) { return made(size, theme); });
    }
    void refresh() override {
        const Document* document = session_.at(session_.timeline);
        for (PipelineChoice* choice : choices_) choice->fill();
        if (document != nullptr && document->timeline != nullptr && session_.timeline != shown_)
            choices_[1]->show_document(shown_ = session_.timeline);
        view_->remake();
    }
    void set_theme(picture::Theme theme) override { view_->set_theme(theme); }
    picture::Picture picture() const override { return view_->shown(); }

private:
    // On one axis where both have the same unit of time, below each other with their own otherwise.
    picture::Picture made(picture::Size size, picture::Theme theme) const {
        try {
            std::vector<picture::PipelineDrawing> drawings;
            for (const PipelineChoice* choice : choices_) {
                if (auto drawing = choice->drawing()) drawings.push_back(std::move(*drawing));
            }
            if (drawings.empty()) return words(size, theme, "Choose a strategy or a timeline");
            if (drawings.size() == 1 || drawings[0].clock == drawings[1].clock)
                return pipelines_picture(drawings, size.width, theme);
            double height = 0;
            for (const auto& each : drawings) height += height_of(each);
            picture::Picture picture = canvas({size.width, height}, palette(theme), "pipelines");
            double top = 0;
            for (const auto& each : drawings) {
                draw(picture, {0, top, size.width, height_of(each)}, each, time_of(each), theme);
                top += height_of(each);
            }
            return picture;
        } catch (const std::exception& error) {
            return words(size, theme, error.what());
        }
    }
    std::array<PipelineChoice*, 2> choices_{};
    PictureView* view_;
    int shown_ = -1;
};

// Two timelines whose views move together, and what differs.
class Compare : public Screen {
public:
    explicit Compare(Session& session)
        : Screen(session), table_(new Table), waterfall_(new PictureView), verdict_(new QLabel) {
        auto* split = new QSplitter(Qt::Vertical);
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 4);
        for (std::size_t i = 0; i < 2; ++i) {
            files_[i] = new QComboBox;
            files_[i]->setMinimumWidth(240);
            views_[i] = new TimelineView;
            tools->addWidget(new QLabel(i == 0 ? "predicted" : "measured"));
            tools->addWidget(files_[i]);
            split->addWidget(views_[i]);
            connect(files_[i], &QComboBox::activated, this, [this](int) { compare(); });
            views_[i]->view_changed = [this, i] {
                if (following_) return;
                following_ = true;
                views_[1 - i]->set_view(views_[i]->view());
                following_ = false;
            };
        }
        tools->addWidget(verdict_);
        tools->addStretch();
        table_->setObjectName("differences");
        verdict_->setObjectName("compare_verdict");
        auto* tabs = new QTabWidget;
        tabs->setDocumentMode(true);
        tabs->addTab(scrolled(waterfall_), "Waterfall");
        tabs->addTab(table_, "Steps");
        split->addWidget(tabs);
        split->setSizes({220, 220, 330});
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->setSpacing(0);
        all->addLayout(tools);
        all->addWidget(split);
        waterfall_->show([this](picture::Size size, picture::Theme theme) {
            if (!comparison_) return words(size, theme, problem_);
            return waterfall_picture(waterfall_of(*comparison_), size.width, theme);
        });
    }
    void refresh() override {
        const auto with = session_.with(has_events);
        for (std::size_t i = 0; i < 2; ++i) {
            const QVariant before = files_[i]->currentData();
            files_[i]->clear();
            for (const int d : with) files_[i]->addItem(QString::fromStdString(session_.at(d)->label), d);
            int choice = before.isValid() ? files_[i]->findData(before) : -1;
            for (std::size_t d = 0; choice < 0 && d < with.size(); ++d) {
                if (session_.at(with[d])->timeline->measured == (i == 1)) choice = static_cast<int>(d);
            }
            files_[i]->setCurrentIndex(choice);
        }
        compare();
    }
    void set_theme(picture::Theme theme) override {
        for (TimelineView* view : views_) view->set_theme(theme);
        waterfall_->set_theme(theme);
    }
    picture::Picture picture() const override { return waterfall_->shown(); }

private:
    void compare() {
        std::array<const Document*, 2> chosen{};
        for (std::size_t i = 0; i < 2; ++i) {
            chosen[i] = files_[i]->currentData().isValid() ? session_.at(files_[i]->currentData().toInt()) : nullptr;
            const auto lanes = chosen[i] != nullptr ? chosen[i]->lanes : nullptr;
            if (lanes != views_[i]->lanes()) views_[i]->show(lanes);
        }
        comparison_.reset();
        problem_ = "Open a predicted and a measured timeline";
        Rows rows{{"step", "predicted", "measured", "error", "kind"}, {}};
        if (chosen[0] != nullptr && chosen[1] != nullptr) {
            try {
                comparison_ = trace::compare(*chosen[0]->timeline, *chosen[1]->timeline);
            } catch (const std::exception& error) {
                problem_ = error.what();
            }
        }
        verdict_->clear();
        if (comparison_) {
            const auto add = [&](const std::vector<trace::Row>& of, const char* kind) {
                for (const trace::Row& row : of)
                    rows.rows.push_back({{row.name, {}},
                                         seconds(row.predicted.value),
                                         seconds(row.measured.value),
                                         percent(row.error),
                                         {kind, {}}});
            };
            add({comparison_->whole}, "whole step"), add(comparison_->passes, "pass"),
                add(comparison_->layers, "layer"), add(comparison_->steps, "step");
            for (const auto& name : comparison_->only_predicted)
                rows.rows.push_back({{name, {}}, {}, {}, {}, {"only predicted", {}}});
            for (const auto& name : comparison_->only_measured)
                rows.rows.push_back({{name, {}}, {}, {}, {}, {"only measured", {}}});
            verdict_->setText(QString("<b>%1 %</b> off: predicted %2, measured %3")
                                  .arg(100 * comparison_->whole.error, 0, 'f', 1)
                                  .arg(QString::fromStdString(to_string(comparison_->whole.predicted)),
                                       QString::fromStdString(to_string(comparison_->whole.measured))));
        }
        table_->show(std::move(rows));
        waterfall_->remake();
    }
    std::array<QComboBox*, 2> files_{};
    std::array<TimelineView*, 2> views_{};
    Table* table_;
    PictureView* waterfall_;
    QLabel* verdict_;
    std::optional<trace::Comparison> comparison_;
    std::string problem_;
    bool following_ = false;
};

class Topology : public Screen {
public:
    explicit Topology(Session& session)
        : Screen(session), machines_(new QComboBox), view_(new PictureView), traffic_(new PictureView) {
        for (const auto& each : models::machines()) machines_->addItem(QString::fromStdString(each.name));
        machines_->setCurrentText(QString::fromStdString(session.experiment.machine));
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 0);
        tools->addWidget(machines_);
        tools->addStretch();
        auto* tabs = new QTabWidget;
        tabs->setDocumentMode(true);
        tabs->addTab(scrolled(view_), "Machine");
        tabs->addTab(scrolled(traffic_), "Traffic between ranks");
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addLayout(tools);
        all->addWidget(tabs);
        connect(machines_, &QComboBox::currentTextChanged, this, [this](const QString&) { view_->remake(); });
        view_->show([this](picture::Size size, picture::Theme theme) {
            try {
                return topology_picture(models::load_machine(machines_->currentText().toStdString()), {}, size.width,
                                        theme);
            } catch (const std::exception& error) {
                return words(size, theme, error.what());
            }
        });
        traffic_->show([this](picture::Size size, picture::Theme theme) { return traffic(size, theme); });
    }
    void refresh() override {
        if (const Document* document = session_.at(session_.prediction))
            machines_->setCurrentText(QString::fromStdString(document->prediction->machine));
        traffic_->remake();
    }
    void set_theme(picture::Theme theme) override { view_->set_theme(theme), traffic_->set_theme(theme); }
    picture::Picture picture() const override { return view_->shown(); }

private:
    // Of the largest point of the experiment that is small enough to be drawn.
    picture::Picture traffic(picture::Size size, picture::Theme theme) const {
        try {
            std::int64_t devices = 0;
            for (const std::int64_t n : devices_of(session_.experiment)) devices = n <= 96 ? n : devices;
            if (devices == 0) throw InputError("the experiment has no point of at most 96 devices");
            const Machine machine = models::load_machine(session_.experiment.machine);
            schedule::Job job;
            job.devices = devices;
            job.batch_per_device = session_.experiment.batch;
            const Schedule schedule = make_schedule(models::load_network(session_.experiment.model), machine,
                                                    schedule::parse_plan(session_.experiment.plan), job);
            return traffic_picture(traffic_of(schedule, machine), machine, size, theme);
        } catch (const std::exception& error) {
            return words(size, theme, error.what());
        }
    }
    QComboBox* machines_;
    PictureView *view_, *traffic_;
};

class Runs : public Screen {
public:
    explicit Runs(Session& session)
        : Screen(session), table_(new Table), log_(new QPlainTextEdit), cancel_(new QPushButton("Cancel")) {
        table_->setObjectName("runs");
        log_->setReadOnly(true);
        log_->setLineWrapMode(QPlainTextEdit::NoWrap);
        cancel_->setObjectName("cancel");
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 4);
        tools->addWidget(cancel_);
        tools->addStretch();
        auto* split = new QSplitter(Qt::Vertical);
        split->addWidget(table_);
        split->addWidget(log_);
        split->setSizes({400, 260});
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->setSpacing(0);
        all->addLayout(tools);
        all->addWidget(split);
        connect(cancel_, &QPushButton::clicked, this, [this] {
            if (const auto* job = chosen()) session_.runner->cancel(job->id);
        });
        connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) {
            chosen_ = index.siblingAtColumn(0).data(Qt::UserRole).toInt();
            refresh();
        });
        clock_.setInterval(500);
        connect(&clock_, &QTimer::timeout, this, [this] { refresh(); });
        session.runner->changed = [this] { refresh(); };
    }
    ~Runs() override { session_.runner->changed = nullptr; }
    void refresh() override {
        table_->show(session_.runner->rows());
        const auto* job = chosen();
        const QString text = job == nullptr ? QString() : job->command + "\n\n" + job->log;
        if (log_->toPlainText() != text) log_->setPlainText(text);
        cancel_->setEnabled(job != nullptr && job->process != nullptr);
        bool any = false;
        for (const auto& each : session_.runner->jobs()) any = any || each->process != nullptr;
        any ? clock_.start() : clock_.stop();
    }
    void set_theme(picture::Theme) override {}

private:
    // The one that was clicked, else the last.
    const Runner::Job* chosen() const {
        const auto& jobs = session_.runner->jobs();
        for (const auto& job : jobs) {
            if (job->id == chosen_) return job.get();
        }
        return jobs.empty() ? nullptr : jobs.back().get();
    }
    Table* table_;
    QPlainTextEdit* log_;
    QPushButton* cancel_;
    QTimer clock_;
    int chosen_ = -1;
};

}  // namespace

std::unique_ptr<Screen> make_pipeline(Session& session) { return std::make_unique<Pipeline>(session); }
std::unique_ptr<Screen> make_compare(Session& session) { return std::make_unique<Compare>(session); }
std::unique_ptr<Screen> make_topology(Session& session) { return std::make_unique<Topology>(session); }
std::unique_ptr<Screen> make_runs(Session& session) { return std::make_unique<Runs>(session); }

}  // namespace rehearse::gui
