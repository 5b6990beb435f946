// SPDX-License-Identifier: Apache-2.0
// What nodes and fabrics are drawn with, inside picture/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/machine.hpp"
#include "picture/chart.hpp"
#include "picture/link_load.hpp"
#include "picture/topology.hpp"

namespace rehearse::picture {

inline constexpr Color device_color{86, 180, 233}, bridge_color{170, 170, 178}, nic_color{230, 159, 0};

/// A direction of a drawn link, as LinkUse has it.
struct LinkName {
    std::string single, kind;
};

struct TopologyPen {
    Picture& picture;
    Theme theme;
    const Palette& colors;
    const LinkShares& use;  // empty: links are drawn without a load

    void text(Point at, const std::string& words, Anchor anchor = Anchor::middle, bool faint = false, double size = 11,
              bool bold = false) const;
    void box(Point center, double width, double height, Color color, const std::string& words,
             const std::string& title) const;
    /// Coloured by the busiest of its directions; `title` says rate, latency, source, and how busy it is.
    void link(std::vector<Point> path, double width, const std::vector<LinkName>& directions,
              const std::string& title) const;
};

/// Up and down, of `count` NICs of a node from `first` on.
std::vector<LinkName> nics_of(std::int64_t node, std::int64_t first, std::int64_t count);

/// "gpu0 – nic0: 25 GB/s each direction, 1 us", then the source.
std::string link_title(const std::string& what, Bandwidth bandwidth, Seconds latency, const std::string& source);

/// Switches, groups or routers, and a few of what hangs on each.
void draw_fabric(const TopologyPen& pen, const Machine& machine, Box box);

}  // namespace rehearse::picture
