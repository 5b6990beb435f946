// SPDX-License-Identifier: Apache-2.0
// One edit of an experiment, which can be undone; and what rehearse is asked after it.
#pragma once

#include <QStringList>
#include <QUndoStack>
#include <functional>
#include <utility>

#include "gui/experiment.hpp"
#include "gui/runner.hpp"

namespace rehearse::gui {

class Change : public QUndoCommand {
public:
    Change(Experiment before, Experiment after, std::function<void(const Experiment&)> put)
        : QUndoCommand("edit"), before_(std::move(before)), after_(std::move(after)), put_(std::move(put)) {}
    void undo() override { put_(before_); }
    void redo() override { put_(after_); }

private:
    Experiment before_, after_;
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
