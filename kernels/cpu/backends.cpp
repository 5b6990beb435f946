// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/backends.hpp"

#include <vector>

#include "kernels/cpu/direct.hpp"
#include "kernels/cpu/fft.hpp"
#include "kernels/cpu/im2col.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/winograd.hpp"

namespace rehearse::kernels::cpu {

std::span<const Backend* const> backends() {
    static const std::vector<const Backend*> all = [] {
        std::vector<const Backend*> found{&direct(), &im2col(), &matmul()};
        for (const Backend* backend : winograd()) found.push_back(backend);
        for (const Backend* backend : fft()) found.push_back(backend);
        return found;
    }();
    return all;
}

}  // namespace rehearse::kernels::cpu
