// SPDX-License-Identifier: Apache-2.0
// The table of methods.
#include <algorithm>
#include <array>

#include "run/methods/averaging.hpp"
#include "run/methods/compression.hpp"
#include "run/methods/curvature.hpp"
#include "run/methods/lag.hpp"
#include "run/methods/method.hpp"
#include "run/methods/servers.hpp"
#include "run/methods/synchronous.hpp"
#include "run/reference/single_rank.hpp"

namespace rehearse::run {

namespace {

template <typename Made>
std::unique_ptr<Method> make(RankContext& rank) {
    return std::make_unique<Made>(rank);
}

const std::array<MethodRow, 6> rows{{
    {.name = "synchronous", .used = [](const Schedule&) { return true; }, .make = make<SynchronousMethod>},
    {.name = "averaging",
     .used = [](const Schedule& s) { return s.averaging.period > 0; },
     .make = make<AveragingMethod>,
     .sums_gradients = false,
     .own_state = true,
     .reference = train_models},
    {.name = "servers",
     .used = [](const Schedule& s) { return s.servers.count > 0; },
     .make = make<ServersMethod>,
     .sums_gradients = false,
     .own_state = true,
     .reference = train_by_servers},
    {.name = "compression",
     .used = [](const Schedule& s) { return s.compression != Compression{}; },
     .make = make<CompressionMethod>,
     .sums_gradients = false,
     .own_state = true,
     .reference = train_compressed},
    {.name = "curvature",
     .used = [](const Schedule& s) { return s.curvature.period > 0; },
     .make = make<CurvatureMethod>,
     .sums_gradients = false,
     .reference = train_by_curvature},
    {.name = "lag", .used = [](const Schedule& s) { return s.lag > 0; }, .make = make<LagMethod>},
}};

}  // namespace

std::span<const MethodRow> methods() { return rows; }

std::vector<const MethodRow*> methods_of(const Schedule& schedule) {
    std::vector<const MethodRow*> used;
    for (const MethodRow& row : rows) {
        if (row.used(schedule)) used.push_back(&row);
    }
    return used;
}

bool keeps_own_states(const Schedule& schedule) {
    return std::ranges::any_of(methods_of(schedule), [](const MethodRow* row) { return row->own_state; });
}

bool sums_gradients(const Schedule& schedule) {
    return std::ranges::all_of(methods_of(schedule), [](const MethodRow* row) { return row->sums_gradients; });
}

}  // namespace rehearse::run
