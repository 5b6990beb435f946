// SPDX-License-Identifier: Apache-2.0
// An experiment: its words at the left, at the right what can be said of it at once, and the curve as it comes.
#include <QAction>
#include <QApplication>
#include <QBoxLayout>
#include <QClipboard>
#include <QDir>
#include <QFile>
#include <QGridLayout>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTemporaryDir>
#include <QTimer>

#include "gui/background.hpp"
#include "gui/edit.hpp"
#include "gui/editor_form.hpp"
#include "gui/pages.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"

namespace rehearse::gui {

namespace {

constexpr int pause_ms = 300;  // of typing, after which an experiment is looked at

// A line each.
QString remarks_of(const Prediction& prediction) {
    QStringList lines;
    for (const std::string& each : prediction.warnings) lines << "warning: " + QString::fromStdString(each);
    for (const std::string& each : prediction.notes) lines << "note: " + QString::fromStdString(each);
    return lines.join('\n');
}

/// Large: the screen's widgets, what they show, and what was asked of the program meanwhile.
class Editor : public Screen {
public:
    explicit Editor(Session& session) : Screen(session), shown_(session.experiment) {
        auto* split = new QSplitter;
        split->addWidget(make_left());
        auto* right = new QSplitter(Qt::Vertical);
        curve_ = new PictureView;
        curve_->setObjectName("curve");
        memory_ = new PictureView;
        memory_->setObjectName("experiment_memory");
        right->addWidget(scrolled(curve_));
        right->addWidget(scrolled(memory_));
        right->setSizes({460, 240});
        split->addWidget(right);
        split->setSizes({540, 560});
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addWidget(split);
        memory_->show([this](picture::Size size, picture::Theme theme) {
            if (check_.memory.empty()) return picture::canvas(size, picture::palette(theme), "");
            return memory_picture(check_.memory, check_.capacity_bytes, "Memory of a device", size.width, theme);
        });
        curve_->show([this](picture::Size size, picture::Theme theme) {
            if (prediction_ == nullptr) return note(size, theme, curve_note_);
            return xy_chart(scaling_chart({curve_of({prediction_, name_of(*prediction_)})},
                                          picture::ScalingMetric::throughput, "Predicted scaling",
                                          coarse_ ? "the ends first, without their band; the rest is being simulated"
                                                  : "band: error of the prices; dashed: perfect scaling"),
                            size, theme);
        });
        delay_.setSingleShot(true);
        delay_.setInterval(pause_ms);
        connect(&delay_, &QTimer::timeout, this, [this] {
            if (isVisible()) look();
        });
        put(shown_);
    }

    ~Editor() override { *alive_ = false; }

    // A machine or a network was dropped on the window.
    void refresh() override {
        if (session_.experiment == shown_) return;
        push(session_.experiment);
    }
    void set_theme(picture::Theme theme) override { curve_->set_theme(theme), memory_->set_theme(theme); }
    picture::Picture picture() const override { return curve_->shown(); }

protected:
    // What nobody sees is not simulated.
    void showEvent(QShowEvent* event) override {
        Screen::showEvent(event);
        if (looked_ != shown_) delay_.start();
    }

private:
    QWidget* make_left() {
        form_ = new ExperimentForm;
        form_->edited = [this] { edited(); };
        form_->left = [this] { ++visit_; };
        form_->history = [this](bool undo) { ++visit_, undo ? undo_.undo() : undo_.redo(); };
        verdict_ = new Verdict;
        auto* box = new QWidget;
        auto* all = new QVBoxLayout(box);
        all->setContentsMargins(14, 12, 10, 12);
        all->addWidget(form_);
        all->addSpacing(6);
        all->addWidget(verdict_->room());
        all->addSpacing(6);
        all->addLayout(make_buttons());
        all->addWidget(plan_help());
        all->addStretch();
        auto* area = new QScrollArea;
        area->setWidget(box);
        area->setWidgetResizable(true);
        area->setMinimumWidth(290);
        area->setFrameShape(QFrame::NoFrame);
        area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        return area;
    }

    QLayout* make_buttons() {
        auto* buttons = new QGridLayout;
        const auto button = [&](const char* name, const QString& text, auto action) {
            auto* widget = new QPushButton(text);
            widget->setObjectName(name);
            connect(widget, &QPushButton::clicked, this, action);
            buttons->addWidget(widget, buttons->count() / 2, buttons->count() % 2);
            return widget;
        };
        button("predict", "Predict", [this] { predict(); })->setDefault(true);
        button("copy", "Copy as command",
               [this] { QApplication::clipboard()->setText(QString::fromStdString(command_line(shown_))); });
        auto* undo = button("undo", "Undo", [this] { ++visit_, undo_.undo(); });
        auto* redo = button("redo", "Redo", [this] { ++visit_, undo_.redo(); });
        add_keys(QKeySequence::Undo, undo);
        add_keys(QKeySequence::Redo, redo);
        const auto enable = [this, undo, redo] {
            undo->setEnabled(undo_.canUndo()), redo->setEnabled(undo_.canRedo());
        };
        connect(&undo_, &QUndoStack::indexChanged, this, enable);
        enable();
        return buttons;
    }

    // Wherever on this screen the focus is, also in a field.
    void add_keys(QKeySequence::StandardKey keys, QPushButton* button) {
        auto* action = new QAction(this);
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        connect(action, &QAction::triggered, button, &QPushButton::click);
        addAction(action);
        button->setToolTip(QKeySequence(keys).toString());
    }

