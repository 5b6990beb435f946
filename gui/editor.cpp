// SPDX-License-Identifier: Apache-2.0
// An experiment: its words at the left, at the right what can be said of it at once, and the curve as it comes.
#include <QApplication>
#include <QBoxLayout>
#include <QClipboard>
#include <QDir>
#include <QFile>
#include <QLabel>
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

class Editor : public Screen {
public:
    explicit Editor(Session& session) : Screen(session), shown_(session.experiment) {
        auto* split = new QSplitter;
        split->addWidget(make_left());
        auto* right = new QSplitter(Qt::Vertical);
        curve_ = new PictureView;
        curve_->setObjectName("curve");
        memory_ = new PictureView;
        right->addWidget(scrolled(curve_));
        right->addWidget(scrolled(memory_));
        right->setSizes({460, 240});
        split->addWidget(right);
        split->setSizes({380, 900});
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addWidget(split);
        memory_->show([this](picture::Size size, picture::Theme theme) {
            if (check_.memory.empty()) return picture::canvas(size, picture::palette(theme), "");
            return memory_picture(check_.memory, check_.capacity_bytes, "Memory of a device", size.width, theme);
        });
        curve_->show([this](picture::Size size, picture::Theme theme) {
            if (prediction_ == nullptr) return picture::canvas(size, picture::palette(theme), "");
            return xy_chart(
                scaling_chart({curve_of(*prediction_)}, picture::ScalingMetric::throughput, "Predicted scaling",
                              coarse_ ? "the ends first, without their band; the rest is being simulated"
                                      : "band: error of the prices; dashed: perfect scaling"),
                size, theme);
        });
        delay_.setSingleShot(true);
        delay_.setInterval(10);
        connect(&delay_, &QTimer::timeout, this, [this] {
            if (isVisible()) look();
        });
        put(shown_);
    }

    ~Editor() override { *alive_ = false; }

    // A machine or a network was dropped on the window.
    void refresh() override {
        if (session_.experiment == shown_) return;
        undo_.push(new Change(shown_, session_.experiment, [this](const Experiment& e) { put(e); }));
    }
    void set_theme(picture::Theme theme) override { curve_->set_theme(theme), memory_->set_theme(theme); }
    picture::Picture picture() const override { return curve_->shown(); }

protected:
    // What nobody sees is not simulated.
    void showEvent(QShowEvent* event) override {
        Screen::showEvent(event);
        if (asked_ == 0 || !(looked_ == shown_)) delay_.start();
    }

private:
    QWidget* make_left() {
        form_ = new ExperimentForm;
        form_->edited = [this] { edited(); };
        verdict_ = new QLabel;
        verdict_->setObjectName("verdict");
        verdict_->setWordWrap(true);
        verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse);
        auto* box = new QWidget;
        auto* all = new QVBoxLayout(box);
        all->setContentsMargins(14, 12, 10, 12);
        all->addWidget(form_);
        all->addSpacing(6);
        all->addWidget(verdict_);
        all->addSpacing(6);
        all->addLayout(make_buttons());
        all->addWidget(plan_help());
        all->addStretch();
        auto* area = new QScrollArea;
        area->setWidget(box);
        area->setWidgetResizable(true);
        area->setMinimumWidth(410);
        area->setFrameShape(QFrame::NoFrame);
        area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        return area;
    }

    QLayout* make_buttons() {
        auto* buttons = new QHBoxLayout;
        const auto button = [&](const char* name, const QString& text, auto action) {
            auto* widget = new QPushButton(text);
            widget->setObjectName(name);
            connect(widget, &QPushButton::clicked, this, action);
            buttons->addWidget(widget);
            return widget;
        };
        button("predict", "Predict", [this] { predict(); })->setDefault(true);
        auto* undo = button("undo", "Undo", [this] { undo_.undo(); });
        auto* redo = button("redo", "Redo", [this] { undo_.redo(); });
        button("copy", "Copy as command",
               [this] { QApplication::clipboard()->setText(QString::fromStdString(command_line(shown_))); });
        const auto enable = [this, undo, redo] {
            undo->setEnabled(undo_.canUndo()), redo->setEnabled(undo_.canRedo());
        };
        connect(&undo_, &QUndoStack::indexChanged, this, enable);
        enable();
        return buttons;
    }

    // From the fields into a command that can be undone.
    void edited() {
        const Experiment now = form_->experiment();
        if (now == shown_) return;
        undo_.push(new Change(shown_, now, [this](const Experiment& e) { put(e); }));
    }

    void put(const Experiment& experiment) {
        shown_ = session_.experiment = experiment;
        form_->put(experiment);
        delay_.start();
    }

    // The check in a thread of its own, the curve in a process; what an older edit asked for is dropped.
    void look() {
        const int asked = ++asked_;
        session_.runner->cancel(running_);
        const Experiment experiment = looked_ = shown_;
        remedies_.clear();
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
        }  // the check says it
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

    // The curve of what does not fit is drawn, too. What is wrong with the input, the check says.
    void take(const Runner::Result& result, int asked, const std::string& devices) {
        if (!has_prediction(result)) {
            const bool is_said = result.exit_code == wrong_input && !check_.problem.empty();
            if (!is_said && !result.message.isEmpty()) session_.warn(result.message);
            return;
        }
        try {
            prediction_ = std::make_shared<Prediction>(parse_prediction(result.out.toStdString(), "rehearse predict"));
        } catch (const std::exception& error) {
            return session_.warn(error.what());
        }
        const qsizetype remedies = result.message.indexOf("it fits with");
        remedies_ = result.good || remedies < 0 ? QString() : result.message.mid(remedies);
        if (!check_.problem.empty()) show(check_);
        coarse_ = coarse_ && !devices.empty();
        curve_->remake();
        if (coarse_) ask(asked, {});
    }

    void show(const Check& found) {
        check_ = found;
        const bool good = found.problem.empty();
        QString text = QString("<span style='color:%1'><b>%2</b></span> %3")
                           .arg(good ? "#009e73" : "#d55e00", good ? "✓ can be run" : "✗",
                                QString::fromStdString(good ? found.summary : found.problem).toHtmlEscaped());
        if (!good && !remedies_.isEmpty())
            text += "<pre style='font-size:small'>" + remedies_.toHtmlEscaped() + "</pre>";
        verdict_->setText(text);
        memory_->remake();
    }

    // The whole, with its timeline, into the session.
    void predict() {
        if (!folder_.isValid()) return session_.warn("no temporary folder: is the disk full? " + folder_.errorString());
        const QString trace =
            folder_.filePath(QString("%1-%2.pftrace").arg(QString::fromStdString(shown_.model)).arg(++asked_traces_));
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

    Experiment shown_, looked_;
    ExperimentForm* form_ = nullptr;
    QLabel* verdict_ = nullptr;
    PictureView *curve_ = nullptr, *memory_ = nullptr;
    QUndoStack undo_;
    QTimer delay_;
    QTemporaryDir folder_{QDir::tempPath() + "/rehearse-run-XXXXXX"};  // not of the next session
    Check check_;
    QString remedies_;  // of what does not fit
    std::shared_ptr<const Prediction> prediction_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    int asked_ = 0, running_ = -1, asked_traces_ = 0;
    bool coarse_ = false;
};

}  // namespace

std::unique_ptr<Screen> make_editor(Session& session) { return std::make_unique<Editor>(session); }

}  // namespace rehearse::gui
