// SPDX-License-Identifier: Apache-2.0
#include "picture/stairs.hpp"

#include <algorithm>
#include <span>

namespace rehearse::picture {

std::vector<Point> stairs_of(const Counter& counter, double unit) {
    constexpr std::size_t most_groups = 4000;
    const std::span all{counter.points};
    const std::size_t each = all.size() / most_groups + 1;
    std::vector<Point> stairs;
    for (std::size_t begin = 0; begin < all.size(); begin += each) {
        const auto group = all.subspan(begin, std::min(each, all.size() - begin));
        const double most = std::ranges::max_element(group, {}, &std::pair<Seconds, double>::second)->second / unit;
        const double start = group.front().first.value, end = group.back().first.value;
        if (!stairs.empty()) stairs.push_back({start, stairs.back().y});
        stairs.push_back({start, most});
        if (group.size() == 1) continue;
        stairs.push_back({end, most});
        stairs.push_back({end, group.back().second / unit});
    }
    return stairs;
}

}  // namespace rehearse::picture
