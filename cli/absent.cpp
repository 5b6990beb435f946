// SPDX-License-Identifier: Apache-2.0
// Commands that this build cannot have: they say why, and end with exit code 3.
#include <CLI/CLI.hpp>
#include <string>

#include "cli/command.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

namespace {

[[maybe_unused]] Run absent(CLI::App& app, std::string why) {
    app.allow_extras();
    return [why = std::move(why)]() -> int { throw BackendError(why); };
}

}  // namespace

#if !REHEARSE_HAS_SIM
Run add_explain(CLI::App& app) {
    return absent(app, "explain: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_search(CLI::App& app) {
    return absent(app, "search: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_cluster(CLI::App& app) {
    return absent(app, "cluster: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_learners(CLI::App& app) {
    return absent(app, "learners: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_report(CLI::App& app) {
    return absent(app, "report: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
Run add_predict(CLI::App& app) {
    return absent(app, "predict: this build has no SimGrid (install libsimgrid-dev, configure with REHEARSE_SIM=ON)");
}
#endif

#if !REHEARSE_HAS_MPI
Run add_run(CLI::App& app) {
    return absent(app, "run: this build has no MPI (install libopenmpi-dev, configure with REHEARSE_MPI=ON)");
}
#endif

#if !REHEARSE_HAS_BENCH
Run add_bench(CLI::App& app) {
    return absent(app, "bench: this build has no Google Benchmark (install libbenchmark-dev, REHEARSE_BENCH=ON)");
}
Run add_calibrate(CLI::App& app) {
    return absent(app, "calibrate: this build has no Google Benchmark (install libbenchmark-dev, REHEARSE_BENCH=ON)");
}
#endif

}  // namespace rehearse::cli
