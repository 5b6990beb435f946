// SPDX-License-Identifier: Apache-2.0
// SimGrid's time-independent traces (Desprez et al. 2011), as smpirun -replay reads them. A rank does one thing after
// the other: messages that follow on each other are under way together (isend, irecv, waitall), computation waits for
// them.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iterator>

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "trace/programs.hpp"

namespace rehearse::trace {

void write_smpi(const RankPrograms& programs, const std::vector<std::string>& files);

namespace {

constexpr int bytes = 6;  // MPI_BYTE

bool depends_on(const ProgramNode& node, std::size_t first) {
    for (const int before : node.after) {
        if (static_cast<std::size_t>(before) >= first) return true;
    }
    return false;
}

std::string text_of(const std::vector<ProgramNode>& nodes, std::size_t rank) {
    using Kind = ProgramNode::Kind;
    std::string text = fmt::format("{} init\n", rank);
    const auto to = std::back_inserter(text);
    std::size_t open = 0, first = 0;  // requests that nobody has waited for, and the node of the first
    const auto wait = [&] {
        if (open > 0) fmt::format_to(to, "{} waitall {}\n", rank, open);
        open = 0;
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const ProgramNode& node = nodes[i];
        require(node.kind != Kind::collective, "collectives go as messages");
        const bool message = node.kind == Kind::send || node.kind == Kind::receive;
        if (open > 0 && (!message || depends_on(node, first))) wait();
        if (message) {
            if (open++ == 0) first = i;
            fmt::format_to(to, "{} {} {} {} {} {}\n", rank, node.kind == Kind::send ? "isend" : "irecv", node.peer,
                           node.tag, std::llround(node.bytes.value), bytes);
        } else if (const long long units = std::llround(node.time.value * 1e9); units > 0) {
            fmt::format_to(to, "{} compute {}\n", rank, units);
        }
    }
    wait();
    fmt::format_to(to, "{} finalize\n", rank);
    return text;
}

}  // namespace

void write_smpi(const RankPrograms& programs, const std::vector<std::string>& files) {
    std::string names;
    for (std::size_t rank = 0; rank < programs.ranks.size(); ++rank) {
        OutputFile out{files[rank + 1]};
        out.append(text_of(programs.ranks[rank], rank));
        out.commit();
        names += std::filesystem::absolute(files[rank + 1]).string() + "\n";
    }
    OutputFile list{files.front()};
    list.append(names);
    list.commit();
}

}  // namespace rehearse::trace
