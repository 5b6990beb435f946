// SPDX-License-Identifier: Apache-2.0
#include "run/clock.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"

namespace rehearse::run {

namespace {

constexpr std::int64_t questions = 50;

std::span<const std::byte> bytes_of(const double& value) { return std::as_bytes(std::span{&value, 1}); }
std::span<std::byte> bytes_into(double& value) { return std::as_writable_bytes(std::span{&value, 1}); }

double ask(const kernels::Communicator& world, std::int64_t rank) {
    std::vector<Probing> probings(questions);
    for (Probing& probing : probings) {
        probing.asked = now();
        world.send(bytes_of(probing.asked), rank);
        world.receive(bytes_into(probing.there), rank);
        probing.answered = now();
    }
    return ahead_by(probings);
}

}  // namespace

double ahead_by(std::span<const Probing> probings) {
    require(!probings.empty(), "a clock is asked at least once");
    const Probing& best = *std::ranges::min_element(
        probings, {}, [](const Probing& probing) { return probing.answered - probing.asked; });
    return best.there - (best.asked + best.answered) / 2;
}

double measure_ahead(const kernels::Communicator& world) {
    double ahead = 0;
    if (world.rank() == 0) {
        for (std::int64_t rank = 1; rank < world.size(); ++rank) {
            const double other = ask(world, rank);
            world.send(bytes_of(other), rank);
        }
        return ahead;
    }
    for (std::int64_t i = 0; i < questions; ++i) {
        double asked = 0;
        world.receive(bytes_into(asked), 0);
        world.send(bytes_of(now()), 0);
    }
    world.receive(bytes_into(ahead), 0);
    return ahead;
}

Alignment::Alignment(double first_time, double first_ahead, double last_time, double last_ahead)
    : first_time_(first_time),
      first_ahead_(first_ahead),
      slope_(last_time > first_time ? (last_ahead - first_ahead) / (last_time - first_time) : 0) {}

double Alignment::at_rank_zero(double time) const { return time - first_ahead_ - slope_ * (time - first_time_); }

double seconds(std::chrono::steady_clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double now() { return seconds(std::chrono::steady_clock::now()); }

}  // namespace rehearse::run
