// SPDX-License-Identifier: Apache-2.0
// Two pipelines, planned or from timelines, below each other.
#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QSpinBox>

#include "core/error.hpp"
#include "gui/background.hpp"
#include "gui/pages.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "schedule/axes/orders.hpp"
#include "schedule/plan.hpp"

namespace rehearse::gui {

namespace {

bool has_events(const Document& d) { return d.timeline != nullptr; }

// The plan in the title of a timeline, where it has a pipeline: "bert-large on summit, pipe=4:microbatches=12,data=3,
// predicted", "bert-large, pipe=2, batch 4 a rank, measured".
std::optional<schedule::Plan> pipelined_plan(const std::string& title) {
    const std::size_t first = title.find(", "), last = title.rfind(", ");
    if (first == last) return std::nullopt;
    try {
        const std::string words = title.substr(first + 2, last - first - 2);
        schedule::Plan plan = schedule::parse_plan(words.substr(0, words.find(", batch ")));
        const int axis = axis_index(plan.mesh, "pipe");
        if (axis >= 0 && size_of(plan.mesh, axis) > 1 && plan.stage_copies.empty()) return plan;
    } catch (const InputError&) {
    }
    return std::nullopt;
}

// A pipeline to draw: one that is planned, or a timeline that is open.
class PipelineChoice : public QWidget {
public:
    PipelineChoice(Session& session, const char* strategy, std::function<void()> changed)
        : session_(session), changed_(std::move(changed)) {
        auto* row = new QHBoxLayout(this);
        row->setContentsMargins(0, 0, 0, 0);
        row->addWidget(what_ = new QComboBox);
        what_->setMinimumWidth(220);
        what_->setObjectName("pipeline_shown");
        const auto spin = [&](const char* label, int value, int most) {
            auto* box = new QSpinBox;
            box->setRange(1, most);
            box->setValue(value);
            row->addWidget(new QLabel(label));
            row->addWidget(box);
            box->setObjectName(label);
            connect(box, &QSpinBox::valueChanged, this, [this](int) { changed_(); });
            return box;
        };
        stages_ = spin("stages", 4, 64);
        micro_batches_ = spin("micro-batches", 8, 512);
        chunks_ = spin("chunks", 1, 8);
        row->addStretch();
        fill();
        what_->setCurrentIndex(what_->findData(QString(strategy)));
        connect(what_, &QComboBox::activated, this, [this](int) {
            if (what_->currentData().toString() == "interleaved" && chunks_->value() == 1) chunks_->setValue(2);
            changed_();
        });
    }

    ~PipelineChoice() override { *alive_ = false; }

    void fill() {
        const QVariant before = what_->currentData();
        what_->clear();
        for (const auto& strategy : schedule::pipeline_strategies()) {
            const QString name = QString::fromUtf8(strategy.name.data(), static_cast<qsizetype>(strategy.name.size()));
            what_->addItem("planned: " + name, name);
        }
        for (const int i : session_.with(has_events))
            what_->addItem(QString::fromStdString(session_.at(i)->label), session_.at(i)->id);
        what_->setCurrentIndex(std::max(what_->findData(before), 0));
    }

    void show_document(int id) { what_->setCurrentIndex(std::max(what_->findData(id), 0)); }

    /// The plan of a timeline as it would be without waiting for messages.
    void show_planned(const schedule::Plan& plan) {
        const auto stages = static_cast<int>(size_of(plan.mesh, axis_index(plan.mesh, "pipe")));
        const QString name = QString::fromUtf8(plan.pipeline.data(), static_cast<qsizetype>(plan.pipeline.size()));
        what_->setCurrentIndex(std::max(what_->findData(name), 0));
        const auto put = [](QSpinBox* box, int value) {
            const QSignalBlocker quiet(box);
            box->setValue(value);
        };
        put(stages_, stages);
        put(micro_batches_, plan.micro_batches > 0 ? plan.micro_batches : stages);
        put(chunks_, plan.chunks > 0 ? plan.chunks : name == "interleaved" ? 2 : 1);
    }

