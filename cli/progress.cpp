// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rehearse::cli {

namespace {

using Clock = std::chrono::steady_clock;

// A signal is the process's, and so is what is known of it.
std::atomic<int> signalled = 0;
std::atomic<bool> somebody_listens = false;
bool bar_is_drawn = false;

// Those of the two that whoever started this process does not want it to ignore (nohup, a shell's background jobs).
sigset_t waited_for() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM}) {
        struct sigaction now {};
        sigaction(signal, nullptr, &now);
        if (now.sa_handler != SIG_IGN) sigaddset(&set, signal);
    }
    return set;
}

[[noreturn]] void end_by(int signal) {
    std::signal(signal, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    std::raise(signal);
    std::_Exit(128 + signal);  // not reached: the default is to end
}

void wait_for_signals(sigset_t set) {
    for (int signal = 0; sigwait(&set, &signal) == 0;) {
        if (!somebody_listens || signalled.exchange(signal) != 0) end_by(signal);
    }
}

std::string time_left(double elapsed_s, std::int64_t done, std::int64_t all) {
    if (done <= 0) return "";
    const double left = elapsed_s * static_cast<double>(all - done) / static_cast<double>(done);
    if (left < 1) return "";
    const auto seconds = static_cast<std::int64_t>(left);
    if (seconds < 60) return fmt::format(", {} s left", seconds);
    if (seconds < 3600) return fmt::format(", {} min {:02} s left", seconds / 60, seconds % 60);
    return fmt::format(", {} h {:02} min left", seconds / 3600, seconds / 60 % 60);
}

std::string bar(double share) {
    constexpr int width = 30;
    const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width);
    return fmt::format("[{}{}]", std::string(static_cast<std::size_t>(full), '='),
                       std::string(static_cast<std::size_t>(width - full), ' '));
}

/// How a part of the work is shown: not more often than an eye, or a log, can follow. It begins where the part before
/// it was `last_told`.
class Display {
public:
    Display(std::string name, bool quiet, std::shared_ptr<Clock::time_point> last_told)
        : name_(std::move(name)),
          quiet_(quiet),
          terminal_(isatty(STDERR_FILENO) == 1),
          last_told_(std::move(last_told)) {}

    void show(std::int64_t done, std::int64_t all) {
        const auto now = Clock::now();
        if (!begin_) begin_ = shown_ = *last_told_;
        *last_told_ = now;
        const bool over = done >= all;
        if (over && terminal_) clear_bar();
        const auto pause = terminal_ ? std::chrono::milliseconds{100} : std::chrono::milliseconds{10'000};
        if (quiet_ || over || now - shown_ < pause) return;
        shown_ = now;
        const double elapsed = std::chrono::duration<double>(now - *begin_).count();
        const double share = static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, all));
        const std::string text =
            fmt::format("{:3.0f} % ({} of {}){}", 100 * share, done, all, time_left(elapsed, done, all));
        if (terminal_) {
            std::cerr << fmt::format("\r\033[K{} {} {}", name_, bar(share), text) << std::flush;
            bar_is_drawn = true;
        } else {
            std::cerr << fmt::format("{}: {}\n", name_, text);
        }
    }

private:
    std::string name_;
    bool quiet_, terminal_;
    std::shared_ptr<Clock::time_point> last_told_;
    std::optional<Clock::time_point> begin_{};
    Clock::time_point shown_{};
};

}  // namespace

void listen_for_signals() {
    std::signal(SIGXFSZ, SIG_IGN);
    const sigset_t set = waited_for();
    if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return;
    std::thread{wait_for_signals, set}.detach();
}

LongWork::LongWork(const Common& common)
    : common_(common), last_told_(std::make_shared<Clock::time_point>(Clock::now())) {
    require(!somebody_listens.exchange(true), "one long work at a time");
}

LongWork::~LongWork() {
    clear_bar();
    somebody_listens = false;
}

Progress LongWork::part(std::string name) const {
    return [display = Display(std::move(name), common_.quiet, last_told_)](auto done, auto all) mutable {
        display.show(done, all);
        return signalled == 0;
    };
}

bool LongWork::interrupted() const { return signalled != 0; }

void LongWork::mark(Report& report) const {
    if (!interrupted()) return;
    report.document["partial"] = true;
    if (!report.footer.empty()) report.footer += '\n';
    report.footer +=
        fmt::format("partial: ended by {} before all was done", signalled == SIGINT ? "Ctrl-C" : "SIGTERM");
}

int LongWork::exit_code(int otherwise) const { return interrupted() ? 128 + signalled : otherwise; }

void clear_bar() {
    if (!bar_is_drawn) return;
    std::cerr << "\r\033[K" << std::flush;
    bar_is_drawn = false;
}

}  // namespace rehearse::cli