    // From the fields into a command that can be undone.
    void edited() {
        const Experiment now = form_->experiment();
        if (!(now == shown_)) push(now);
    }
    void push(const Experiment& now) {
        undo_.push(new Change(shown_, now, visit_, [this](const Experiment& e) { put(e); }));
    }

    // What was said of another experiment goes at once; what is to be said of this one comes after a pause.
    void put(const Experiment& experiment) {
        shown_ = session_.experiment = experiment;
        form_->put(experiment);
        if (looked_ != shown_) forget();
        delay_.start();
    }

    void forget() {
        ++asked_;
        session_.runner->cancel(running_);
        looked_.reset();
        check_ = {};
        is_checked_ = false;
        prediction_.reset();
        remedies_.clear(), remarks_.clear();
        curve_note_ = "…";
        verdict_->setText("…");
        memory_->remake(), curve_->remake();
    }

    // The check in a thread of its own, the curve in a process; what an older edit asked for is dropped.
    void look() {
        if (looked_ == shown_) return;
        forget();
        const int asked = asked_;
        const Experiment experiment = shown_;
        looked_ = shown_;
        curve_note_ = "simulating…";
        curve_->remake();
        in_background(
            alive_, [experiment] { return check(experiment); },
            [this, asked](const Check& found) {
                if (asked == asked_) show(found);
            });
        try {
            const auto numbers = devices_of(experiment);
            coarse_ = numbers.size() > 2;
            ask(asked, coarse_ ? ends_of(experiment) : std::string{});
        } catch (const std::exception&) {
            say_instead_of_a_curve("");  // the check says it
        }
    }

    void say_instead_of_a_curve(const QString& text) {
        prediction_.reset();
        curve_note_ = text.toStdString();
        curve_->remake();
    }

    void ask(int asked, const std::string& devices) {
        // The coarse answer takes a simulation a point, the whole one three: the step, and both ends of its band.
        const bool ends = !devices.empty();
        running_ = session_.runner->start("curve of " + QString::fromStdString(shown_.model),
                                          arguments_of(shown_, devices) << (ends ? "--no-band" : "--progress"),
                                          [this, asked, devices](const Runner::Result& result) {
                                              if (asked == asked_) take(result, asked, devices);
                                          });
    }

    // The curve of what does not fit is drawn, too. What is wrong with the input stands in the check; a process that
    // died is a message.
    void take(const Runner::Result& result, int asked, const std::string& devices) {
        if (!has_prediction(result)) {
            const bool is_said = result.exit_code == wrong_input && !(is_checked_ && check_.problem.empty());
            if (!is_said && !result.message.isEmpty()) session_.warn(result.message);
            return say_instead_of_a_curve("no curve: this experiment cannot be predicted");
        }
        try {
            prediction_ = std::make_shared<Prediction>(parse_prediction(result.out.toStdString(), "rehearse predict"));
        } catch (const std::exception& error) {
            return say_instead_of_a_curve(error.what());
        }
        const qsizetype remedies = result.message.indexOf("it fits with");
        remedies_ = result.good || remedies < 0 ? QString() : result.message.mid(remedies);
        remarks_ = remarks_of(*prediction_);
        if (is_checked_) show(check_);
        coarse_ = coarse_ && !devices.empty();
        curve_->remake();
        if (coarse_) ask(asked, {});
    }

    void show(const Check& found) {
        check_ = found;
        is_checked_ = true;
        verdict_->say(found, remedies_, remarks_);
        memory_->remake();
    }

    // The whole, with its timeline, into the session.
    void predict() {
        if (!folder_.isValid()) return session_.warn("no temporary folder: is the disk full? " + folder_.errorString());
        const QString trace =
            folder_.filePath(QString("prediction-%1.pftrace").arg(++asked_traces_));  // a network may be a path
        QStringList list = arguments_of(shown_) << "--progress"
                                                << "--explain"
                                                << "--memory"
                                                << "--trace" << trace;
        session_.runner->start(
            "predict " + QString::fromStdString(shown_.model), list, [this, trace](const Runner::Result& result) {
                if (!result.message.isEmpty()) session_.warn(result.message);
                if (!has_prediction(result)) return;
                try {
                    Document document;
                    document.prediction =
                        std::make_shared<Prediction>(parse_prediction(result.out.toStdString(), "rehearse predict"));
                    document.label = document.prediction->model + " on " + document.prediction->machine + ", " +
                                     document.prediction->plan;
                    session_.add(std::move(document));
                    if (QFile::exists(trace)) session_.open(trace);
                    session_.go("overview");
                } catch (const std::exception& error) {
                    session_.warn(error.what());
                }
            });
        session_.go("runs");
    }

    Experiment shown_;
    std::optional<Experiment> looked_;  // at: what is shown beside the form is of it
    ExperimentForm* form_ = nullptr;
    Verdict* verdict_ = nullptr;
    PictureView *curve_ = nullptr, *memory_ = nullptr;
    QUndoStack undo_;
    QTimer delay_;
    QTemporaryDir folder_{QDir::tempPath() + "/rehearse-run-XXXXXX"};  // not of the next session
    Check check_;
    bool is_checked_ = false;
    std::string curve_note_;
    QString remedies_;  // of what does not fit
    QString remarks_;   // of what was predicted
    std::shared_ptr<const Prediction> prediction_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    int asked_ = 0, running_ = -1, asked_traces_ = 0, visit_ = 0;
    bool coarse_ = false;
};

}  // namespace

std::unique_ptr<Screen> make_editor(Session& session) { return std::make_unique<Editor>(session); }

}  // namespace rehearse::gui
