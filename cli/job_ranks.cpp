// SPDX-License-Identifier: Apache-2.0
#include "cli/job_ranks.hpp"

#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#if REHEARSE_HAS_MPI
#include "kernels/comm/counter.hpp"
#include "run/train.hpp"
#endif

namespace rehearse::cli {

namespace {

bool has_several_ranks() {
    const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
    if (ranks == nullptr) ranks = std::getenv("PMI_SIZE");
    return ranks != nullptr && std::string_view{ranks} != "1";
}

#if REHEARSE_HAS_MPI
int together(const std::function<int(const RankPlace&)>& body) {
    int argc = 0;
    char** argv = nullptr;
    const run::Session session{argc, argv};
    return session.run("rehearse", [&] {
        kernels::Communicator world = kernels::Communicator::world();
        kernels::Counter counter{world};
        RankPlace place{.speaks = session.rank() == 0};
        place.ranks.take = [&] { return counter.take(); };
        place.ranks.exchange = [&](const std::string& own) {
            std::vector<std::string> all = world.all_gather(own);
            counter.restart();
            return all;
        };
        return body(place);
    });
}
#endif

}  // namespace

int on_all_ranks(const std::function<int(const RankPlace&)>& body) {
    if (!has_several_ranks()) return body({});
#if REHEARSE_HAS_MPI
    return together(body);
#else
    throw BackendError("several ranks: this build has no MPI (install libopenmpi-dev, configure with REHEARSE_MPI=ON)");
#endif
}

}  // namespace rehearse::cli
