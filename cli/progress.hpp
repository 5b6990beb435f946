// SPDX-License-Identifier: Apache-2.0
// What all long commands do alike: they show how far they are on stderr, and at Ctrl-C or SIGTERM end with the results
// that they have, marked as partial.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "cli/report.hpp"
#include "core/progress.hpp"

namespace rehearse::cli {

/// SIGINT and SIGTERM are taken by a thread of their own from here on: a LongWork hears of them, and without one they
/// end the process as they would have. Called before any other thread is there, as these inherit which signals they
/// see. (SimGrid has a handler for SIGINT, which would end a simulation with a list of its actors.) SIGXFSZ is ignored:
/// a file beyond the limit of its size (ulimit -f) is then one that cannot be written.
void listen_for_signals();

/// While one is there, the first SIGINT or SIGTERM asks the work to end and the second ends the process. One at a time.
class LongWork {
public:
    explicit LongWork(const Common& common);
    ~LongWork();
    LongWork(const LongWork&) = delete;
    LongWork& operator=(const LongWork&) = delete;

    /// Listens to a part of the work. On a terminal it draws a bar with the time that is left, elsewhere it writes a
    /// line every ten seconds; with -q neither. Answers false once the work should end. Must not outlive this.
    Progress part(std::string name) const;

    bool interrupted() const;

    /// When interrupted: "partial": true in the document and a line below its tables.
    void mark(Report& report) const;
    /// `otherwise`, or 128 + the signal's number when interrupted.
    int exit_code(int otherwise) const;

private:
    Common common_;
    std::shared_ptr<std::chrono::steady_clock::time_point> last_told_;  // of any part; before: when this was made
};

/// Takes the bar off the terminal, so that other text can be written.
void clear_bar();

}  // namespace rehearse::cli
