// SPDX-License-Identifier: Apache-2.0
// A job in which rank 1 comes to grief in its third training step, in the way that the first argument names.
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace {

using namespace rehearse;

void strike(std::string_view how, int iteration, const Step& step) {
    if (iteration != 2) return;
    const std::string text = fmt::format("the third step of {} fails", step.name);
    const bool at_fc1 = step.name == "fc1:forward";
    if (how == "compute" && at_fc1) throw BackendError(text);
    if (how == "communication" && step.name == "bucket0:allreduce") throw BackendError(text);
    if (how == "killed" && at_fc1) std::raise(SIGKILL);
    if (how == "exit" && at_fc1) std::_Exit(7);
}

int train(const run::Session& session, std::string_view how) {
    const kernels::Communicator world = kernels::Communicator::world();
    if (how == "input-of-one" && session.rank() == 1) throw InputError("no such file");
    const std::int64_t ranks = how == "input-of-all" ? session.size() + 1 : session.size();
    const Schedule schedule = test::schedule_of(models::load_network("lenet5"), "data", ranks, 4);
    run::Options options;
    options.steps = 4;
    run::train_on(world, schedule, options, {}, [&](int iteration, const Step& step) {
        if (session.rank() == 1) strike(how, iteration, step);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view how = argc > 1 ? argv[1] : "";
    const run::Session session{argc, argv};
    return session.run("rehearse run", [&] { return train(session, how); });
}
