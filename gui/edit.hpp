// SPDX-License-Identifier: Apache-2.0
// One edit of an experiment, which can be undone; and what rehearse is asked after it.
#pragma once

#include <QStringList>
#include <QUndoStack>
#include <bit>
#include <functional>
#include <utility>

#include "gui/experiment.hpp"
#include "gui/runner.hpp"

namespace rehearse::gui {

/// The fields in which two experiments differ, a bit each.
inline unsigned changed_fields(const Experiment& a, const Experiment& b) {
    unsigned fields = a.batch != b.batch ? 1U : 0U;
    unsigned bit = 2;
    for (const auto field : {&Experiment::model, &Experiment::machine, &Experiment::plan, &Experiment::precision,
                             &Experiment::optimizer, &Experiment::devices}) {
        if (a.*field != b.*field) fields |= bit;
        bit *= 2;
    }
    return fields;
}

/// What was typed into one field, from when it was entered until it was left (`visit`), is one change.
class Change : public QUndoCommand {
public:
    Change(Experiment before, Experiment after, int visit, std::function<void(const Experiment&)> put)
        : QUndoCommand("edit"),
          before_(std::move(before)),
          after_(std::move(after)),
          visit_(visit),
          put_(std::move(put)) {}
    void undo() override { put_(before_); }
    void redo() override { put_(after_); }
    int id() const override { return 1; }
    bool mergeWith(const QUndoCommand* next) override {
        const auto& later = static_cast<const Change&>(*next);
        const unsigned field = changed_fields(before_, after_);
        const bool one_field = std::has_single_bit(field) && field == changed_fields(later.before_, later.after_);
        if (!one_field || visit_ != later.visit_) return false;
        after_ = later.after_;
        setObsolete(after_ == before_);
        return true;
    }

private:
    Experiment before_, after_;
    int visit_;
    std::function<void(const Experiment&)> put_;
};

inline QStringList arguments_of(const Experiment& experiment, const std::string& devices = {}) {
    QStringList list;
    for (const std::string& word : arguments(experiment, devices)) list << QString::fromStdString(word);
    return list << "--format"
                << "json"
                << "-q";
}

constexpr int wrong_input = 2, does_not_fit = 4;  // exit codes of rehearse

inline bool has_prediction(const Runner::Result& result) {
    return result.good || (result.exit_code == does_not_fit && !result.out.isEmpty());
}

/// The smallest and the largest: the first answer.
inline std::string ends_of(const Experiment& experiment) {
    const auto numbers = devices_of(experiment);
    std::string ends = std::to_string(numbers.front());
    if (numbers.size() > 1) ends.append(",").append(std::to_string(numbers.back()));
    return ends;
}

}  // namespace rehearse::gui
