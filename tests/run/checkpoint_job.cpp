// SPDX-License-Identifier: Apache-2.0
// A job that saves after every step and kills one of its ranks, by SIGKILL, after so many microseconds:
//   checkpoint_job FOLDER PLAN STEPS RANK MICROSECONDS    RANK -1: none
// Rank 0 says "begins N", then "done N" after each step, then "took SECONDS" and "state HASH" of weights and moments.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/error.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace {

using namespace rehearse;

std::uint64_t hash_of(const run::Checkpoint& checkpoint) {
    std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const run::LayerState& layer : checkpoint.layers) {
        for (const auto* numbers : {&layer.weights, &layer.momentum, &layer.second_moment}) {
            for (const float number : *numbers) {
                std::uint32_t bits = 0;
                std::memcpy(&bits, &number, sizeof bits);
                hash = (hash ^ bits) * 0x100000001B3U;
            }
        }
    }
    return hash;
}

void say(const std::string& line) {
    std::fputs((line + "\n").c_str(), stdout);
    std::fflush(stdout);
}

int train(const run::Session& session, char** argv) {
    const std::string folder = argv[1];
    const kernels::Communicator world = kernels::Communicator::world();
    const Schedule schedule = test::schedule_of(test::branches(), argv[2], session.size(), 8, Optimizer::adam);
    const run::Options options{.steps = std::atoi(argv[3]), .checkpoint = folder, .resume = true};
    const bool speaks = session.rank() == 0;
    if (speaks) {
        const auto file = run::newest(folder);
        say(fmt::format("begins {}", file ? run::load(*file, schedule).steps : 0));
    }
    // Killed after its last checkpoint, before it could say so.
    if (const auto file = run::newest(folder); file && run::load(*file, schedule).steps == options.steps) {
        if (speaks) say(fmt::format("state {:016x}", hash_of(run::load(*file, schedule))));
        return 0;
    }
    std::jthread killer;
    if (session.rank() == std::atoi(argv[4])) {
        killer = std::jthread{[us = std::atoi(argv[5])](const std::stop_token& stop) {
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds{us};
            while (std::chrono::steady_clock::now() < end) {
                if (stop.stop_requested()) return;
                std::this_thread::sleep_for(std::chrono::microseconds{100});
            }
            std::raise(SIGKILL);
        }};
    }
    const auto start = std::chrono::steady_clock::now();
    const auto report = [&](int step, const run::StepReport&) {
        if (speaks) say(fmt::format("done {}", step + 1));
    };
    run::train_on(world, schedule, options, report, {});
    killer = {};
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (speaks) say(fmt::format("took {}", took.count()));
    if (speaks) say(fmt::format("state {:016x}", hash_of(run::load(run::newest(folder).value(), schedule))));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const run::Session session{argc, argv};
    if (argc != 6) return 2;
    if (run::why_no_checkpoints()) {
        if (session.rank() == 0) say("skipped: " + *run::why_no_checkpoints());
        return 0;
    }
    return session.run("rehearse run", [&] { return train(session, argv); });
}
