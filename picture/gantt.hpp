// SPDX-License-Identifier: Apache-2.0
// Who has what of a machine when: a bar a job, as high as its devices are many.
//   device 0 |job 1   |job 3        |
//   device 1 |job 1   |job 4 |job 5 |
//   device 2 |job 2          |job 5 |
#pragma once

#include <string>
#include <vector>

#include "picture/chart.hpp"

namespace rehearse::picture {

struct GanttBar {
    double first = 0, lanes = 1;  // from which lane, how many
    double start = 0, end = 0;    // seconds
    std::size_t color = 0;        // index into Gantt::kinds
    bool pale = false;            // holds its lanes without use
    std::string text{}, title{};  // inside, where there is room; where the pointer rests
};

struct Gantt {
    std::string title{}, subtitle{};
    std::string lane = "device";
    std::size_t lanes = 1;
    std::vector<std::string> kinds{};  // names of the colours
    std::vector<GanttBar> bars{};
};

/// Below each other on one time axis.
Picture gantt_picture(const std::vector<Gantt>& drawings, double width = 1200, Theme theme = Theme::light);

}  // namespace rehearse::picture
