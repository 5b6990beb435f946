// SPDX-License-Identifier: Apache-2.0
// Trains on weather maps and looks whether they are told apart better in the end than at first:
//   climate_job NETWORK BATCH STEPS LEARNING_RATE AT_LEAST
// Good when the mean intersection over union of the last fifth of the steps is AT_LEAST more than that of the first.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/comm/communicator.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace {

using namespace rehearse;

int train(const run::Session& session, char** argv) {
    const kernels::Communicator world = kernels::Communicator::world();
    const Schedule schedule =
        test::schedule_of(models::load_network(argv[1]), "data", session.size(), std::atoi(argv[2]), Optimizer::adam);
    const run::Options options{.steps = std::atoi(argv[3]),
                               .learning_rate = static_cast<float>(std::atof(argv[4])),
                               .record = false,
                               .data = "climate"};
    const run::Result result = run::train_on(world, schedule, options, {}, {});
    if (session.rank() != 0) return 0;
    const std::size_t part = std::max<std::size_t>(1, result.steps.size() / 5);
    double first = 0, last = 0, wait = 0;
    for (std::size_t i = 0; i < part; ++i) {
        first += result.steps[i].mean_iou / static_cast<double>(part);
        last += result.steps[result.steps.size() - 1 - i].mean_iou / static_cast<double>(part);
    }
    for (const run::StepReport& step : result.steps) wait += step.input_wait.value;
    fmt::print(
        "{}: mean IoU {:.3f} in the first {} steps, {:.3f} in the last; loss {:.3f} to {:.3f}; {:.3f} s for samples\n",
        argv[1], first, part, last, result.steps.front().loss, result.steps.back().loss, wait);
    return last - first >= std::atof(argv[5]) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const run::Session session{argc, argv};
    if (argc != 6) return 2;
    return session.run("climate_job", [&] { return train(session, argv); });
}
