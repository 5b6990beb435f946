// SPDX-License-Identifier: Apache-2.0
// GOAL (Hoefler et al. 2009), as LogGOPSim's txt2bin reads it: calc in nanoseconds, send and recv with a tag, requires.
#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "trace/programs.hpp"

namespace rehearse::trace {

void write_goal(const RankPrograms& programs, const std::string& path);

void write_goal(const RankPrograms& programs, const std::string& path) {
    using Kind = ProgramNode::Kind;
    OutputFile out{path};
    out.append(fmt::format("num_ranks {}\n", programs.ranks.size()));
    for (std::size_t rank = 0; rank < programs.ranks.size(); ++rank) {
        std::string text = fmt::format("\nrank {} {{\n", rank);
        const std::vector<ProgramNode>& nodes = programs.ranks[rank];
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const ProgramNode& node = nodes[i];
            require(node.kind != Kind::collective, "GOAL has messages, not collectives");
            const auto to = std::back_inserter(text);
            if (node.kind == Kind::send || node.kind == Kind::receive) {
                fmt::format_to(to, "l{}: {} {}b {} {} tag {}\n", i + 1, node.kind == Kind::send ? "send" : "recv",
                               std::llround(node.bytes.value), node.kind == Kind::send ? "to" : "from", node.peer,
                               node.tag);
            } else {
                fmt::format_to(to, "l{}: calc {}\n", i + 1, std::llround(node.time.value * 1e9));
            }
            for (const int before : node.after) fmt::format_to(to, "l{} requires l{}\n", i + 1, before + 1);
        }
        out.append(text + "}\n");
    }
    out.commit();
}

}  // namespace rehearse::trace
