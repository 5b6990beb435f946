// SPDX-License-Identifier: Apache-2.0
#include "schedule/draw.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::schedule {

std::string draw(const RankClass& rank_class) {
    std::string picture;
    for (const Stream stream : streams_of(rank_class.steps)) {
        std::string line;
        for (const Step& step : rank_class.steps) {
            if (step.stream != stream) continue;
            line += " " + step.name;
            for (const int before : step.after) {
                line += "<" + rank_class.steps.at(static_cast<std::size_t>(before)).name;
            }
        }
        picture += fmt::format("{}:{}\n", to_string(stream), line);
    }
    return picture;
}

std::string draw(const Schedule& schedule) {
    std::string picture;
    for (const RankClass& rank_class : schedule.classes) {
        if (schedule.classes.size() > 1) picture += rank_class.name + "\n";
        picture += draw(rank_class);
    }
    return picture;
}

std::string label(const ComputeBox& box, int chunks) {
    std::string text{letter(box.kind)};
    if (box.kind == BoxKind::update) return text;
    text += std::to_string(box.micro_batch);
    if (chunks > 1) text += static_cast<char>('a' + box.chunk);
    return text;
}

std::string draw(const BoxChart& chart) {
    std::size_t cell = 2, name = 0;  // columns
    for (const Lane& lane : chart.lanes) {
        name = std::max(name, lane.name.size());
        for (const ComputeBox& box : lane.boxes) cell = std::max(cell, label(box, chart.chunks).size() + 1);
    }
    std::string picture;
    for (const Lane& lane : chart.lanes) {
        std::string line;
        for (std::int64_t tick = 0; tick < chart.end; ++tick) line += fmt::format("{:<{}}", '.', cell);
        for (const ComputeBox& box : lane.boxes) {
            const std::size_t width = static_cast<std::size_t>(box.length) * cell - 1;
            std::string text = label(box, chart.chunks);
            text.resize(width, box.length > 1 ? '-' : ' ');
            line.replace(static_cast<std::size_t>(box.start) * cell, width, text);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        picture += fmt::format("{:<{}} {}\n", lane.name, name, line);
    }
    return picture;
}

}  // namespace rehearse::schedule
