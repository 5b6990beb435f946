// SPDX-License-Identifier: Apache-2.0
#include "cluster/processes.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <utility>

#include "cluster/child.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace rehearse::cluster {

namespace {

constexpr const char* stop_file = "stop";

std::string file_name(std::size_t job, const std::string& name) {
    std::string safe = fmt::format("{:03}-{}", job, name);
    for (char& c : safe) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
    }
    return safe;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
        text.replace(at, what.size(), by);
    }
    return text;
}

/// The last line that says something.
std::string last_line(const std::filesystem::path& file) {
    std::ifstream text{file};
    std::string last, line;
    while (std::getline(text, line)) {
        if (!line.empty()) last = line;
    }
    return last;
}

/// Seconds of each training step that `rehearse run` wrote down; at least one. BackendError where it wrote something
/// else.
std::vector<double> seconds_of_steps(const std::filesystem::path& file, const std::string& job) {
    const auto refuse = [&](const std::string& why) {
        throw BackendError(fmt::format("job '{}' ended without an error, but its result says no steps: {}", job, why));
    };
    std::string text;
    try {
        text = read_file(file.string());
    } catch (const InputError& error) {
        refuse(error.what());
    }
    const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
    const auto steps = document.is_object() ? document.find("steps") : document.end();
    if (steps == document.end() || !steps->is_array() || steps->empty())
        refuse(fmt::format("{}: no JSON with \"steps\"", file.string()));
    std::vector<double> seconds;
    for (const auto& step : *steps) {
        const auto found = step.is_object() ? step.find("seconds") : step.end();
        if (found == step.end() || !found->is_number() || !(found->get<double>() >= 0))
            refuse(fmt::format("{}: step {} has no \"seconds\" of at least 0", file.string(), seconds.size()));
        seconds.push_back(found->get<double>());
    }
    return seconds;
}

}  // namespace

void check_even(const std::vector<Job>& jobs) {
    for (const Job& job : jobs) {
        if (job.batch % job.devices == 0) continue;
        throw InputError(fmt::format(
            "job '{}': a batch of {} on {} devices: jobs that run have batches that their devices share evenly",
            job.name, job.batch, job.devices));
    }
}

void prepare(const Launch& launch) {
    std::error_code failed;
    std::filesystem::create_directories(launch.folder, failed);
    if (!std::filesystem::is_directory(launch.folder)) {
        throw InputError(fmt::format("{}: no folder, and none can be made", launch.folder.string()));
    }
    if (!std::filesystem::is_empty(launch.folder)) {
        throw InputError(
            fmt::format("{}: is not empty; jobs are saved to a folder of their own", launch.folder.string()));
    }
}

Processes::Processes(const std::vector<Job>& jobs, const Launch& launch, const std::string& name)
    : jobs_(jobs),
      launch_(launch),
      folder_(std::filesystem::absolute(launch.folder) / name),
      steps_(jobs.size(), 0),
      starts_(jobs.size(), 0) {
    std::filesystem::create_directories(folder_);
}

Processes::~Processes() {
    for (const Process& process : processes_) end_child(process.id);
}

Seconds Processes::now() const {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
}

std::filesystem::path Processes::folder_of(int job) const {
    const auto j = static_cast<std::size_t>(job);
    return folder_ / file_name(j, jobs_[j].name);
}

