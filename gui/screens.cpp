// SPDX-License-Identifier: Apache-2.0
// The screens that show predictions.
#include <fmt/format.h>

#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QSettings>
#include <QSplitter>

#include "gui/pages.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "gui/start.hpp"
#include "report/scaling_point.hpp"

namespace rehearse::gui {

namespace {

class Overview : public Screen {
public:
    explicit Overview(Session& session) : Screen(session), points_(new QComboBox), view_(new PictureView) {
        view_->setObjectName("overview_picture");
        points_->setObjectName("overview_points");
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 0);
        tools->addWidget(points_);
        tools->addStretch();
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addLayout(tools);
        all->addWidget(scrolled(view_));
        connect(points_, &QComboBox::activated, this, [this](int i) {
            session_.point = i;
            view_->remake();
        });
        view_->clicked = [this](const picture::Mark& mark) {
            if (const auto colon = mark.title.find(": "); colon != std::string::npos)
                follow(mark.title.substr(0, colon), mark.title.substr(colon + 2));
        };
        view_->show(careful([this](picture::Size size, picture::Theme theme) {
            if (const Prediction* prediction = session_.current_prediction()) {
                return overview_picture(
                    *prediction, session_.point < 0 ? SIZE_MAX : static_cast<std::size_t>(session_.point), size, theme);
            }
            const Document* document = session_.at(session_.timeline);
            if (document != nullptr && document->timeline != nullptr)
                return overview_picture(*document->timeline, *document->summary, size, theme);
            if (document != nullptr)
                return note(size, theme,
                            "This timeline has too many events for it, or no steps of ours: see the screen Timeline");
            std::vector<std::string> recent;
            for (const QString& path : QSettings().value("recent").toStringList()) recent.push_back(path.toStdString());
            return start_picture(recent, size, theme);
        }));
    }
    void refresh() override {
        points_->clear();
        const Prediction* prediction = session_.current_prediction();
        points_->setVisible(prediction != nullptr && prediction->points.size() > 1);
        if (prediction != nullptr) {
            for (const Point& p : prediction->points) points_->addItem(QString("%1 devices").arg(p.figures.devices));
            points_->setCurrentIndex(session_.point < 0 ? points_->count() - 1 : session_.point);
        }
        view_->remake();
    }
    void set_theme(picture::Theme theme) override { view_->set_theme(theme); }
    picture::Picture picture() const override { return view_->shown(); }

private:
    // To the evidence of a card, or into what the start page offers.
    void follow(const std::string& word, const std::string& what) {
        if (word == "open") return session_.ask();
        if (word == "recent") return session_.open(QString::fromStdString(what));
        for (const Example& example : examples()) {
            if (word == "example" && what == example.name) session_.experiment = example.experiment;
        }
        session_.go(word == "example" ? "editor" : word);
    }

    QComboBox* points_;
    PictureView* view_;
};

class Scaling : public Screen {
public:
    explicit Scaling(Session& session)
        : Screen(session), metric_(new QComboBox), view_(new PictureView), front_(new PictureView), table_(new Table) {
        metric_->addItems({"throughput", "efficiency", "time of a step"});
        table_->setObjectName("points");
        view_->setObjectName("scaling_picture");
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 0);
        tools->addWidget(metric_);
        auto* hint = new QLabel("a point opens its run");
        hint->setEnabled(false);
        tools->addWidget(hint);
        tools->addStretch();
        auto* top = new QSplitter;
        top->addWidget(scrolled(view_));
        top->addWidget(scrolled(front_));
        top->setSizes({600, 500});
        auto* split = new QSplitter(Qt::Vertical);
        split->addWidget(top);
        split->addWidget(table_);
        split->setSizes({520, 220});
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addLayout(tools);
        all->addWidget(split);
        metric_->setObjectName("scaling_metric");
        view_->setObjectName("scaling_picture");
        front_->setObjectName("front_picture");
        connect(metric_, &QComboBox::currentIndexChanged, this, [this](int) { view_->remake(); });
        view_->show(careful([this](picture::Size size, picture::Theme theme) {
            std::vector<picture::ScalingCurve> curves;
            for (const NamedPrediction& each : shown_) curves.push_back(curve_of(each));
            if (curves.empty())
                return note(size, theme, "Open predictions (rehearse predict --format json) to compare their scaling");
            return xy_chart(
                scaling_chart(curves, static_cast<picture::ScalingMetric>(metric_->currentIndex()), "Scaling",
                              "band: error of the prices behind the prediction; dashed: perfect scaling"),
                size, theme);
        }));
        front_->show(careful([this](picture::Size size, picture::Theme theme) {
            return shown_.empty() ? note(size, theme, "") : pareto_picture(shown_, size, theme);
        }));
        table_->activated_row = [this](int row) { open_point(row); };
        view_->clicked = front_->clicked = [this](const picture::Mark& mark) {
            int row = 0;
            for (const NamedPrediction& each : shown_) {
                const picture::ScalingCurve curve = curve_of(each);
                for (std::size_t p = 0; p < curve.points.size(); ++p, ++row) {
                    if (mark.title == title_of(curve, curve.points[p]) ||
                        mark.title == front_title(each, each.prediction->points[p]))
                        return open_point(row);
                }
            }
        };
    }
    void refresh() override {
        shown_ = named(session_.documents);
        places_.clear();
        Rows rows{{"file", "network", "machine", "plan", "devices", "nodes", "batch", "step", "low", "high",
                   "samples/s", "efficiency", "exposed comm", "memory", "fits"},
                  {}};
        for (const int i : session_.with([](const Document& d) { return d.prediction != nullptr; })) {
            const Prediction& prediction = *session_.at(i)->prediction;
            for (std::size_t p = 0; p < prediction.points.size(); ++p) {
                const Point& point = prediction.points[p];
                places_.emplace_back(i, p);
                const picture::ScalingPoint drawn = report::scaling_point(point);
                rows.rows.push_back({{session_.at(i)->label, {}},
                                     {prediction.model, {}},
                                     {prediction.machine, {}},
                                     {prediction.plan, {}},
                                     count(static_cast<double>(point.figures.devices)),
                                     count(static_cast<double>(point.nodes)),
                                     count(static_cast<double>(point.figures.global_batch)),
                                     seconds(drawn.step_s),
                                     seconds(drawn.low_s),
                                     seconds(drawn.high_s),
                                     large(drawn.samples_per_s),
                                     point.efficiency ? percent(*point.efficiency) : Value{},
                                     seconds(point.figures.time.exposed_comm.value),
                                     bytes(point.memory.peak.value),
                                     {point.memory.fits ? "yes" : "no", {}}});
            }
        }
        table_->show(std::move(rows));
        view_->remake();
        front_->remake();
    }
    void set_theme(picture::Theme theme) override { view_->set_theme(theme), front_->set_theme(theme); }
    picture::Picture picture() const override { return view_->shown(); }

private:
    void open_point(int row) {
        std::tie(session_.prediction, session_.point) =
            std::pair{places_[static_cast<std::size_t>(row)].first,
                      static_cast<int>(places_[static_cast<std::size_t>(row)].second)};
        session_.refresh();
        session_.go("overview");
    }
    QComboBox* metric_;
    PictureView *view_, *front_;
    Table* table_;
    std::vector<NamedPrediction> shown_;
    std::vector<std::pair<int, std::size_t>> places_;  // of the table's rows
};

}  // namespace

std::unique_ptr<Screen> make_overview(Session& session) { return std::make_unique<Overview>(session); }
std::unique_ptr<Screen> make_scaling(Session& session) { return std::make_unique<Scaling>(session); }

}  // namespace rehearse::gui
