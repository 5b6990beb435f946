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
#include <set>

#include "gui/session.hpp"
#include "gui/theme.hpp"
#include "gui/timeline_tables.hpp"
#include "gui/timeline_view.hpp"
#include "picture/raster.hpp"
#include "picture/timeline_picture.hpp"

namespace rehearse::gui {

namespace {

class TimelineScreen : public Screen {
public:
    explicit TimelineScreen(Session& session) : Screen(session) {
        files_ = new QComboBox;
        files_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
        files_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
        files_->setMinimumWidth(110);  // its name is cut only where there is no room for it
        files_->setObjectName("timeline_file");
        coloring_ = new QComboBox;
        coloring_->setObjectName("timeline_coloring");
        coloring_->addItems({"coloured by activity", "heat: waiting", "heat: network"});
        search_ = new QLineEdit;
        search_->setObjectName("search");
        search_->setPlaceholderText("Search steps  ( / )");
        search_->setClearButtonEnabled(true);
        filter_ = new QLineEdit;
        filter_->setObjectName("filter");
        filter_->setPlaceholderText("Only ranks with…");
        path_ = new QCheckBox("Critical path");
        hint_ = new QLabel("drag: statistics · ?: keys");
        hint_->setEnabled(false);
        hint_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        hint_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // the first to go where there is no room
        for (QLineEdit* field : {search_, filter_}) field->setMinimumWidth(64), field->setMaximumWidth(170);
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 4);
        tools->setSpacing(10);
        for (QWidget* widget : std::initializer_list<QWidget*>{files_, coloring_, path_, search_, filter_})
            tools->addWidget(widget);
        tools->addWidget(hint_, 1);
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
        legend_ = new QLabel;
        legend_->setObjectName("legend");
        legend_->setContentsMargins(10, 0, 8, 4);
        legend_->setWordWrap(true);  // or seven colours would make the window wider than 800 pixels
        all->addLayout(tools);
        all->addWidget(legend_);
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
        show_legend();
    }

    void set_theme(picture::Theme theme) override {
        theme_ = theme;
        view_->set_theme(theme);
        show_legend();
        show_selection();
    }

    picture::Picture picture() const override {
        if (view_->lanes() == nullptr) return {};
        picture::TimelineView shown;
        shown.time = view_->view();
        shown.coloring = static_cast<picture::Coloring>(coloring_->currentIndex());
        for (const TimelineRow& row : view_->rows()) {
            const std::string name = row.is_child ? name_of_rank(*view_->lanes(), row.rank) + " " + row.name : row.name;
            shown.rows.push_back({row.ranks, name});
        }
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
                [this](int i) { view_->set_coloring(static_cast<picture::Coloring>(i)), show_legend(); });
        connect(path_, &QCheckBox::toggled, this, [this](bool on) { view_->set_critical_path(on); });
        connect(search_, &QLineEdit::returnPressed, this, [this] {
            const bool found = view_->find_next(search_->text().toStdString());
            hint_->setText(found ? "Return: the next one" : "no step has this in its name");
        });
        connect(filter_, &QLineEdit::textChanged, this,
                [this](const QString& text) { view_->set_filter(text.toStdString()); });
        view_->selection_changed = [this] { show_selection(); };
        view_->cursor_moved = [this](double ns) {
            session_.cursor_ns = ns;
            if (session_.cursor_moved) session_.cursor_moved();
        };
    }

    // The colours of what is there, or of shares.
    void show_legend() {
        const auto lanes = view_->lanes();
        const auto coloring = static_cast<picture::Coloring>(coloring_->currentIndex());
        QString text;
        const auto add = [&](picture::Color color, const std::string& name) {
            text += QString("<span style='color:%1'>■</span>&nbsp;%2 &nbsp; ")
                        .arg(qcolor(color).name(), QString::fromStdString(name).replace(' ', QChar::Nbsp));
        };
        if (lanes != nullptr && coloring == picture::Coloring::activity) {
            std::set<picture::Activity> found;
            for (const picture::What& what : lanes->whats) found.insert(what.activity);
            for (const picture::Activity a : found) add(color_of(a, theme_), std::string{to_string(a)});
            add(picture::idle_color(theme_), "nothing");
        } else if (lanes != nullptr) {
            for (const int percent : {0, 25, 50, 75, 100})
                add(picture::heat(percent / 100.0, theme_), fmt::format("{} %", percent));
            text += coloring == picture::Coloring::waiting ? "of the time not computing" : "of the time communicating";
        }
        legend_->setText(text);
        legend_->setVisible(!text.isEmpty());
    }

    void show_selection() {
        const auto lanes = view_->lanes();
        {
            const QSignalBlocker quiet(path_);
            path_->setChecked(view_->shows_path());
        }
        const bool path = lanes != nullptr && !view_->path().empty();
        if (path && tabs_->count() == 1) {
            auto* table = new Table;
            table->setObjectName("path");
            table->setAccessibleName("Critical path");
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
        if (view_->area())
            return tabs_->setTabText(0, "Area: " + QString::fromStdString(view_->extent())),
                   details_->show(area_of(*lanes, *view_->area(), theme_));
        std::vector<std::size_t> all;
        for (std::size_t l = 0; l < lanes->lanes.size(); ++l) all.push_back(l);
        tabs_->setTabText(0, "All");
        details_->show(
            area_of(*lanes, {static_cast<double>(lanes->first), static_cast<double>(lanes->last), all}, theme_));
    }

    QComboBox *files_, *coloring_;
    QLineEdit *search_, *filter_;
    QCheckBox* path_;
    QLabel *hint_, *legend_;
    TimelineView* view_;
    Table* details_;
    QTabWidget* tabs_;
    picture::Theme theme_ = picture::Theme::light;
};

}  // namespace

std::unique_ptr<Screen> make_timeline(Session& session) { return std::make_unique<TimelineScreen>(session); }

}  // namespace rehearse::gui
