// SPDX-License-Identifier: Apache-2.0
#include "cluster/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "core/error.hpp"

namespace rehearse::cluster {

namespace {

std::vector<int> cores_of(const cpu_set_t& set) {
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
    return cores;
}

cpu_set_t own_cores() {
    cpu_set_t own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof own, &own) != 0) throw BackendError("the cores of this process are not known");
    return own;
}

/// While it is there, this thread keeps to some of its cores, and what it starts does.
class Pinned {
public:
    explicit Pinned(std::span<const std::int64_t> wanted) : before_(own_cores()) {
        if (wanted.empty()) return;
        const std::vector<int> all = cores_of(before_);
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const std::int64_t core : wanted) CPU_SET(all[static_cast<std::size_t>(core) % all.size()], &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

private:
    cpu_set_t before_;
};

/// A group of its own, all signals as they usually are, output into the log.
class Attributes {
public:
    explicit Attributes(const std::filesystem::path& log) {
        posix_spawn_file_actions_init(&files_);
        posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        posix_spawn_file_actions_adddup2(&files_, STDOUT_FILENO, STDERR_FILENO);
        posix_spawnattr_init(&spawn_);
        sigset_t none, usual;
        sigemptyset(&none);
        sigfillset(&usual);
        posix_spawnattr_setsigmask(&spawn_, &none);
        posix_spawnattr_setsigdefault(&spawn_, &usual);
        posix_spawnattr_setpgroup(&spawn_, 0);
        posix_spawnattr_setflags(&spawn_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~Attributes() {
        posix_spawn_file_actions_destroy(&files_);
        posix_spawnattr_destroy(&spawn_);
    }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;

    int start(pid_t& id, char* const* words, char* const* environment) const {
        return posix_spawnp(&id, words[0], &files_, &spawn_, words, environment);
    }

private:
    posix_spawn_file_actions_t files_{};
    posix_spawnattr_t spawn_{};
};

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words) all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

/// Ours, and what Open MPI needs to start several jobs beside each other on given cores: they are pinned already, to no
/// fewer cores than it would find; others do not read these.
std::vector<std::string> environment() {
    std::vector<std::string> all;
    for (char** word = environ; *word != nullptr; ++word) all.emplace_back(*word);
    const auto set = [&](const std::string& setting) {  // unless the user has
        const std::string name = setting.substr(0, setting.find('=') + 1);
        if (std::ranges::none_of(all, [&](const std::string& own) { return own.starts_with(name); })) {
            all.push_back(setting);
        }
    };
    for (const char* setting :
         {"OMPI_MCA_hwloc_base_binding_policy=none", "OMPI_MCA_rmaps_base_oversubscribe=1",
          "PRTE_MCA_hwloc_default_binding_policy=none", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"}) {
        set(setting);
    }
    for (const char* setting : {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                "PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1"}) {
        if (geteuid() == 0) set(setting);
    }
    return all;
}

}  // namespace

pid_t start_child(const std::vector<std::string>& words, const std::filesystem::path& log,
                  std::span<const std::int64_t> cores) {
    require(!words.empty(), "a program to start");
    std::vector<std::string> own = words, all = environment();
    const Pinned pinned{cores};
    pid_t id = -1;
    const int failed = Attributes{log}.start(id, pointers(own).data(), pointers(all).data());
    if (failed == 0) return id;
    throw BackendError(fmt::format("'{}' cannot be started: {}", words.front(), std::strerror(failed)));
}

std::int64_t usable_cores() { return static_cast<std::int64_t>(cores_of(own_cores()).size()); }

void end_child(pid_t group) {
    kill(-group, SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{5};
    while (waitpid(group, nullptr, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() > deadline) kill(-group, SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

}  // namespace rehearse::cluster
