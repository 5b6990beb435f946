// SPDX-License-Identifier: Apache-2.0
// The fields of an experiment, and what can be written into them.
#pragma once

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

/// The words of a plan and what each does; a click on an axis shows its options.
QWidget* plan_help();

}  // namespace rehearse::gui