    /// InputError while it is not there yet, and when there is none.
    std::optional<picture::PipelineDrawing> drawing() {
        const QVariant choice = what_->currentData();
        const bool planned = choice.metaType().id() == QMetaType::QString;
        for (QSpinBox* box : {stages_, micro_batches_, chunks_}) box->setEnabled(planned);
        if (planned)
            return planned_pipeline(choice.toString().toStdString(), stages_->value(), micro_batches_->value(),
                                    chunks_->value());
        const Document* document = session_.with_id(choice.toInt());
        if (document == nullptr || document->timeline == nullptr) return std::nullopt;
        if (document->timeline != of_) gather(document->timeline);
        if (!gathered_.drawing) throw InputError(gathered_.problem);
        return gathered_.drawing;
    }

private:
    struct Gathered {
        std::optional<picture::PipelineDrawing> drawing;
        std::string problem;
    };
    static Gathered gathered(const Timeline& timeline) {
        try {
            return {picture::pipeline_of(timeline), {}};
        } catch (const std::exception& error) {
            return {{}, error.what()};
        }
    }

    // Of a large timeline in a thread of its own.
    void gather(const std::shared_ptr<const Timeline>& timeline) {
        constexpr std::size_t at_once = 20'000;
        of_ = timeline;
        gathered_ = {{}, "gathering the passes…"};
        if (timeline->events.size() <= at_once) {
            gathered_ = gathered(*timeline);
            return;
        }
        in_background(
            alive_, [timeline] { return gathered(*timeline); },
            [this, timeline](Gathered found) {
                if (timeline != of_) return;
                gathered_ = std::move(found);
                changed_();
            });
    }

    Session& session_;
    std::function<void()> changed_;
    QComboBox* what_;
    QSpinBox *stages_, *micro_batches_, *chunks_;
    std::shared_ptr<const Timeline> of_;
    Gathered gathered_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class Pipeline : public Screen {
public:
    explicit Pipeline(Session& session) : Screen(session), view_(new PictureView) {
        view_->setObjectName("pipeline_picture");
        for (PipelineChoice*& choice : choices_) {
            choice =
                new PipelineChoice(session, &choice == choices_.data() ? "gpipe" : "1f1b", [this] { view_->remake(); });
            choice->setObjectName(&choice == choices_.data() ? "upper_pipeline" : "lower_pipeline");
        }
        auto* tools = new QGridLayout;
        tools->setContentsMargins(8, 6, 8, 0);
        tools->addWidget(choices_[0], 0, 0);
        tools->addWidget(choices_[1], 1, 0);
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addLayout(tools);
        all->addWidget(scrolled(view_));
        view_->show([this](picture::Size size, picture::Theme theme) { return made(size, theme); });
    }
    void refresh() override {
        if (!isVisible()) return;  // done when it is shown
        const Document* document = session_.at(session_.timeline);
        for (PipelineChoice* choice : choices_) choice->fill();
        if (document != nullptr && document->timeline != nullptr && document->id != shown_) {
            choices_[1]->show_document(shown_ = document->id);
            if (const auto plan = pipelined_plan(document->lanes->title)) choices_[0]->show_planned(*plan);
        }
        view_->remake();
    }
    void set_theme(picture::Theme theme) override { view_->set_theme(theme); }
    picture::Picture picture() const override { return view_->shown(); }

private:
    // On one axis where both have the same unit of time, below each other with their own otherwise.
    picture::Picture made(picture::Size size, picture::Theme theme) const {
        try {
            std::vector<picture::PipelineDrawing> drawings;
            for (PipelineChoice* choice : choices_) {
                if (auto drawing = choice->drawing()) drawings.push_back(std::move(*drawing));
            }
            if (drawings.empty()) return note(size, theme, "Choose a strategy or a timeline");
            if (drawings.size() == 1 || drawings[0].clock == drawings[1].clock)
                return pipelines_picture(drawings, size.width, theme);
            double height = 0;
            for (const auto& each : drawings) height += height_of(each);
            picture::Picture picture = picture::canvas({size.width, height}, picture::palette(theme), "pipelines");
            double top = 0;
            for (const auto& each : drawings) {
                draw(picture, {0, top, size.width, height_of(each)}, each, time_of(each), theme);
                top += height_of(each);
            }
            return picture;
        } catch (const std::exception& error) {
            return note(size, theme, error.what());
        }
    }
    std::array<PipelineChoice*, 2> choices_{};
    PictureView* view_;
    int shown_ = 0;  // the id of a document
};

}  // namespace

std::unique_ptr<Screen> make_pipeline(Session& session) { return std::make_unique<Pipeline>(session); }

}  // namespace rehearse::gui
