// SPDX-License-Identifier: Apache-2.0
// Which rows of embedding tables are looked up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/embedding.hpp"
#include "core/error.hpp"

namespace rehearse::bench {

std::vector<std::int32_t> zipf_rows(std::int64_t vocabulary, double skew, std::int64_t count, std::uint64_t seed) {
    if (!(skew >= 0)) throw InputError(fmt::format("--skew {}: at least 0", skew));
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> uniform{0, 1};
    std::vector<double> up_to(static_cast<std::size_t>(skew > 0 ? vocabulary : 0));
    double sum = 0;
    for (std::size_t r = 0; r < up_to.size(); ++r) up_to[r] = sum += std::pow(static_cast<double>(r + 1), -skew);
    std::vector<std::int32_t> place(static_cast<std::size_t>(vocabulary));  // of each rank
    for (std::size_t r = 0; r < place.size(); ++r) place[r] = static_cast<std::int32_t>(r);
    std::ranges::shuffle(place, random);
    std::vector<std::int32_t> rows;
    rows.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        const double at = uniform(random);
        const auto rank = up_to.empty() ? static_cast<std::ptrdiff_t>(at * static_cast<double>(vocabulary))
                                        : std::ranges::lower_bound(up_to, at * sum) - up_to.begin();
        rows.push_back(place[static_cast<std::size_t>(std::min<std::ptrdiff_t>(rank, vocabulary - 1))]);
    }
    return rows;
}

}  // namespace rehearse::bench
