// SPDX-License-Identifier: Apache-2.0
// MPI's beginning and its two ends: all ranks together, or at once when one rank cannot go on.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <thread>

#include "core/error.hpp"
#include "core/quoting.hpp"
#include "kernels/comm/communicator.hpp"
#include "kernels/comm/mpi.hpp"
#include "kernels/threads.hpp"
#include "run/train.hpp"

namespace rehearse::run {

namespace {

std::string_view name_of(int level) {
    switch (level) {
        case MPI_THREAD_SINGLE:
            return "MPI_THREAD_SINGLE";
        case MPI_THREAD_FUNNELED:
            return "MPI_THREAD_FUNNELED";
        default:
            return "MPI_THREAD_SERIALIZED";
    }
}

// Serialized is enough: within a step one of two threads calls MPI at a time, between steps only the main thread.
void start(int& argc, char**& argv) {
    int granted = MPI_THREAD_SINGLE;
    kernels::check(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &granted), "MPI_Init_thread");
    if (granted >= MPI_THREAD_SERIALIZED) return;
    throw BackendError(
        fmt::format("this MPI grants {}, but communication beside computation needs MPI_THREAD_SERIALIZED: "
                    "use an MPI built with thread support",
                    name_of(granted)));
}

}  // namespace

struct Session::Impl {
    kernels::Communicator world = kernels::Communicator::world();
    std::int64_t local_size = world.node().size();
    int threads = kernels::choose_threads();

    bool all_fail_alike(const std::string& why) const;
};

Session::Session(int& argc, char**& argv) {
    start(argc, argv);
    impl_ = std::make_unique<Impl>();
}

// After a failure that nobody handled the others may be anywhere, and MPI_Finalize would wait for them. The exit
// without it is what mpirun takes as the end of the job.
Session::~Session() {
    if (std::uncaught_exceptions() > 0) return;
    impl_.reset();
    MPI_Finalize();
}

RankIndex Session::rank() const { return RankIndex{impl_->world.rank()}; }
std::int64_t Session::size() const { return impl_->world.size(); }
std::int64_t Session::local_size() const { return impl_->local_size; }
int Session::threads() const { return impl_->threads; }

void Session::leave(int exit_code) const {
    std::cout << std::flush;
    std::cerr << std::flush;
    std::fflush(nullptr);
    std::_Exit(exit_code);
}

void Session::abort(int exit_code) const {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
}

// A wrong option strikes all ranks at the same moment; a file that one host lacks strikes some. Half a second tells.
bool Session::Impl::all_fail_alike(const std::string& why) const {
    struct Alone {};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds{500};
    try {
        world.barrier([&] {
            if (std::chrono::steady_clock::now() > deadline) throw Alone{};
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        });
    } catch (const Alone&) {
        return false;
    }
    const double own = static_cast<double>(std::hash<std::string>{}(why) >> 12);  // exact in a double
    const std::vector<double> all = world.all_gather({&own, 1});
    return std::ranges::count(all, own) == world.size();
}

int Session::run(std::string_view program, const std::function<int()>& body) const {
    const auto say = [&](const std::string& what) {
        const std::string why = printable(what);
        // One write, so that the lines of several ranks do not mix.
        std::cerr << (size() == 1 ? fmt::format("{}: {}\n", program, why)
                                  : fmt::format("{}: rank {}: {}\n", program, rank(), why))
                  << std::flush;
    };
    try {
        return body();
    } catch (const InputError& error) {
        if (impl_->all_fail_alike(error.what())) {
            if (rank() == 0) std::cerr << fmt::format("{}: {}\n", program, printable(error.what())) << std::flush;
            return 2;
        }
        say(error.what());
        abort(2);
    } catch (const InfeasibleError& error) {
        say(error.what());
        abort(4);
    } catch (const std::exception& error) {
        say(error.what());
        abort(3);
    }
}

}  // namespace rehearse::run
