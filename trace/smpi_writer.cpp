// SPDX-License-Identifier: Apache-2.0
// SimGrid's time-independent traces (Desprez et al. 2011), as smpirun -replay reads them. A rank does one thing after
// the other, but messages are under way beside it (isend, irecv) until something comes that waits for them (wait). To
// wait for a message any sooner would stop ranks that the schedule lets go on, and pipelines for ever: a large send is
// over only when its receiver has asked for it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <string_view>

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "trace/programs.hpp"

namespace rehearse::trace {

void write_smpi(const RankPrograms& programs, const std::vector<std::string>& files);

namespace {

constexpr int bytes = 6;  // MPI_BYTE

class RankWriter {
public:
    RankWriter(const std::vector<ProgramNode>& nodes, std::size_t rank) : nodes_(nodes), rank_(rank) {}

    std::string text() {
        line("init");
        for (int i = 0; i < std::ssize(nodes_); ++i) add(i);
        if (!open_.empty()) line(fmt::format("waitall {}", open_.size()));
        line("finalize");
        return std::move(text_);
    }

private:
    using Kind = ProgramNode::Kind;

    static bool is_message(const ProgramNode& node) { return node.kind == Kind::send || node.kind == Kind::receive; }
    const ProgramNode& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
    // Messages of one key overtake each other nowhere: SMPI's `wait` takes the oldest of them.
    bool alike(int one, int other) const {
        const ProgramNode &a = node(one), &b = node(other);
        return a.kind == b.kind && a.peer == b.peer && a.tag == b.tag;
    }

    void add(int index) {
        const ProgramNode& each = node(index);
        require(each.kind != Kind::collective, "collectives go as messages");
        // One after another of a key is in order by itself.
        for (const int before : each.after) {
            if (!is_message(each) || !alike(index, before)) wait(before);
        }
        if (is_message(each)) {
            open_.push_back(index);
            line(fmt::format("{} {} {} {} {}", each.kind == Kind::send ? "isend" : "irecv", each.peer, each.tag,
                             std::llround(each.bytes.value), bytes));
        } else if (const long long units = std::llround(each.time.value * 1e9); units > 0) {
            line(fmt::format("compute {}", units));
        }
    }

    void wait(int before) {
        if (std::ranges::find(open_, before) == open_.end()) return;
        const ProgramNode& of = node(before);
        const std::string peer = fmt::format("{}", of.peer), own = fmt::format("{}", rank_);
        const bool sends = of.kind == Kind::send;
        for (auto it = open_.begin(); it != open_.end() && *it <= before;) {
            if (!alike(*it, before)) {
                ++it;
                continue;
            }
            line(fmt::format("wait {} {} {}", sends ? own : peer, sends ? peer : own, of.tag));
            it = open_.erase(it);
        }
    }

    void line(std::string_view action) { text_ += fmt::format("{} {}\n", rank_, action); }

    const std::vector<ProgramNode>& nodes_;
    std::size_t rank_;
    std::deque<int> open_;  // requests that nobody has waited for, by node
    std::string text_;
};

}  // namespace

void write_smpi(const RankPrograms& programs, const std::vector<std::string>& files) {
    std::string names;
    for (std::size_t rank = 0; rank < programs.ranks.size(); ++rank) {
        OutputFile out{files[rank + 1]};
        out.append(RankWriter(programs.ranks[rank], rank).text());
        out.commit();
        names += std::filesystem::absolute(files[rank + 1]).string() + "\n";
    }
    OutputFile list{files.front()};
    list.append(names);
    list.commit();
}

}  // namespace rehearse::trace
