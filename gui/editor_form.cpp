// SPDX-License-Identifier: Apache-2.0
#include "gui/editor_form.hpp"

#include <QComboBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QSpinBox>

#include "models/models.hpp"

namespace rehearse::gui {

namespace {

QString text_of(std::string_view s) { return QString::fromUtf8(s.data(), static_cast<qsizetype>(s.size())); }

}  // namespace

ExperimentForm::ExperimentForm(QWidget* parent) : QWidget(parent) {
    auto* form = new QFormLayout(this);
    form->setContentsMargins(0, 0, 0, 0);
    form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
    auto* models = combo(form, "model", "Network", &Experiment::model, true);
    for (const auto& model : models::zoo()) models->addItem(text_of(model.name));
    auto* machines = combo(form, "machine", "Machine", &Experiment::machine, true);
    for (const auto& each : models::machines()) machines->addItem(QString::fromStdString(each.name));
    combo(form, "precision", "Precision", &Experiment::precision, false)->addItems({"fp32", "fp16", "bf16", "mixed"});
    combo(form, "optimizer", "Optimizer", &Experiment::optimizer, false)->addItems({"sgd", "adam", "lamb"});
    line(form, "plan", "Plan", &Experiment::plan);
    line(form, "devices", "Devices", &Experiment::devices);
    batch_ = new QSpinBox;
    batch_->setObjectName("batch");
    batch_->setRange(1, 1'000'000);
    batch_->setToolTip(
        "Samples in a step of one copy of the network: of a device, or of those that share a copy along tensor, pipe "
        "or "
        "spatial axes");
    form->addRow("Batch a copy", batch_);
    connect(batch_, &QSpinBox::valueChanged, this, [this](int) { changed(); });
    putting_ = false;
}

QComboBox* ExperimentForm::combo(QFormLayout* form, const char* name, const char* label, std::string Experiment::*field,
                                 bool editable) {
    auto* widget = new QComboBox;
    widget->setObjectName(name);
    widget->setEditable(editable);
    widget->setInsertPolicy(QComboBox::NoInsert);
    widget->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    form->addRow(label, widget);
    combos_.emplace_back(widget, field);
    connect(widget, &QComboBox::currentTextChanged, this, [this](const QString&) { changed(); });
    return widget;
}

void ExperimentForm::line(QFormLayout* form, const char* name, const char* label, std::string Experiment::*field) {
    auto* widget = new QLineEdit;
    widget->setObjectName(name);
    form->addRow(label, widget);
    lines_.emplace_back(widget, field);
    connect(widget, &QLineEdit::textChanged, this, [this](const QString&) { changed(); });
}

void ExperimentForm::changed() {
    if (!putting_ && edited) edited();
}

void ExperimentForm::put(const Experiment& experiment) {
    putting_ = true;
    for (const auto& [widget, field] : combos_) {
        const QString text = QString::fromStdString(experiment.*field);
        if (widget->currentText() == text) continue;
        widget->isEditable() ? widget->setEditText(text) : widget->setCurrentText(text);
    }
    for (const auto& [widget, field] : lines_) {
        const QString text = QString::fromStdString(experiment.*field);
        if (widget->text() != text) widget->setText(text);
    }
    batch_->setValue(experiment.batch);
    putting_ = false;
}

Experiment ExperimentForm::experiment() const {
    Experiment now;
    for (const auto& [widget, field] : combos_) now.*field = widget->currentText().toStdString();
    for (const auto& [widget, field] : lines_) now.*field = widget->text().toStdString();
    now.batch = batch_->value();
    return now;
}

}  // namespace rehearse::gui
