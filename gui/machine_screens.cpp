// SPDX-License-Identifier: Apache-2.0
// A machine and its traffic; and the runs of this window.
#include <QBoxLayout>
#include <QComboBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QTimer>

#include "core/error.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "models/models.hpp"
#include "picture/topology.hpp"
#include "schedule/plan.hpp"

namespace rehearse::gui {

namespace {

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
                return note(size, theme, error.what());
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
            return traffic_picture(picture::traffic_of(schedule, machine), machine, size, theme);
        } catch (const std::exception& error) {
            return note(size, theme, error.what());
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

std::unique_ptr<Screen> make_topology(Session& session) { return std::make_unique<Topology>(session); }
std::unique_ptr<Screen> make_runs(Session& session) { return std::make_unique<Runs>(session); }

}  // namespace rehearse::gui
