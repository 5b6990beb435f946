// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "picture/text.hpp"
#include "picture/topology.hpp"

namespace rehearse::picture {

namespace {

// Bytes of one collective between the members of its group, by their places in it.
std::vector<double> bytes_of(const Communicate& step, Group group) {
    const Collective collective(step.kind, step.algorithm, group, step.elements);
    std::vector<double> bytes(static_cast<std::size_t>(group.size * group.size));
    const auto add = [&](std::int64_t round, double times) {
        for (const Message& message : collective.messages(round)) {
            bytes[static_cast<std::size_t>(message.from * group.size + message.to)] +=
                times * static_cast<double>(message.elements) * size_of(step.type).value;
        }
    };
    // Alike rounds may send between other pairs, so each is looked at.
    for (std::int64_t r = 0; r < collective.rounds(); ++r) add(r, 1);
    return bytes;
}

struct Adder {
    const Schedule& schedule;
    const Machine& machine;
    Traffic& traffic;

    double& cell(std::int64_t from, std::int64_t to) const {
        return traffic.bytes[static_cast<std::size_t>(from * traffic.ranks + to)];
    }

    // Of a rank class's collective: once for each group that begins with a rank of that class.
    void add(const Communicate& step, int rank_class) const {
        for (RankIndex rank{0}; rank < traffic.ranks; ++rank) {
            if (class_of(schedule, rank) != rank_class) continue;
            const std::vector<RankIndex> members = group_of(schedule.mesh, step.axis, rank);
            if (members.front() != rank || members.size() < 2) continue;
            const std::int64_t node = locate(machine, members[0]).node;
            Group group{std::ssize(members), 0};
            while (group.per_node < group.size &&
                   locate(machine, members[static_cast<std::size_t>(group.per_node)]).node == node)
                ++group.per_node;
            const std::vector<double> bytes = bytes_of(step, group);
            for (std::size_t f = 0; f < members.size(); ++f) {
                for (std::size_t t = 0; t < members.size(); ++t)
                    cell(members[f], members[t]) += bytes[f * members.size() + t];
            }
        }
    }

    void add(const Send& step, int rank_class) const {
        for (RankIndex rank{0}; rank < traffic.ranks; ++rank) {
            if (class_of(schedule, rank) != rank_class) continue;
            const std::vector<RankIndex> members = group_of(schedule.mesh, step.axis, rank);
            const auto place = std::ranges::find(members, rank) - members.begin() + step.offset;
            const auto size = std::ssize(members);
            cell(rank, members[static_cast<std::size_t>((place % size + size) % size)]) += step.bytes.value;
        }
    }
};

}  // namespace

Traffic traffic_of(const Schedule& schedule, const Machine& machine, std::int64_t most) {
    Traffic traffic{ranks(schedule.mesh), {}};
    if (traffic.ranks > most) {
        throw InputError(fmt::format("traffic between {} ranks: at most {} are drawn", traffic.ranks, most));
    }
    traffic.bytes.assign(static_cast<std::size_t>(traffic.ranks * traffic.ranks), 0);
    const Adder adder{schedule, machine, traffic};
    for (int c = 0; c < std::ssize(schedule.classes); ++c) {
        for (const Step& step : schedule.classes[static_cast<std::size_t>(c)].steps) {
            if (const auto* collective = std::get_if<Communicate>(&step.action)) adder.add(*collective, c);
            if (const auto* send = std::get_if<Send>(&step.action)) adder.add(*send, c);
        }
    }
    return traffic;
}

Picture traffic_picture(const Traffic& traffic, const Machine& machine, Size size, Theme theme) {
    const Palette& colors = palette(theme);
    const double most = std::max(*std::ranges::max_element(traffic.bytes), 1.0);
    Picture picture = canvas(size, colors, "traffic");
    const double head =
        8 + draw_heading(picture, {16, 8, size.width, 0}, "Bytes from rank (row) to rank (column) in one step",
                         fmt::format("largest: {}; lines between nodes", to_string(Bytes{most})), colors);
    const double side = std::max(std::min(size.width - 80, size.height - head - 50), 60.0);
    const double cell = side / static_cast<double>(traffic.ranks);
    const Point origin{56, head + 26};
    picture.marks.push_back(
        {Rectangle{origin, side, side}, mixed(colors.text, colors.background, 0.03), Stroke{colors.axis, 1, {}}, ""});
    for (std::int64_t from = 0; from < traffic.ranks; ++from) {
        for (std::int64_t to = 0; to < traffic.ranks; ++to) {
            const double bytes = traffic.bytes[static_cast<std::size_t>(from * traffic.ranks + to)];
            if (bytes <= 0) continue;
            const Point at{origin.x + static_cast<double>(to) * cell, origin.y + static_cast<double>(from) * cell};
            picture.marks.push_back(
                {Rectangle{at, std::max(cell - (cell > 4 ? 1 : 0), 0.5), std::max(cell - (cell > 4 ? 1 : 0), 0.5)},
                 heat_color(0.1 + 0.9 * bytes / most, theme),
                 {},
                 fmt::format("rank {} to rank {}: {}", from, to, to_string(Bytes{bytes}))});
        }
    }
    const auto every = static_cast<std::int64_t>(std::ceil(28 / cell));
    for (std::int64_t r = 0; r < traffic.ranks; ++r) {
        const double middle = (static_cast<double>(r) + 0.5) * cell;
        if (r % every == 0) {
            picture.marks.push_back(
                {Text{{origin.x - 6, origin.y + middle + half_height(10)}, fmt::format("{}", r), 10, Anchor::end},
                 colors.faint_text,
                 {},
                 ""});
            picture.marks.push_back({Text{{origin.x + middle, origin.y - 6}, fmt::format("{}", r), 10, Anchor::middle},
                                     colors.faint_text,
                                     {},
                                     ""});
        }
        if (r > 0 && locate(machine, r).node != locate(machine, r - 1).node && cell > 3) {
            const double edge = static_cast<double>(r) * cell;
            picture.marks.push_back({Path{{{origin.x + edge, origin.y}, {origin.x + edge, origin.y + side}}},
                                     {},
                                     Stroke{colors.axis, 0.6, {}},
                                     ""});
            picture.marks.push_back({Path{{{origin.x, origin.y + edge}, {origin.x + side, origin.y + edge}}},
                                     {},
                                     Stroke{colors.axis, 0.6, {}},
                                     ""});
        }
    }
    return picture;
}

}  // namespace rehearse::picture
