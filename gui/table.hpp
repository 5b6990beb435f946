// SPDX-License-Identifier: Apache-2.0
// Rows on screen: sorted by value, filtered by text, copied as CSV.
#pragma once

#include <QAbstractTableModel>
#include <QTableView>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "picture/picture.hpp"

class QSortFilterProxyModel;

namespace rehearse::gui {

/// A text, or a number with how it is shown.
struct Value {
    std::string text = {};
    std::optional<double> number = {};         // sorts, and goes to CSV, in base units
    std::optional<picture::Color> color = {};  // of a square before it
};
Value seconds(double s);
Value bytes(double b);
Value percent(double share);
Value count(double n);
Value large(double n);  // four digits and k, M, G
Value rate(double per_second, const std::string& unit);

struct Rows {
    std::vector<std::string> titles;
    std::vector<std::vector<Value>> rows;
};
/// RFC 4180, numbers in base units.
std::string to_csv(const Rows& rows);

class TableModel : public QAbstractTableModel {
public:
    using QAbstractTableModel::QAbstractTableModel;
    void show(Rows rows);
    const Rows& rows() const { return rows_; }
    bool is_numeric(int column) const { return numeric_[static_cast<std::size_t>(column)]; }
    /// Of a table with rows.
    bool is_empty(int column) const { return empty_[static_cast<std::size_t>(column)] && !rows_.rows.empty(); }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    Rows rows_;
    std::vector<bool> numeric_, empty_;  // columns in which nothing else than numbers stands, or nothing
};

class Table : public QTableView {
public:
    explicit Table(QWidget* parent = nullptr);
    /// A column in which nothing stands is hidden.
    void show(Rows rows);
    void filter(const QString& text);
    void choose(int row);  // of the rows as they were given; chosen_row is not called
    void copy() const;     // as CSV
    const TableModel& model_of_rows() const { return *model_; }

    std::function<void(int)> activated_row;  // by a double click; of the rows as they were given
    std::function<void(int)> chosen_row;     // by a click or an arrow key

protected:
    void currentChanged(const QModelIndex& now, const QModelIndex& before) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    TableModel* model_;
    QSortFilterProxyModel* sorted_;
};

}  // namespace rehearse::gui
