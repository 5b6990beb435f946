// SPDX-License-Identifier: Apache-2.0
// Work runs in `rehearse` processes: the window never waits for it, cancel ends it, its crash is a message.
#pragma once

#include <QObject>
#include <QProcess>
#include <QStringList>
#include <functional>
#include <memory>
#include <vector>

#include "gui/table.hpp"

namespace rehearse::gui {

class Runner : public QObject {
public:
    struct Result {
        bool good = false;
        int exit_code = 0;
        QByteArray out;
        QString message;  // what to tell the user when it is not good; empty when it was cancelled
    };
    struct Job {
        int id = 0;
        QString title, command, state = "running", log, progress;
        double seconds = 0;
        double share = 0;  // of the work that is done, as far as it says so
        qint64 begun_ms = 0;
        QProcess* process = nullptr;
        QByteArray out;
        bool cancelled = false;
        std::function<void(const Result&)> done;
    };

    /// `program`: empty for the rehearse that belongs to this window.
    explicit Runner(QString program = {}, QObject* parent = nullptr);
    ~Runner() override;

    /// `done` is called once, from the event loop, also where the program cannot be started.
    int start(const QString& title, const QStringList& arguments, std::function<void(const Result&)> done);
    void cancel(int id);
    bool is_running(int id) const;
    const std::vector<std::unique_ptr<Job>>& jobs() const { return jobs_; }
    Rows rows() const;
    const QString& program() const { return program_; }

    std::function<void()> changed;

private:
    void finish(Job& job, const Result& result, const QString& state);
    static void take_log(Job& job);
    Job* find(int id) const;

    QString program_;
    std::vector<std::unique_ptr<Job>> jobs_;
    int next_ = 1;
};

/// $REHEARSE, beside this program, in the build tree beside it, or on the PATH.
QString find_rehearse();

}  // namespace rehearse::gui
