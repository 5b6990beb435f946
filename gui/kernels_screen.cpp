// SPDX-License-Identifier: Apache-2.0
// Benchmarks: rates of kernels, collectives over sizes, and how far a machine's prices are from what was measured.
#include <QBoxLayout>
#include <QComboBox>
#include <QLabel>
#include <QSplitter>
#include <QTabWidget>

#include <fmt/format.h>

#include "core/error.hpp"
#include "gui/pages.hpp"
#include "gui/picture_view.hpp"
#include "gui/session.hpp"
#include "models/machine_names.hpp"
#include "models/models.hpp"

namespace rehearse::gui {

namespace {

class Kernels : public Screen {
public:
    explicit Kernels(Session& session)
        : Screen(session),
          machines_(new QComboBox),
          rates_(new PictureView),
          collectives_(new PictureView),
          residuals_(new PictureView),
          benchmarks_table_(new Table),
          residuals_table_(new Table),
          tabs_(new QTabWidget) {
        machines_->setObjectName("priced_machine");
        for (const std::string& name : models::machine_names()) machines_->addItem(QString::fromStdString(name));
        machines_->setCurrentText("this-host");
        rates_->setObjectName("rates_picture");
        collectives_->setObjectName("collectives_picture");
        residuals_->setObjectName("residuals_picture");
        benchmarks_table_->setObjectName("benchmarks");
        residuals_table_->setObjectName("residuals");
        tabs_->setObjectName("kernel_tabs");
        tabs_->setDocumentMode(true);
        tabs_->addTab(above(rates_, benchmarks_table_), "Kernels");
        tabs_->addTab(scrolled(collectives_), "Collectives");
        tabs_->addTab(residuals_page(), "Prices against measurements");
        auto* all = new QVBoxLayout(this);
        all->setContentsMargins(0, 0, 0, 0);
        all->addWidget(tabs_);
        connect(machines_, &QComboBox::currentTextChanged, this, [this](const QString&) { list_residuals(); });
        connect(tabs_, &QTabWidget::currentChanged, this, [this](int) { list_residuals(); });
        draw();
    }

    void refresh() override {
        const Document* document = session_.at(session_.benchmarks);
        const auto benchmarks = document != nullptr ? document->benchmarks : nullptr;
        if (benchmarks == shown_) return;
        shown_ = benchmarks;
        list_benchmarks();
        const bool collective = benchmarks != nullptr && collective_of(benchmarks->rows.front());
        if (collective != (tabs_->currentIndex() == 1)) tabs_->setCurrentIndex(collective ? 1 : 0);
        list_residuals();
        rates_->remake(), collectives_->remake();
    }
    void set_theme(picture::Theme theme) override {
        for (PictureView* view : {rates_, collectives_, residuals_}) view->set_theme(theme);
    }
    picture::Picture picture() const override {
        const std::array<const PictureView*, 3> views{rates_, collectives_, residuals_};
        return views[static_cast<std::size_t>(tabs_->currentIndex())]->shown();
    }

private:
    static QWidget* above(PictureView* view, Table* table) {
        auto* split = new QSplitter(Qt::Vertical);
        split->addWidget(scrolled(view));
        split->addWidget(table);
        split->setSizes({560, 240});
        return split;
    }

    QWidget* residuals_page() {
        auto* page = new QWidget;
        auto* tools = new QHBoxLayout;
        tools->setContentsMargins(8, 6, 8, 0);
        tools->addWidget(new QLabel("prices of"));
        tools->addWidget(machines_);
        tools->addStretch();
        auto* all = new QVBoxLayout(page);
        all->setContentsMargins(0, 0, 0, 0);
        all->addLayout(tools);
        all->addWidget(above(residuals_, residuals_table_), 1);
        return page;
    }

    const Benchmarks& benchmarks() const {
        if (shown_ == nullptr) throw InputError("Open the JSON of rehearse bench --out, or of any Google Benchmark");
        return *shown_;
    }

    void draw() {
        rates_->show(careful(
            [this](picture::Size size, picture::Theme theme) { return kernels_picture(benchmarks(), size, theme); }));
        collectives_->show(careful([this](picture::Size size, picture::Theme theme) {
            return collectives_picture(benchmarks(), size, theme);
        }));
        residuals_->show(careful([this](picture::Size size, picture::Theme theme) {
            benchmarks();
            if (!problem_.empty()) throw InputError(problem_);
            return residuals_picture(compared_, machines_->currentText().toStdString(), size, theme);
        }));
    }

    void list_benchmarks() {
        const char* time = shown_ != nullptr && shown_->are_medians ? "median time" : "mean time";
        Rows rows{{"problem", "implementation", time, "rate", "bandwidth", "bus bandwidth", "of the peak", "error"},
                  {}};
        const auto unless_0 = [](double v, Value shown) { return v > 0 ? shown : Value{}; };
        for (const Benchmark& b : shown_ != nullptr ? shown_->rows : std::vector<Benchmark>{}) {
            const auto run = collective_of(b);
            rows.rows.push_back({{problem_of(b.name), {}},
                                 {implementation_of(b.name), {}},
                                 seconds(b.seconds),
                                 unless_0(b.flops_per_s, rate(b.flops_per_s, "FLOP/s")),
                                 unless_0(b.bytes_per_s, rate(b.bytes_per_s, "B/s")),
                                 run ? rate(run->bus_bytes_per_s, "B/s") : Value{},
                                 unless_0(b.peak_fraction, percent(b.peak_fraction)),
                                 {b.error, {}}});
        }
        benchmarks_table_->show(std::move(rows));
    }

    // Prices are asked only where somebody looks.
    void list_residuals() {
        if (tabs_->currentIndex() != 2) return;
        compared_.clear();
        problem_.clear();
        try {
            if (shown_ != nullptr)
                compared_ = residuals_of(*shown_, models::load_machine(machines_->currentText().toStdString()));
        } catch (const std::exception& error) {
            problem_ = error.what();
        }
        Rows rows{{"problem", "fastest", "measured", "price", "off by", "band", "price from"}, {}};
        for (const Residual& r : compared_) {
            const bool priced = r.price_s > 0;
            rows.rows.push_back({{r.problem, {}},
                                 {r.implementation, {}},
                                 seconds(r.measured_s),
                                 priced ? seconds(r.price_s) : Value{},
                                 priced ? percent(r.price_s / r.measured_s - 1) : Value{},
                                 priced ? percent(r.error) : Value{},
                                 {r.basis.empty() ? r.source : fmt::format("{}: {}", r.basis, r.source), {}}});
        }
        residuals_table_->show(std::move(rows));
        residuals_->remake();
    }

    QComboBox* machines_;
    PictureView *rates_, *collectives_, *residuals_;
    Table *benchmarks_table_, *residuals_table_;
    QTabWidget* tabs_;
    std::shared_ptr<const Benchmarks> shown_;
    std::vector<Residual> compared_;
    std::string problem_;
};

}  // namespace

std::unique_ptr<Screen> make_kernels(Session& session) { return std::make_unique<Kernels>(session); }

}  // namespace rehearse::gui
