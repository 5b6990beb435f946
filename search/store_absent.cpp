// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "search/store.hpp"

namespace rehearse::search {

std::string_view absent_store() { return "built without SQLite (REHEARSE_SQLITE=OFF): searches are not kept"; }

class Store::Plans {};
Store::Store(const std::string& /*path*/, std::string /*job*/) { throw InputError(std::string{absent_store()}); }
Store::~Store() = default;
Others Store::others() { return {}; }

}  // namespace rehearse::search
