// SPDX-License-Identifier: Apache-2.0
// A machine, how busy its links are in a timeline, and who sends how much to whom.
#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QSlider>
#include <QSpinBox>
#include <QSplitter>
#include <QTabWidget>

#include "core/error.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "models/machine_names.hpp"
#include "models/models.hpp"
#include "picture/topology.hpp"

namespace rehearse::gui {

namespace {

enum Load { no_load, mean_load, peak_load, load_at_cursor };

constexpr int slider_steps = 1000;
constexpr const char* no_links =
    "This timeline says nothing of links: rehearse predict --trace FILE writes what each carries";

class Topology : public Screen {
public:
    explicit Topology(Session& session)
        : Screen(session),
          machines_(new QComboBox),
          load_(new QComboBox),
          node_(new QSpinBox),
          time_(new QSlider(Qt::Horizontal)),
          moment_(new QLabel),
          view_(new PictureView),
          curves_(new PictureView),
          traffic_(new PictureView),
          links_(new Table) {
        for (const std::string& name : models::machine_names()) machines_->addItem(QString::fromStdString(name));
        machines_->setEditable(true);  // a file
        machines_->setInsertPolicy(QComboBox::NoInsert);
        machines_->setCurrentText(QString::fromStdString(session.experiment.machine));
        machines_->setObjectName("topology_machine");
        load_->setObjectName("load");
        load_->addItems(
            {"links by their width", "links: mean load", "links: fullest moment", "links: load at the cursor"});
        node_->setObjectName("load_node");
        node_->setPrefix("node ");
        time_->setObjectName("load_time");
        time_->setRange(0, slider_steps);
        time_->setMaximumWidth(260);
        view_->setObjectName("topology_picture");
        curves_->setObjectName("links_picture");
        traffic_->setObjectName("traffic_picture");
        links_->setObjectName("links");
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addLayout(tools());
        all->addWidget(pages());
        wire();
        draw();
        session.cursor_moved = [this] { follow_cursor(); };
    }
    ~Topology() override { session_.cursor_moved = nullptr; }

    void refresh() override {
        const Document* document = session_.at(session_.timeline);
        const auto lanes = document != nullptr ? document->lanes : nullptr;
        if (lanes != lanes_) {
            lanes_ = lanes;
            loads_ = lanes != nullptr ? link_loads(*lanes) : std::vector<picture::LinkLoad>{};
            chosen_.reset();
            const std::string machine = lanes != nullptr ? picture::machine_of(lanes->title) : "";
            if (!loads_.empty() && !machine.empty()) show_machine(machine);
            const QSignalBlocker quiet(load_);
            load_->setCurrentIndex(loads_.empty() ? no_load : mean_load);
        }
        const Document* prediction = session_.at(session_.prediction);
        if (loads_.empty() && prediction != nullptr) show_machine(prediction->prediction->machine);
        show_cursor();
        list_links();
        remake();
        traffic_->remake();
    }

    void set_theme(picture::Theme theme) override {
        for (PictureView* view : {view_, curves_, traffic_}) view->set_theme(theme);
    }
    picture::Picture picture() const override { return view_->shown(); }

protected:
    // The cursor may have moved on another screen.
    void showEvent(QShowEvent* event) override {
        Screen::showEvent(event);
        show_cursor();
        remake();
    }

private:
    // The machine of this name, as it was predicted for: what is built in may have the name of a file of the user's.
    void show_machine(const std::string& name) {
        const std::string file = file_of(name);
        machines_->setCurrentText(QString::fromStdString(file.empty() ? name : file));
    }

    // As a prediction says, the current one first, or the experiment; empty where it is built in, as far as is known.
    std::string file_of(const std::string& name) const {
        std::vector<int> predictions = session_.with([](const Document& d) { return d.prediction != nullptr; });
        predictions.insert(predictions.begin(), session_.prediction);
        for (const int i : predictions) {
            const Document* document = session_.at(i);
            if (document == nullptr || document->prediction->machine != name) continue;
            return document->prediction->machine_file;
        }
        try {
            const std::string& asked = session_.experiment.machine;
            if (asked != name && models::load_machine(asked).name == name) return asked;
        } catch (const std::exception&) {
        }  // the experiment says it
        return {};
    }

    QLayout* tools() {
        auto* row = new QHBoxLayout;
        row->setContentsMargins(8, 6, 8, 0);
        for (QWidget* widget : std::initializer_list<QWidget*>{machines_, load_, node_, time_, moment_})
            row->addWidget(widget);
        row->addStretch();
        return row;
    }

    QWidget* pages() {
        auto* top = new QSplitter(Qt::Vertical);
        top->addWidget(scrolled(curves_));
        top->addWidget(links_);
        top->setSizes({400, 300});
        auto* tabs = new QTabWidget;
        tabs->setDocumentMode(true);
        tabs->setObjectName("topology_tabs");
        tabs->addTab(scrolled(view_), "Machine");
        tabs->addTab(top, "Top links");
        tabs->addTab(scrolled(traffic_), "Traffic between ranks");
        return tabs;
    }

