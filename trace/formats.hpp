// SPDX-License-Identifier: Apache-2.0
// One writer and one reader a format; trace.cpp chooses between them.
#pragma once

#include <span>
#include <vector>

#include "core/dependencies.hpp"
#include "core/output_file.hpp"
#include "core/timeline.hpp"
#include "trace/input_file.hpp"

namespace rehearse::trace {

/// `dependencies`: of the first timeline.
void write_perfetto(std::span<const Timeline> timelines, std::span<const Dependencies> dependencies, OutputFile& out);
void write_chrome(std::span<const Timeline> timelines, OutputFile& out);
void write_csv(std::span<const Timeline> timelines, OutputFile& out);
void write_links_csv(std::span<const Timeline> timelines, OutputFile& out);

std::vector<Timeline> read_perfetto(InputFile& file);
/// OtherProgram where the file is not ours.
std::vector<Timeline> read_chrome(InputFile& file);

}  // namespace rehearse::trace
