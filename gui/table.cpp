// SPDX-License-Identifier: Apache-2.0
#include "gui/table.hpp"

#include <fmt/format.h>

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHeaderView>
#include <QKeyEvent>
#include <QMenu>
#include <QSortFilterProxyModel>
#include <utility>

#include "core/quoting.hpp"
#include "core/units.hpp"
#include "gui/theme.hpp"
#include "picture/ticks.hpp"

namespace rehearse::gui {

Value seconds(double s) { return {to_string(Seconds{s}), s}; }
Value bytes(double b) { return {to_string(Bytes{b}), b}; }
Value percent(double share) { return {fmt::format("{:.1f} %", 100 * share), share}; }
Value count(double n) { return {picture::text_of(n, picture::Unit::none), n}; }
Value large(double n) {
    if (n >= 1e6) return count(n);
    return {n >= 1e4 ? fmt::format("{:.4g} k", n / 1e3) : fmt::format("{:.4g}", n), n};
}
Value rate(double per_second, const std::string& unit) {
    if (unit == "FLOP/s") return {to_string(FlopRate{per_second}), per_second};
    if (unit == "B/s") return {to_string(Bandwidth{per_second}), per_second};
    return {fmt::format("{:.5g} {}", per_second, unit), per_second};
}

std::string to_csv(const Rows& rows) {
    std::string csv;
    for (std::size_t c = 0; c < rows.titles.size(); ++c) csv += (c == 0 ? "" : ",") + csv_field(rows.titles[c]);
    csv += '\n';
    for (const auto& row : rows.rows) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            csv += (c == 0 ? "" : ",") + (row[c].number ? fmt::format("{}", *row[c].number) : csv_field(row[c].text));
        }
        csv += '\n';
    }
    return csv;
}

void TableModel::show(Rows rows) {
    beginResetModel();
    rows_ = std::move(rows);
    numeric_.assign(rows_.titles.size(), false), empty_.assign(rows_.titles.size(), true);
    for (std::size_t c = 0; c < numeric_.size(); ++c) {
        bool any = false, all = true;
        for (const auto& row : rows_.rows) {
            if (c >= row.size() || row[c].text.empty()) continue;
            any = true, all = all && row[c].number;
        }
        numeric_[c] = any && all, empty_[c] = !any;
    }
    endResetModel();
}

int TableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.rows.size());
}
int TableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.titles.size());
}

namespace {

QVariant alignment(bool is_numeric) {
    return QVariant((is_numeric ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
}

}  // namespace

QVariant TableModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
    const auto& row = rows_.rows[static_cast<std::size_t>(index.row())];
    if (static_cast<std::size_t>(index.column()) >= row.size()) return {};
    const Value& value = row[static_cast<std::size_t>(index.column())];
    if (role == Qt::DisplayRole || role == Qt::ToolTipRole) return QString::fromStdString(value.text);
    if (role == Qt::UserRole)
        return value.number ? QVariant(*value.number) : QVariant(QString::fromStdString(value.text));
    if (role == Qt::TextAlignmentRole) return alignment(numeric_[static_cast<std::size_t>(index.column())]);
    if (role == Qt::DecorationRole && value.color) return qcolor(*value.color);
    return {};
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
    if (role == Qt::TextAlignmentRole) return alignment(numeric_[static_cast<std::size_t>(section)]);
    if (role != Qt::DisplayRole) return {};
    return QString::fromStdString(rows_.titles[static_cast<std::size_t>(section)]);
}

Table::Table(QWidget* parent)
    : QTableView(parent), model_(new TableModel(this)), sorted_(new QSortFilterProxyModel(this)) {
    sorted_->setSourceModel(model_);
    sorted_->setSortRole(Qt::UserRole);
    sorted_->setFilterKeyColumn(-1);
    sorted_->setFilterCaseSensitivity(Qt::CaseInsensitive);
    setModel(sorted_);
    setSortingEnabled(true);
    sortByColumn(-1, Qt::AscendingOrder);
    setAlternatingRowColors(true);
    setShowGrid(false);
    setSelectionBehavior(SelectRows);
    setEditTriggers(NoEditTriggers);
    setWordWrap(false);
    setIconSize({10, 10});
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(24);
    horizontalHeader()->setStretchLastSection(true);
    horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    connect(this, &QTableView::doubleClicked, this, [this](const QModelIndex& index) {
        if (activated_row) activated_row(sorted_->mapToSource(index).row());
    });
}

void Table::show(Rows rows) {
    model_->show(std::move(rows));
    resizeColumnsToContents();
    bool last_is_numeric = false;
    for (int c = 0; c < model_->columnCount(); ++c) {
        setColumnWidth(c, std::min(columnWidth(c) + 12, 420));
        setColumnHidden(c, model_->is_empty(c));
        if (!model_->is_empty(c)) last_is_numeric = model_->is_numeric(c);
    }
    horizontalHeader()->setStretchLastSection(!last_is_numeric);  // figures stand below each other, not at the far end
}

void Table::currentChanged(const QModelIndex& now, const QModelIndex& before) {
    QTableView::currentChanged(now, before);
    if (now.isValid() && now.row() != before.row() && chosen_row) chosen_row(sorted_->mapToSource(now).row());
}

void Table::filter(const QString& text) { sorted_->setFilterFixedString(text); }

void Table::choose(int row) {
    const auto told = std::exchange(chosen_row, nullptr);
    selectRow(sorted_->mapFromSource(model_->index(row, 0)).row());
    chosen_row = told;
}

void Table::copy() const { QApplication::clipboard()->setText(QString::fromStdString(to_csv(model_->rows()))); }

// All rows, as their order and filter are on screen only.
void Table::keyPressEvent(QKeyEvent* event) {
    event->matches(QKeySequence::Copy) ? copy() : QTableView::keyPressEvent(event);
}

void Table::contextMenuEvent(QContextMenuEvent* event) {
    QMenu menu(this);
    menu.addAction("Copy as CSV\tCtrl+C", [this] { copy(); });
    menu.exec(event->globalPos());
}

}  // namespace rehearse::gui
