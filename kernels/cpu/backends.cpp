// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/backends.hpp"

#include <array>

#include "kernels/cpu/direct.hpp"
#include "kernels/cpu/im2col.hpp"
#include "kernels/cpu/matmul.hpp"

namespace rehearse::kernels::cpu {

std::span<const Backend* const> backends() {
    static const std::array all{&direct(), &im2col(), &matmul()};
    return all;
}

}  // namespace rehearse::kernels::cpu