std::vector<std::string> Processes::words(const Process& process) const {
    const Assignment& given = process.assignment;
    const std::filesystem::path folder = folder_of(given.job);
    std::string launcher = replaced(launch_.launcher, "{ranks}", std::to_string(given.share.devices));
    launcher = replaced(launcher, "{devices}", fmt::format("{}", fmt::join(given.devices, ",")));
    launcher = replaced(launcher, "{job}", folder.string());
    std::vector<std::string> words;
    for (const std::string_view word : split(launcher, ' ')) {
        if (!word.empty()) words.emplace_back(word);
    }
    for (const char* word : {launch_.program.c_str(), "run", "--model"}) words.emplace_back(word);
    words.push_back(jobs_[static_cast<std::size_t>(given.job)].model);
    words.insert(words.end(), launch_.options.begin(), launch_.options.end());
    const auto option = [&](const char* name, const std::string& value) {
        words.emplace_back(name);
        words.push_back(value);
    };
    option("--global-batch", std::to_string(given.share.batch));
    option("--steps", std::to_string(process.until_step));
    option("--checkpoint", (folder / "checkpoints").string());
    option("--checkpoint-every", "1000000000");  // at its end
    option("--stop-file", (folder / stop_file).string());
    option("--format", "json");
    option("--output", process.result.string());
    if (given.again) words.insert(words.end(), {"--resume", "--rebatch"});
    return words;
}

void Processes::start(const Assignment& assignment) {
    const auto j = static_cast<std::size_t>(assignment.job);
    const std::filesystem::path folder = folder_of(assignment.job);
    std::filesystem::create_directories(folder);
    std::filesystem::remove(folder / stop_file);
    Process process{.assignment = assignment, .since = now()};
    const auto batch = static_cast<double>(assignment.share.batch);
    process.until_step = steps_[j] + std::max<std::int64_t>(1, std::llround(std::ceil(assignment.samples / batch)));
    process.result = folder / fmt::format("start-{}.json", starts_[j]);
    process.log = folder / fmt::format("start-{}.log", starts_[j]);
    ++starts_[j];
    const bool pins = launch_.pins && usable_cores() > 1;
    process.id = start_child(words(process), process.log, pins ? assignment.devices : std::vector<std::int64_t>{});
    processes_.push_back(std::move(process));
}

void Processes::stop(int job) {
    const std::filesystem::path file = folder_of(job) / stop_file;
    if (!std::ofstream{file}) throw BackendError(fmt::format("{}: cannot be written", file.string()));
}

Stopped Processes::ended(const Process& process, int status) {
    const auto j = static_cast<std::size_t>(process.assignment.job);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        throw BackendError(fmt::format("job '{}' failed ({}): {} ({})", jobs_[j].name,
                                       WIFEXITED(status) ? fmt::format("exit code {}", WEXITSTATUS(status))
                                                         : fmt::format("signal {}", WTERMSIG(status)),
                                       last_line(process.log), process.log.string()));
    }
    const std::vector<double> seconds = seconds_of_steps(process.result, jobs_[j].name);
    const auto steps = static_cast<std::int64_t>(seconds.size());
    steps_[j] += steps;
    const Share& share = process.assignment.share;
    double step = seconds.front();
    if (steps > 1) step = std::accumulate(seconds.begin() + 1, seconds.end(), 0.0) / static_cast<double>(steps - 1);
    const double trains = step * static_cast<double>(steps);
    const Seconds idle{std::max(0.0, (now() - process.since).value - trains)};
    measured_.push_back({process.assignment.job, share, steps, Seconds{step}, idle});
    const double trained = static_cast<double>(steps * share.batch);
    return {process.assignment.job, steps_[j] >= process.until_step, std::min(trained, process.assignment.samples),
            idle};
}

std::vector<Stopped> Processes::wait(Seconds until) {
    for (;;) {
        std::vector<Stopped> stopped;
        for (std::size_t i = 0; i < processes_.size();) {
            int status = 0;
            if (waitpid(processes_[i].id, &status, WNOHANG) != processes_[i].id) {
                ++i;
                continue;
            }
            const Process process = std::move(processes_[i]);
            processes_.erase(processes_.begin() + static_cast<std::ptrdiff_t>(i));
            stopped.push_back(ended(process, status));
        }
        if (!stopped.empty() || now() >= until) return stopped;
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
        if (is_over()) return stopped;
    }
}

}  // namespace rehearse::cluster
