// SPDX-License-Identifier: Apache-2.0
// Commands that this build cannot have: they say why, and end with exit code 3.
#include <string>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

namespace {

[[maybe_unused]] Run absent(CommandLine& app, std::string why) {
    app.allow_extras();
    return [why = std::move(why)]() -> int { throw BackendError(why); };
}

}  // namespace

#if !REHEARSE_HAS_SIM
Run add_explain(CommandLine& app) {
    return absent(app, "explain: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_search(CommandLine& app) {
    return absent(app, "search: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_cluster(CommandLine& app) {
    return absent(app, "cluster: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_learners(CommandLine& app) {
    return absent(app, "learners: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_report(CommandLine& app) {
    return absent(app, "report: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_predict(CommandLine& app) {
    return absent(app, "predict: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
#endif

#if !REHEARSE_HAS_MPI
Run add_run(CommandLine& app) {
    return absent(app, "run: this build has no MPI (install libopenmpi-dev, configure with REHEARSE_MPI=ON)");
}
#endif

#if !REHEARSE_HAS_MPI || !REHEARSE_HAS_SIM
Run add_study(CommandLine& app) {
    return absent(app, "study: this build has no MPI or no SimGrid (configure with REHEARSE_MPI=ON, REHEARSE_SIM=ON)");
}
#endif

#if !REHEARSE_HAS_BENCH
Run add_bench(CommandLine& app) {
    return absent(app, "bench: this build has no Google Benchmark (install libbenchmark-dev, REHEARSE_BENCH=ON)");
}
Run add_calibrate(CommandLine& app) {
    return absent(app, "calibrate: this build has no Google Benchmark (install libbenchmark-dev, REHEARSE_BENCH=ON)");
}
#endif

}  // namespace rehearse::cli
