// SPDX-License-Identifier: Apache-2.0
#include "gui/editor_form.hpp"

#include <QComboBox>
#include <QFormLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QScrollArea>
#include <QSpinBox>

#include "core/precision.hpp"
#include "models/machine_names.hpp"
#include "models/models.hpp"
#include "schedule/mesh.hpp"

namespace rehearse::gui {

namespace {

QString text_of(std::string_view s) { return QString::fromUtf8(s.data(), static_cast<qsizetype>(s.size())); }

// A plan may be broken behind its commas and colons.
QString breakable(const std::string& text) {
    return QString::fromStdString(text).toHtmlEscaped().replace(",", ",&#8203;").replace(":", ":&#8203;");
}

}  // namespace

Verdict::Verdict() {
    setObjectName("verdict");
    setWordWrap(true);
    setMinimumWidth(1);  // a long plan is broken, not cut
    setAlignment(Qt::AlignTop | Qt::AlignLeft);
    setTextInteractionFlags(Qt::TextSelectableByMouse);
}

void Verdict::say(const Check& check, const QString& remedies, const QString& remarks) {
    const bool good = check.problem.empty();
    QString text = QString("<span style='color:%1'><b>%2</b></span> %3")
                       .arg(good ? "#009e73" : "#d55e00", good ? "✓ can be run" : "✗",
                            breakable(good ? check.summary : check.problem));
    if (!good && !remedies.isEmpty()) text += "<pre style='font-size:small'>" + remedies.toHtmlEscaped() + "</pre>";
    if (!remarks.isEmpty()) text += "<br>" + breakable(remarks.toStdString()).replace("\n", "<br>");
    setText(text);
}

QWidget* Verdict::room() {
    auto* area = new QScrollArea;
    area->setObjectName("verdict_room");
    area->setWidget(this);
    area->setWidgetResizable(true);
    area->setFrameShape(QFrame::NoFrame);
    area->setFixedHeight(5 * fontMetrics().lineSpacing() + 4);
    return area;
}

ExperimentForm::ExperimentForm(QWidget* parent) : QWidget(parent) {
    auto* form = new QFormLayout(this);
    form->setContentsMargins(0, 0, 0, 0);
    form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
    auto* models = combo(form, "model", "Network", &Experiment::model, true);
    for (const auto& model : models::zoo()) models->addItem(text_of(model.name));
    auto* machines = combo(form, "machine", "Machine", &Experiment::machine, true);
    for (const std::string& name : models::machine_names()) machines->addItem(QString::fromStdString(name));
    auto* precision = combo(form, "precision", "Precision", &Experiment::precision, false);
    for (const PrecisionTypes& each : precisions()) precision->addItem(text_of(each.name));
    combo(form, "optimizer", "Optimizer", &Experiment::optimizer, false)->addItems({"sgd", "adam", "lamb"});
    line(form, "plan", "Plan", &Experiment::plan);
    line(form, "devices", "Devices", &Experiment::devices);
    batch_ = new QSpinBox;
    batch_->setObjectName("batch");
    batch_->setRange(1, static_cast<int>(schedule::most_samples));
    batch_->setToolTip(
        "Samples in a step of one copy of the network: of a device, or of those that share a copy along tensor, pipe "
        "or spatial axes");
    form->addRow("Batch a copy", batch_);
    connect(batch_, &QSpinBox::valueChanged, this, [this](int) { changed(); });
    for (QWidget* field : findChildren<QWidget*>()) field->installEventFilter(this);
    putting_ = false;
}

// Ctrl+Z in a field is the form's: a line's own history knows one field only.
bool ExperimentForm::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::FocusOut && left) left();
    if (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool undo = key->matches(QKeySequence::Undo), redo = key->matches(QKeySequence::Redo);
        if ((undo || redo) && event->type() == QEvent::KeyPress && history) history(undo);
        if (undo || redo) return true;
    }
    return QWidget::eventFilter(watched, event);
}

QComboBox* ExperimentForm::combo(QFormLayout* form, const char* name, const char* label, std::string Experiment::*field,
                                 bool editable) {
    auto* widget = new QComboBox;
    widget->setObjectName(name);
    widget->setEditable(editable);
    widget->setInsertPolicy(QComboBox::NoInsert);
    widget->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    widget->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // the longest name is no reason
    widget->setMinimumContentsLength(8);                                            // to be wide
    form->addRow(label, widget);
    combos_.emplace_back(widget, field);
    connect(widget, &QComboBox::currentTextChanged, this, [this](const QString&) { changed(); });
    return widget;
}

void ExperimentForm::line(QFormLayout* form, const char* name, const char* label, std::string Experiment::*field) {
    auto* widget = new QLineEdit;
    widget->setObjectName(name);
    if (field == &Experiment::plan) {  // long: as wide as the form
        form->addRow(new QLabel(label));
        form->addRow(widget);
    } else {
        form->addRow(label, widget);
    }
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
        if (widget->text() == text) continue;
        widget->setText(text);
        widget->setCursorPosition(0);
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
