// SPDX-License-Identifier: Apache-2.0
// A window without a screen, beside files of a prediction and two timelines.
#pragma once

#include <gmock/gmock.h>

#include <QFile>
#include <QSettings>
#include <QTemporaryDir>
#include <QtTest/QTest>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "gui/timeline_view.hpp"
#include "gui/window.hpp"
#include "trace/trace.hpp"

namespace rehearse::gui {

inline constexpr const char* prediction =
    R"({"schema": "rehearse.prediction/1", "model": "resnet50", "machine": "summit",
  "plan": "data", "precision": "mixed", "points": [
  {"devices": 6, "nodes": 1, "global_batch": 192, "step_s": 0.034, "step_low_s": 0.03, "step_high_s": 0.04, "samples_per_s": 5540, "flops_per_s": 1e14,
   "efficiency": 1, "compute_s": 0.033, "exposed_comm_s": 0.001, "bubble_s": 0, "io_wait_s": 0, "memory_peak_bytes": 1.7e9, "memory_capacity_bytes": 1.6e10, "fits": true, "mode": "exact"},
  {"devices": 384, "nodes": 64, "global_batch": 12288, "step_s": 0.037, "step_low_s": 0.03, "step_high_s": 0.045, "samples_per_s": 330000, "flops_per_s": 8e15,
   "efficiency": 0.93, "compute_s": 0.033, "exposed_comm_s": 0.004, "bubble_s": 0, "io_wait_s": 0, "memory_peak_bytes": 1.7e9, "memory_capacity_bytes": 1.6e10, "fits": true, "mode": "folded"}],
  "memory": [{"class": "all", "kind": "weights", "bytes": 5e7}, {"class": "all", "kind": "activations", "bytes": 1.3e9}]})";

inline Timeline two_ranks(bool measured, double slower = 1) {
    Timeline timeline{measured ? "measured" : "predicted", measured, 2, {}, {}};
    for (const std::int64_t rank : {0, 1}) {
        double now = 0;
        for (int i = 0; i < 20; ++i) {
            const std::string layer = "conv" + std::to_string(i);
            timeline.events.push_back({RankIndex{rank},
                                       Stream::compute,
                                       layer + ":forward",
                                       layer,
                                       "forward",
                                       0,
                                       0,
                                       Seconds{now},
                                       Seconds{now + 1e-3 * slower},
                                       {},
                                       Flops{1e9}});
            now += 1.1e-3 * slower;
        }
        timeline.events.push_back({RankIndex{rank},
                                   Stream::communication,
                                   "bucket0:allreduce",
                                   "bucket0",
                                   "allreduce",
                                   0,
                                   0,
                                   Seconds{now},
                                   Seconds{now + 5e-3},
                                   Bytes{1e6},
                                   {}});
    }
    timeline.counters.push_back(
        {"memory rank 0", "bytes", {{Seconds{0}, 1e9}, {Seconds{0.01}, 2e9}, {Seconds{0.02}, 1e9}}});
    return timeline;
}

class Gui : public testing::Test {
protected:
    Gui() {
        QSettings().clear();
        write("prediction.json", prediction);
        trace::write(two_ranks(false), path("predicted.pftrace"));
        trace::write(two_ranks(true, 1.25), path("measured.pftrace"));
        fake("exec sleep 100");
        window_ = std::make_unique<Window>(false, qpath("rehearse"));
        window_->resize(1280, 800);
        window_->show();
    }
    std::string path(const char* name) const { return folder_.filePath(name).toStdString(); }
    QString qpath(const char* name) const { return folder_.filePath(name); }
    void write(const char* name, const std::string& text) const {
        QFile file(qpath(name));
        ASSERT_TRUE(file.open(QIODevice::WriteOnly));
        file.write(text.data(), static_cast<qint64>(text.size()));
    }
    // A program in the place of rehearse.
    void fake(const std::string& body) const {
        write("rehearse", "#!/bin/sh\n" + body + "\n");
        QFile::setPermissions(qpath("rehearse"),
                              QFileDevice::ReadOwner | QFileDevice::WriteOwner | QFileDevice::ExeOwner);
    }
    bool wait(const std::function<bool()>& until) const { return QTest::qWaitFor(until, 20'000); }
    void open(const char* name) {
        const std::size_t before = window_->session().documents.size();
        window_->open(qpath(name));
        ASSERT_TRUE(
            wait([&] { return window_->session().documents.size() > before || !window_->message().isEmpty(); }));
    }
    template <typename Kind>
    Kind* find(const char* name) const {
        return static_cast<Kind*>(window_->findChild<QWidget*>(name));
    }
    static QByteArray content_of(const QString& path) {
        QFile file(path);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    TimelineView* timeline() const { return find<TimelineView>("timeline_view"); }
    int colors(const QWidget* widget) const {
        const QImage image = const_cast<QWidget*>(widget)->grab().toImage();
        std::set<QRgb> seen;
        for (int y = 0; y < image.height(); y += 2) {
            for (int x = 0; x < image.width(); x += 2) seen.insert(image.pixel(x, y));
        }
        return static_cast<int>(seen.size());
    }

    QTemporaryDir folder_;
    std::unique_ptr<Window> window_;
};

}  // namespace rehearse::gui
