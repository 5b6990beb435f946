// SPDX-License-Identifier: Apache-2.0
// What is opened and closed, and what the next start finds again.
#include <QDir>
#include <QDockWidget>
#include <QFileInfo>
#include <QProgressBar>
#include <QSettings>
#include <QStatusBar>
#include <QThreadPool>

#include "gui/window.hpp"

namespace rehearse::gui {

namespace {

constexpr std::pair<const char*, std::string Experiment::*> kept_words[] = {
    {"experiment/model", &Experiment::model},         {"experiment/machine", &Experiment::machine},
    {"experiment/plan", &Experiment::plan},           {"experiment/devices", &Experiment::devices},
    {"experiment/precision", &Experiment::precision}, {"experiment/optimizer", &Experiment::optimizer}};

void keep_experiment(QSettings& settings, const Experiment& experiment) {
    for (const auto& [key, word] : kept_words) settings.setValue(key, QString::fromStdString(experiment.*word));
    settings.setValue("experiment/batch", experiment.batch);
}

}  // namespace

Experiment Window::kept_experiment() {
    const QSettings settings;
    Experiment experiment;
    for (const auto& [key, word] : kept_words) {
        std::string& value = experiment.*word;
        value = settings.value(key, QString::fromStdString(value)).toString().toStdString();
    }
    experiment.batch = settings.value("experiment/batch", experiment.batch).toInt();
    return experiment;
}

// An open file that is opened again is read anew.
void Window::open(const QString& given) {
    const QString path = QDir::cleanPath(QFileInfo(given).absoluteFilePath());
    if (path.endsWith(".toml") || path.endsWith(".onnx") || path.endsWith("config.json")) return take_experiment(path);
    ++loading_;
    progress_->setValue(0);
    progress_->show();
    statusBar()->showMessage("reading " + QFileInfo(path).fileName());
    QThreadPool::globalInstance()->start([this, path, stop = stop_] {
        std::vector<Document> found;
        QString problem;
        try {
            found = load(path.toStdString(), [this, stop](double share) {
                QMetaObject::invokeMethod(this, [this, share] { progress_->setValue(static_cast<int>(1000 * share)); });
                return !stop->load();
            });
        } catch (const std::bad_alloc&) {
            problem = path + ": not enough memory for it";
        } catch (const std::exception& error) {
            problem = error.what();
        }
        if (stop->load()) return;
        QMetaObject::invokeMethod(this, [this, path, found = std::move(found), problem]() mutable {
            if (--loading_ == 0) progress_->hide();
            statusBar()->clearMessage();
            if (!problem.isEmpty()) return warn(problem);
            const std::vector<int> before = forget(path.toStdString());
            for (std::size_t i = 0; i < found.size(); ++i) {
                if (i < before.size()) found[i].id = before[i];  // screens that show it go on
                add(std::move(found[i]));
            }
            QSettings settings;
            QStringList recent = settings.value("recent").toStringList();
            recent.removeAll(path);
            recent.prepend(path);
            if (remembers_) settings.setValue("recent", QStringList(recent.mid(0, 12)));
            list_recent();
        });
    });
}

void Window::add(Document document) {
    if (!document.warning.empty()) warn(QString::fromStdString(document.warning));
    if (document.id == 0) document.id = next_id_++;
    session_.documents.push_back(std::move(document));
    const int last = static_cast<int>(session_.documents.size()) - 1;
    const Document& added = session_.documents.back();
    if (added.lanes != nullptr) session_.timeline = last;
    if (added.prediction != nullptr) session_.prediction = last, session_.point = -1;
    if (added.benchmarks != nullptr) session_.benchmarks = last;
    if (screen() == "overview") {
        if (added.lanes != nullptr && session_.prediction < 0 && added.timeline == nullptr) go("timeline");
        if (added.benchmarks != nullptr) go("kernels");
    }
    refresh();
}

void Window::close_document(int row) {
    if (session_.at(row) == nullptr) return;
    erase_document(row);
    refresh();
}

void Window::erase_document(int row) {
    session_.documents.erase(session_.documents.begin() + row);
    // What is shown stays, unless it was closed: then the last of its kind is.
    const auto settle = [&](int& current, bool (*has)(const Document&)) {
        const bool closed = current == row;
        if (current > row) --current;
        if (!closed) return false;
        const std::vector<int> with = session_.with(has);
        current = with.empty() ? -1 : with.back();
        return true;
    };
    settle(session_.timeline, [](const Document& d) { return d.lanes != nullptr; });
    if (settle(session_.prediction, [](const Document& d) { return d.prediction != nullptr; })) session_.point = -1;
    settle(session_.benchmarks, [](const Document& d) { return d.benchmarks != nullptr; });
}

// What was read of a file goes, without a word to the screens: something comes in its place. The ids that it had.
std::vector<int> Window::forget(const std::string& path) {
    std::vector<int> ids;
    for (int row = 0; row < static_cast<int>(session_.documents.size());) {
        const Document& document = *session_.at(row);
        if (document.path != path) {
            ++row;
            continue;
        }
        ids.push_back(document.id);
        erase_document(row);
    }
    return ids;
}

// A machine, a network or a whole experiment: small files, read at once.
void Window::take_experiment(const QString& path) {
    try {
        session_.experiment = experiment_in(path.toStdString(), session_.experiment);
    } catch (const std::exception& error) {
        return warn(error.what());
    }
    screen("editor")->refresh();
    go("editor");
}

void Window::keep() {
    QSettings settings;
    settings.setValue("geometry", saveGeometry());
    settings.setValue("state", saveState());
    QStringList beside;
    for (const auto& [name, dock] : beside_) beside << QString::fromStdString(name);
    settings.setValue("beside", beside);
    settings.setValue("screen", QString::fromStdString(screen()));
    settings.setValue("theme", theme_ == picture::Theme::dark ? "dark" : "light");
    settings.setValue("scale", scale_);
    QStringList open;
    for (const Document& document : session_.documents) {
        const QString path = QString::fromStdString(document.path);
        if (!path.isEmpty() && !path.contains("/rehearse-run-") && !open.contains(path)) open << path;
    }
    settings.setValue("open", open);
    keep_experiment(settings, session_.experiment);
}

void Window::restore() {
    const QSettings settings;
    restoreGeometry(settings.value("geometry").toByteArray());
    for (const QString& name : settings.value("beside").toStringList()) put_beside(name.toStdString());
    restoreState(settings.value("state").toByteArray());
    set_theme(settings.value("theme").toString() == "dark" ? picture::Theme::dark : picture::Theme::light);
    if (const double scale = settings.value("scale", 1).toDouble(); scale != 1) set_scale(scale);
    for (const QString& path : settings.value("open").toStringList()) {
        if (QFileInfo::exists(path)) open(path);
    }
    if (settings.contains("screen")) go(settings.value("screen").toString().toStdString());
}

}  // namespace rehearse::gui
