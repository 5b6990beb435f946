// SPDX-License-Identifier: Apache-2.0
#include "gui/runner.hpp"

#include <QCoreApplication>
#include <QDateTime>
#include <QFileInfo>
#include <QRegularExpression>
#include <QStandardPaths>
#include <algorithm>

namespace rehearse::gui {

namespace {

constexpr int most_log = 200'000;

QString meaning(int code) {
    switch (code) {
        case 1:
            return "a check failed";
        case 2:
            return "wrong input";
        case 3:
            return "a library or device refused";
        case 4:
            return "does not fit in memory";
        default:
            return QString("exit code %1").arg(code);
    }
}

Runner::Result result_of(const Runner::Job& job, int code, QProcess::ExitStatus status) {
    if (job.cancelled) return {false, code, {}, {}};
    const QString said = job.log.trimmed();
    if (status == QProcess::CrashExit) {
        return {false, code, job.out,
                QString("%1: its process was killed or crashed (signal %2)%3")
                    .arg(job.title)
                    .arg(code)
                    .arg(said.isEmpty() ? "" : "\n" + said)};
    }
    if (code == 0) return {true, 0, job.out, {}};
    return {false, code, job.out, QString("%1: %2\n%3").arg(job.title, meaning(code), said)};
}

}  // namespace

QString find_rehearse() {
    const QString set = qEnvironmentVariable("REHEARSE");
    if (!set.isEmpty()) return set;
    const QString here = QCoreApplication::applicationDirPath();
    for (const QString& candidate : {here + "/rehearse", here + "/../cli/rehearse", here + "/../../cli/rehearse"}) {
        if (QFileInfo(candidate).isExecutable()) return QFileInfo(candidate).canonicalFilePath();
    }
    const QString found = QStandardPaths::findExecutable("rehearse");
    return found.isEmpty() ? "rehearse" : found;
}

Runner::Runner(QString program, QObject* parent) : QObject(parent), program_(std::move(program)) {
    if (program_.isEmpty()) program_ = find_rehearse();
}

Runner::~Runner() {
    for (const auto& job : jobs_) {
        if (job->process == nullptr) continue;
        job->process->disconnect();
        job->process->kill();
        job->process->waitForFinished(1000);
    }
}

int Runner::start(const QString& title, const QStringList& arguments, std::function<void(const Result&)> done) {
    auto& job = *jobs_.emplace_back(std::make_unique<Job>());
    job.id = next_++;
    job.title = title;
    job.command = QFileInfo(program_).fileName() + " " + arguments.join(' ');
    job.begun_ms = QDateTime::currentMSecsSinceEpoch();
    job.done = std::move(done);
    job.process = new QProcess(this);
    Job* const place = &job;
    connect(job.process, &QProcess::readyReadStandardOutput, this,
            [place] { place->out += place->process->readAllStandardOutput(); });
    connect(job.process, &QProcess::readyReadStandardError, this, [this, place] {
        take_log(*place);
        if (changed) changed();
    });
    connect(job.process, &QProcess::finished, this, [this, place](int code, QProcess::ExitStatus status) {
        place->out += place->process->readAllStandardOutput();
        take_log(*place);
        const Result result = result_of(*place, code, status);
        finish(*place, result, place->cancelled ? "cancelled" : result.good ? "done" : "failed");
    });
    connect(job.process, &QProcess::errorOccurred, this, [this, place](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart) return;
        finish(*place,
               {false,
                -1,
                {},
                QString("%1 cannot be started: %2\nSet the environment variable REHEARSE to the program.")
                    .arg(program_, place->process->errorString())},
               "failed");
    });
    job.process->start(program_, arguments);
    if (changed) changed();
    return job.id;
}

// "progress 3/6 384 devices" says how far it is; all other lines are the log.
void Runner::take_log(Job& job) {
    static const QRegularExpression progress("progress (\\d+)/(\\d+) ([^\n]*)\n");
    job.log += QString::fromUtf8(job.process->readAllStandardError());
    qsizetype at = job.log.indexOf("progress ");
    for (QRegularExpressionMatch match; at >= 0; at = job.log.indexOf("progress ", at)) {
        match =
            progress.match(job.log, at, QRegularExpression::NormalMatch, QRegularExpression::AnchorAtOffsetMatchOption);
        if (!match.hasMatch() || (at > 0 && job.log[at - 1] != '\n')) {
            ++at;
            continue;
        }
        job.share = match.captured(1).toDouble() / std::max(match.captured(2).toDouble(), 1.0);
        job.progress = QString("%1 of %2: %3").arg(match.captured(1), match.captured(2), match.captured(3));
        job.log.remove(at, match.capturedLength());
    }
    job.log = job.log.right(most_log);
}

void Runner::finish(Job& job, const Result& result, const QString& state) {
    if (job.process == nullptr) return;
    job.seconds = static_cast<double>(QDateTime::currentMSecsSinceEpoch() - job.begun_ms) / 1e3;
    job.state = state;
    job.process->deleteLater();
    job.process = nullptr;
    job.out.clear();
    if (!result.message.isEmpty() && !job.log.contains(result.message)) job.log = result.message;
    const auto done = std::move(job.done);
    job.done = nullptr;
    if (done) done(result);
    if (changed) changed();
}

Runner::Job* Runner::find(int id) const {
    const auto found = std::ranges::find(jobs_, id, [](const auto& job) { return job->id; });
    return found == jobs_.end() ? nullptr : found->get();
}

void Runner::cancel(int id) {
    Job* job = find(id);
    if (job == nullptr || job->process == nullptr) return;
    job->cancelled = true;
    job->process->kill();
}

bool Runner::is_running(int id) const {
    const Job* job = find(id);
    return job != nullptr && job->process != nullptr;
}

Rows Runner::rows() const {
    Rows rows{{"run", "state", "done", "progress", "time", "what", "command"}, {}};
    for (const auto& job : jobs_) {
        const double now = job->process != nullptr
                               ? static_cast<double>(QDateTime::currentMSecsSinceEpoch() - job->begun_ms) / 1e3
                               : job->seconds;
        rows.rows.push_back({count(job->id),
                             {job->state.toStdString(), {}},
                             percent(job->state == "done" ? 1 : job->share),
                             {job->progress.toStdString(), {}},
                             seconds(now),
                             {job->title.toStdString(), {}},
                             {job->command.toStdString(), {}}});
    }
    return rows;
}

}  // namespace rehearse::gui
