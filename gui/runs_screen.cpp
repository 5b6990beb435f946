// SPDX-License-Identifier: Apache-2.0
// The work of this window: what runs or ran, its log, and its end.
#include <QBoxLayout>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QTextOption>
#include <QTimer>
#include <algorithm>

#include "gui/session.hpp"

namespace rehearse::gui {

namespace {

class Runs : public Screen {
public:
    explicit Runs(Session& session)
        : Screen(session), table_(new Table), log_(new QPlainTextEdit), cancel_(new QPushButton("Cancel")) {
        table_->setObjectName("runs_table");
        log_->setObjectName("log");
        log_->setReadOnly(true);
        log_->setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
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
        table_->chosen_row = [this](int row) {
            chosen_ = session_.runner->jobs()[static_cast<std::size_t>(row)]->id;
            show_chosen();  // the table stays as it is while it is clicked
        };
        clock_.setInterval(500);
        connect(&clock_, &QTimer::timeout, this, [this] { refresh(); });
        session.runner->changed = [this] { refresh(); };
    }
    ~Runs() override { session_.runner->changed = nullptr; }
    void refresh() override {
        table_->show(session_.runner->rows());
        const auto& jobs = session_.runner->jobs();
        const auto row = std::ranges::find(jobs, chosen(), [](const auto& each) { return each.get(); }) - jobs.begin();
        if (!jobs.empty()) table_->choose(static_cast<int>(row));
        show_chosen();
        bool any = false;
        for (const auto& each : jobs) any = any || each->process != nullptr;
        any ? clock_.start() : clock_.stop();
    }
    void set_theme(picture::Theme) override {}

private:
    void show_chosen() {
        const auto* job = chosen();
        const QString text = job == nullptr ? QString() : job->command + "\n\n" + job->log;
        if (log_->toPlainText() != text) log_->setPlainText(text);
        cancel_->setEnabled(job != nullptr && job->process != nullptr);
    }

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

std::unique_ptr<Screen> make_runs(Session& session) { return std::make_unique<Runs>(session); }

}  // namespace rehearse::gui
