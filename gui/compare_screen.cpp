// SPDX-License-Identifier: Apache-2.0
// A predicted timeline above a measured one, and what differs.
#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QSplitter>
#include <QTabWidget>
#include <cmath>

#include "gui/background.hpp"
#include "gui/pages.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "gui/timeline_view.hpp"

namespace rehearse::gui {

namespace {

bool has_events(const Document& d) { return d.timeline != nullptr; }

constexpr const char* choose = "Open a predicted and a measured timeline";
using Pair = std::array<Document, 2>;  // predicted, measured; of none, nothing is set

bool same(const Pair& a, const Pair& b) { return a[0].timeline == b[0].timeline && a[1].timeline == b[1].timeline; }

struct Compared {
    std::optional<trace::Comparison> comparison;
    std::string problem;
};

Compared compared(const Pair& chosen) {
    try {
        return {trace::compare(*chosen[0].timeline, *chosen[1].timeline), {}};
    } catch (const std::exception& error) {
        return {{}, error.what()};
    }
}

void add(Rows& rows, const std::vector<trace::Row>& of, const char* kind) {
    for (const trace::Row& row : of)
        rows.rows.push_back({{row.name, {}},
                             seconds(row.predicted.value),
                             seconds(row.measured.value),
                             percent(row.error),
                             {kind, {}}});
}

// Two timelines whose views move together, and what differs.
class Compare : public Screen {
public:
    explicit Compare(Session& session)
        : Screen(session),
          table_(new Table),
          waterfall_(new PictureView),
          differences_(new PictureView),
          verdict_(new QLabel) {
        auto* split = new QSplitter(Qt::Vertical);
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 4);
        tools->setSpacing(8);
        for (std::size_t i = 0; i < 2; ++i) {
            files_[i] = new QComboBox;
            files_[i]->setMinimumWidth(80);
            files_[i]->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
            files_[i]->setObjectName(QString("compare_%1").arg(i));
            views_[i] = new TimelineView;
            views_[i]->setObjectName(i == 0 ? "compare_predicted" : "compare_measured");
            tools->addWidget(new QLabel(i == 0 ? "predicted" : "measured"));
            tools->addWidget(files_[i], 1);
            tools->addSpacing(12);
            split->addWidget(views_[i]);
            connect(files_[i], &QComboBox::activated, this, [this](int) { compare(); });
            views_[i]->view_changed = [this, i] { follow(i); };
        }
        table_->setObjectName("differences");
        waterfall_->setObjectName("waterfall_picture");
        verdict_->setObjectName("compare_verdict");
        auto* tabs = new QTabWidget;
        tabs->setObjectName("compare_tabs");
        tabs->setDocumentMode(true);
        tabs->addTab(scrolled(waterfall_), "Waterfall");
        tabs->addTab(table_, "Steps");
        tabs->addTab(scrolled(differences_), "Difference map");
        split->addWidget(tabs);
        split->setSizes({185, 185, 370});
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->setSpacing(0);
        all->addLayout(tools);
        verdict_->setContentsMargins(8, 0, 8, 4);
        verdict_->setWordWrap(true);
        all->addWidget(verdict_);
        all->addWidget(split, 1);
        waterfall_->show([this](picture::Size size, picture::Theme theme) {
            if (!comparison_) return note(size, theme, problem_);
            return waterfall_picture(waterfall_of(*comparison_), size.width, theme);
        });
        differences_->setObjectName("differences_picture");
        differences_->show([this](picture::Size size, picture::Theme theme) {
            return comparison_ ? differences_picture(*comparison_, theme) : note(size, theme, problem_);
        });
        differences_->clicked = [this](const picture::Mark& mark) {
            show_step(mark.title.substr(0, mark.title.find(" : ")));
        };
        table_->chosen_row = [this](int row) {
            show_step(table_->model_of_rows().rows().rows[static_cast<std::size_t>(row)][0].text);
        };
    }
    ~Compare() override { *alive_ = false; }
    void refresh() override {
        if (!isVisible()) return;  // done when it is shown: comparing takes time
        const auto with = session_.with(has_events);
        for (std::size_t i = 0; i < 2; ++i) {
            const QVariant before = files_[i]->currentData();
            files_[i]->clear();
            for (const int d : with)
                files_[i]->addItem(QString::fromStdString(session_.at(d)->label), session_.at(d)->id);
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
        waterfall_->set_theme(theme), differences_->set_theme(theme);
    }
    picture::Picture picture() const override { return waterfall_->shown(); }

private:
    // The other one at the same place of its own iteration.
    void follow(std::size_t i) {
        if (following_) return;
        following_ = true;
        const double by = begin_[1 - i] - begin_[i];
        const picture::TimeView view = views_[i]->view();
        views_[1 - i]->set_view({view.from + by, view.to + by});
        following_ = false;
    }

    // Both on one axis on which their iterations in the middle, the ones behind the figures, begin together. These are
    // shown at first; before they are known, each from its start.
    void share_axis(const Pair& chosen) {
        picture::TimeView limits{1e300, -1e300};
        double step = 0;
        for (std::size_t i = 0; i < 2; ++i) {
            const Document& document = chosen[i];
            const auto first = static_cast<double>(document.lanes->first);
            begin_[i] = first;
            if (comparison_) begin_[i] = 1e9 * (i == 0 ? comparison_->predicted : comparison_->measured).start.value;
            limits.from = std::min(limits.from, first - begin_[i]);
            limits.to = std::max(limits.to, static_cast<double>(document.lanes->last) - begin_[i]);
            step = std::max(step, document.summary->step.value * 1e9);
        }
        following_ = true;
        for (std::size_t i = 0; i < 2; ++i) views_[i]->set_limits({limits.from + begin_[i], limits.to + begin_[i]});
        following_ = false;
        views_[0]->set_view({begin_[0] - 0.01 * step, begin_[0] + 1.15 * step});
    }

    // The comparison of what is chosen, in a thread of its own unless it is shown already.
    void compare() {
        Pair chosen;
        for (std::size_t i = 0; i < 2; ++i) {
            const QVariant choice = files_[i]->currentData();
            if (const Document* document = choice.isValid() ? session_.with_id(choice.toInt()) : nullptr)
                chosen[i] = *document;
            if (chosen[i].lanes != views_[i]->lanes()) views_[i]->show(chosen[i].lanes);
        }
        if (same(chosen, chosen_)) return;
        chosen_ = chosen;
        comparison_.reset();
        problem_ = choose;
        if (chosen[0].timeline != nullptr && chosen[1].timeline != nullptr) {
            share_axis(chosen);
            problem_ = "comparing…";
            in_background(
                alive_, [chosen] { return compared(chosen); },
                [this, chosen](Compared result) {
                    if (!same(chosen, chosen_)) return;
                    comparison_ = std::move(result.comparison);
                    problem_ = std::move(result.problem);
                    if (comparison_) share_axis(chosen);
                    show_comparison();
                });
        }
        show_comparison();
    }

    void show_comparison() {
        Rows rows{{"step", "predicted", "measured", "error", "kind"}, {}};
        verdict_->clear();
        if (comparison_) {
            add(rows, {comparison_->whole}, "whole step"), add(rows, comparison_->passes, "pass"),
                add(rows, comparison_->layers, "layer"), add(rows, comparison_->steps, "step");
            for (const auto& name : comparison_->only_predicted)
                rows.rows.push_back({{name, {}}, {}, {}, {}, {"only predicted", {}}});
            for (const auto& name : comparison_->only_measured)
                rows.rows.push_back({{name, {}}, {}, {}, {}, {"only measured", {}}});
            verdict_->setText(QString("<b>%1 %</b> off: predicted %2, measured %3<br><small>%4</small>")
                                  .arg(100 * comparison_->whole.error, 0, 'f', 1)
                                  .arg(QString::fromStdString(to_string(comparison_->whole.predicted)),
                                       QString::fromStdString(to_string(comparison_->whole.measured)),
                                       QString::fromStdString(text_of_iterations(*comparison_))));
            verdict_->setToolTip(trace::statistic);
        }
        table_->show(std::move(rows));
        waterfall_->remake(), differences_->remake();
    }

    // The matched step of the iteration in the middle, selected in both, and both in sight.
    void show_step(const std::string& step) {
        picture::TimeView both{1e300, -1e300};
        for (std::size_t i = 0; i < 2; ++i) {
            const auto& lanes = views_[i]->lanes();
            if (lanes == nullptr) continue;
            const auto found = views_[i]->find_step(step, std::floor(begin_[i]) - 1);
            if (!found) continue;
            const picture::Lane& lane = lanes->lanes[found->lane];
            const double by = begin_[0] - begin_[i];
            both.from = std::min(both.from, static_cast<double>(lane.start(found->event)) + by);
            both.to = std::max(both.to, static_cast<double>(lane.end(found->event)) + by);
        }
        if (both.from > both.to) return;  // a pass or a layer
        const double margin = 3 * (both.to - both.from) + 100;
        views_[0]->set_view({both.from - margin, both.to + margin});
    }

    std::array<QComboBox*, 2> files_{};
    std::array<TimelineView*, 2> views_{};
    Table* table_;
    PictureView *waterfall_, *differences_;
    QLabel* verdict_;
    std::optional<trace::Comparison> comparison_;
    std::string problem_ = choose;
    Pair chosen_;
    bool following_ = false;
    std::array<double, 2> begin_{};  // ns: of the iteration that is shown
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Screen> make_compare(Session& session) { return std::make_unique<Compare>(session); }

}  // namespace rehearse::gui
