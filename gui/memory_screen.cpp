// SPDX-License-Identifier: Apache-2.0
// What a device holds: by kind against its capacity, in figures, and over time.
#include <fmt/format.h>

#include <QBoxLayout>
#include <QSplitter>
#include <QTabWidget>
#include <algorithm>

#include "core/error.hpp"
#include "gui/pages.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "gui/table.hpp"

namespace rehearse::gui {

namespace {

// A row a kind, a column a class of ranks, their sums at the end.
Rows rows_of(const std::vector<MemoryPart>& parts) {
    Rows rows{{"kind"}, {}};
    std::vector<double> sums{0};
    for (const MemoryPart& part : parts) {
        if (part.kind == "total") continue;
        auto title = std::ranges::find(rows.titles, part.rank_class);
        if (title == rows.titles.end()) title = rows.titles.insert(title, part.rank_class), sums.push_back(0);
        const auto column = static_cast<std::size_t>(title - rows.titles.begin());
        auto row = std::ranges::find(rows.rows, part.kind, [](const auto& r) { return r[0].text; });
        if (row == rows.rows.end()) row = rows.rows.insert(row, {Value{part.kind}});
        if (row->size() <= column) row->resize(column + 1);
        (*row)[column] = bytes(part.bytes.value);
        sums[column] += part.bytes.value;
    }
    if (rows.rows.empty()) return {};
    auto& all = rows.rows.emplace_back();
    all.push_back({"all"});
    for (std::size_t c = 1; c < sums.size(); ++c) all.push_back(bytes(sums[c]));
    std::ranges::replace(rows.titles, std::string{"all"}, std::string{"every rank"});
    return rows;
}

class Memory : public Screen {
public:
    explicit Memory(Session& session)
        : Screen(session), view_(new PictureView), time_(new PictureView), table_(new Table) {
        view_->setObjectName("memory_picture");
        time_->setObjectName("memory_over_time");
        table_->setObjectName("memory_table");
        auto* split = new QSplitter(Qt::Vertical);
        split->addWidget(scrolled(view_));
        split->addWidget(table_);
        split->setSizes({320, 400});
        auto* tabs = new QTabWidget;
        tabs->setDocumentMode(true);
        tabs->setObjectName("memory_tabs");
        tabs->addTab(split, "By kind");
        tabs->addTab(scrolled(time_), "Over time");
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addWidget(tabs);
        view_->show(careful([this](picture::Size size, picture::Theme theme) {
            const Prediction* prediction = session_.current_prediction();
            if (prediction == nullptr || prediction->memory.empty())
                throw InputError("Open a prediction made with --memory, or predict an experiment");
            return memory_picture(prediction->memory, prediction->points.back().memory.capacity.value,
                                  fmt::format("Memory of a device: {} on {}, {}", prediction->model,
                                              prediction->machine, prediction->plan),
                                  size.width, theme);
        }));
        time_->show(careful([this](picture::Size size, picture::Theme theme) {
            const Document* document = session_.at(session_.timeline);
            if (document == nullptr) throw InputError("Open a timeline with counters of memory");
            return memory_over_time(*document->lanes, size, theme);
        }));
    }
    void refresh() override {
        const Prediction* prediction = session_.current_prediction();
        table_->show(prediction != nullptr ? rows_of(prediction->memory) : Rows{});
        table_->setVisible(prediction != nullptr && !prediction->memory.empty());
        view_->remake(), time_->remake();
    }
    void set_theme(picture::Theme theme) override { view_->set_theme(theme), time_->set_theme(theme); }
    picture::Picture picture() const override { return view_->shown(); }

private:
    PictureView *view_, *time_;
    Table* table_;
};

}  // namespace

std::unique_ptr<Screen> make_memory(Session& session) { return std::make_unique<Memory>(session); }

}  // namespace rehearse::gui
