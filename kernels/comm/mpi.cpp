// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/mpi.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "core/error.hpp"

namespace rehearse::kernels {

void check(int status, const char* call) {
    if (status == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(status, text.data(), &length);
    throw BackendError(fmt::format("{}: {}", call, std::string_view{text.data(), static_cast<std::size_t>(length)}));
}

}  // namespace rehearse::kernels
