// SPDX-License-Identifier: Apache-2.0
#include "schedule/draw.hpp"

#include <fmt/format.h>

namespace rehearse::schedule {

std::string draw(const RankClass& rank_class) {
    std::string picture;
    for (int i = 0; i < stream_count; ++i) {
        const auto stream = static_cast<Stream>(i);
        std::string line;
        for (const Step& step : rank_class.steps) {
            if (step.stream != stream) continue;
            line += " " + step.name;
            for (const int before : step.after) {
                line += "<" + rank_class.steps.at(static_cast<std::size_t>(before)).name;
            }
        }
        if (!line.empty()) picture += fmt::format("{}:{}\n", to_string(stream), line);
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

}  // namespace rehearse::schedule
