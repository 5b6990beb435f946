// SPDX-License-Identifier: Apache-2.0
// The store of a build without SQLite: it says so.
#include "core/error.hpp"
#include "kernels/tuned/store.hpp"

namespace rehearse::kernels::tuned {

std::string_view absent() {
    return "built without SQLite (install libsqlite3-dev, configure with -DREHEARSE_SQLITE=ON)";
}

std::vector<Stored> stored(const std::string& /*path*/) { throw BackendError(std::string{absent()}); }

std::vector<Winner> load(const std::string& /*path*/, std::string_view /*fingerprint*/) {
    throw BackendError(std::string{absent()});
}

void save(const std::string& /*path*/, std::string_view /*fingerprint*/, const std::vector<Winner>& /*winners*/) {
    throw BackendError(std::string{absent()});
}

}  // namespace rehearse::kernels::tuned