    void wire() {
        connect(machines_, &QComboBox::currentTextChanged, this, [this](const QString&) { remake(); });
        connect(load_, &QComboBox::currentIndexChanged, this, [this](int) { remake(); });
        connect(node_, &QSpinBox::valueChanged, this, [this](int) { remake(); });
        connect(time_, &QSlider::valueChanged, this, [this](int step) {
            if (lanes_ == nullptr) return;
            session_.cursor_ns = static_cast<double>(lanes_->first) +
                                 static_cast<double>(lanes_->last - lanes_->first) * step / slider_steps;
            const QSignalBlocker quiet(load_);
            load_->setCurrentIndex(load_at_cursor);
            show_cursor();
            remake();
        });
        links_->chosen_row = [this](int row) {
            chosen_ = static_cast<std::size_t>(row);
            const std::string& name = loads_[*chosen_].use.name;
            if (name.starts_with("node")) node_->setValue(std::atoi(name.c_str() + 4));
            curves_->remake();
        };
    }

    void draw() {
        view_->show(careful([this](picture::Size size, picture::Theme theme) {
            return topology_picture(models::load_machine(machines_->currentText().toStdString()), shares(), size.width,
                                    theme, node_->value());
        }));
        curves_->show(careful([this](picture::Size size, picture::Theme theme) {
            if (loads_.empty()) throw InputError(no_links);
            std::vector<picture::LinkLoad> shown;
            if (chosen_) shown.push_back(loads_[*chosen_]);
            for (const auto& load : loads_) {
                if (load.is_kind()) shown.push_back(load);
            }
            return link_loads_picture(shown, *lanes_, cursor(), size, theme);
        }));
        traffic_->show(careful([this](picture::Size size, picture::Theme theme) {
            return traffic_picture(session_.experiment, size, theme);
        }));
    }

    Seconds cursor() const { return Seconds{session_.cursor_ns.value_or(0) * 1e-9}; }

    picture::LinkShares shares() const {
        const int load = load_->currentIndex();
        if (load == no_load || loads_.empty()) return {};
        return shares_of(loads_, *lanes_,
                         load == mean_load   ? picture::LoadOf::mean
                         : load == peak_load ? picture::LoadOf::peak
                                             : picture::LoadOf::moment,
                         cursor());
    }

    void show_cursor() {
        const bool any = !loads_.empty();
        for (QWidget* widget : std::initializer_list<QWidget*>{load_, node_, time_, moment_}) widget->setEnabled(any);
        const double step = any ? static_cast<double>(lanes_->last - lanes_->first) * 1e-9 / slider_steps : 1;
        moment_->setText(any ? QString::fromStdString(picture::text_of_time(cursor().value, step)) : QString());
        if (!any) return;
        const QSignalBlocker quiet(time_);
        const double span = static_cast<double>(lanes_->last - lanes_->first);
        const double at = session_.cursor_ns.value_or(0) - static_cast<double>(lanes_->first);
        time_->setValue(static_cast<int>(slider_steps * at / span));
    }

    // Where it stands beside the timeline that is pointed at.
    void follow_cursor() {
        if (!isVisible() || loads_.empty()) return;
        show_cursor();
        curves_->remake();
        if (load_->currentIndex() == load_at_cursor) view_->remake();
    }

    void remake() {
        std::int64_t nodes = 1;
        try {
            nodes = node_count(models::load_machine(machines_->currentText().toStdString()));
        } catch (const std::exception&) {
        }  // the picture says it
        const QSignalBlocker quiet(node_);
        node_->setRange(0, static_cast<int>(nodes - 1));
        view_->remake();
        curves_->remake();
    }

    void list_links() {
        Rows rows{{"link", "links", "bandwidth", "bytes", "on the busiest", "mean load", "fullest moment"}, {}};
        for (const picture::LinkLoad& load : loads_) {
            rows.rows.push_back({{load.is_kind() ? load.use.name + " (all)" : load.use.name, {}},
                                 count(static_cast<double>(load.use.links)),
                                 rate(load.use.capacity.value, "B/s"),
                                 bytes(load.use.bytes.value),
                                 bytes(load.use.most.value),
                                 percent(load.mean),
                                 load.counter == SIZE_MAX ? Value{} : percent(load.peak)});
        }
        links_->show(std::move(rows));
    }

    QComboBox *machines_, *load_;
    QSpinBox* node_;
    QSlider* time_;
    QLabel* moment_;
    PictureView *view_, *curves_, *traffic_;
    Table* links_;
    std::shared_ptr<const picture::Lanes> lanes_;
    std::vector<picture::LinkLoad> loads_;
    std::optional<std::size_t> chosen_;  // of the loads
};

}  // namespace

std::unique_ptr<Screen> make_topology(Session& session) { return std::make_unique<Topology>(session); }

}  // namespace rehearse::gui
