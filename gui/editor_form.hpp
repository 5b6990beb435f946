// SPDX-License-Identifier: Apache-2.0
// The fields of an experiment, and what can be written into them.
#pragma once

#include <QLabel>
#include <QWidget>
#include <functional>

#include "gui/experiment.hpp"

class QComboBox;
class QFormLayout;
class QLineEdit;
class QSpinBox;

namespace rehearse::gui {

class ExperimentForm : public QWidget {
public:
    explicit ExperimentForm(QWidget* parent = nullptr);
    void put(const Experiment& experiment);  // without a call of `edited`
    Experiment experiment() const;

    std::function<void()> edited;
    std::function<void()> left;              // a field has lost the focus
    std::function<void(bool undo)> history;  // undo, else redo, was pressed in a field

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QComboBox* combo(QFormLayout* form, const char* name, const char* label, std::string Experiment::*field,
                     bool editable);
    void line(QFormLayout* form, const char* name, const char* label, std::string Experiment::*field);
    void changed();

    std::vector<std::pair<QComboBox*, std::string Experiment::*>> combos_;
    std::vector<std::pair<QLineEdit*, std::string Experiment::*>> lines_;
    QSpinBox* batch_ = nullptr;
    bool putting_ = true;  // until all fields are there
};

/// What a check found, in a room of one height: what stands below it does not move when it gets longer.
class Verdict : public QLabel {
public:
    Verdict();
    /// `remedies`: of what does not fit; `remarks`: of a prediction, a line each. Both may be empty.
    void say(const Check& check, const QString& remedies, const QString& remarks);
    /// The verdict in a scroll area, to be put into a layout.
    QWidget* room();
};

/// The words of a plan and what each does; a click on an axis shows its options.
QWidget* plan_help();

}  // namespace rehearse::gui
