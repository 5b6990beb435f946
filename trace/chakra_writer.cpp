// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "trace/chakra.pb.h"
#include "trace/programs.hpp"

namespace rehearse::trace {

namespace {

using Kind = ProgramNode::Kind;

void append(OutputFile& out, const google::protobuf::MessageLite& message) {
    const std::string bytes = message.SerializeAsString();
    std::string length;
    std::uint64_t rest = bytes.size();
    for (; rest >= 0x80; rest >>= 7U) length += static_cast<char>(0x80U | (rest & 0x7FU));
    out.append(length + static_cast<char>(rest));
    out.append(bytes);
}

chakra::AttributeProto& attribute(chakra::Node& node, const char* name) {
    chakra::AttributeProto& made = *node.add_attr();
    made.set_name(name);
    return made;
}

chakra::NodeType type_of(Kind kind) {
    switch (kind) {
        case Kind::send:
            return chakra::COMM_SEND_NODE;
        case Kind::receive:
            return chakra::COMM_RECV_NODE;
        case Kind::collective:
            return chakra::COMM_COLL_NODE;
        case Kind::compute:
        case Kind::load:
            break;
    }
    return chakra::COMP_NODE;
}

chakra::CollectiveCommType type_of(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::reduce_scatter:
            return chakra::REDUCE_SCATTER;
        case CollectiveKind::all_gather:
            return chakra::ALL_GATHER;
        case CollectiveKind::broadcast:
            return chakra::BROADCAST;
        case CollectiveKind::all_to_all:
            return chakra::ALL_TO_ALL;
        case CollectiveKind::all_reduce:
        case CollectiveKind::halo:  // in no program
            break;
    }
    return chakra::ALL_REDUCE;
}

std::int64_t whole(double value) { return std::llround(value); }

// Attributes as Chakra's feeder and ASTRA-sim read them, each of the type that its converters write.
void describe(chakra::Node& to, const ProgramNode& node, RankIndex rank,
              const std::vector<std::vector<RankIndex>>& groups) {
    attribute(to, "is_cpu_op").set_bool_val(node.kind == Kind::load);
    if (node.kind == Kind::compute || node.kind == Kind::load) {
        attribute(to, "num_ops").set_int64_val(whole(node.flops.value));
        attribute(to, "tensor_size").set_uint64_val(static_cast<std::uint64_t>(whole(node.bytes.value)));
        attribute(to, "duration_nanos").set_uint64_val(static_cast<std::uint64_t>(whole(node.time.value * 1e9)));
        return;
    }
    attribute(to, "comm_size").set_int64_val(whole(node.bytes.value));
    attribute(to, "comm_priority").set_int32_val(0);
    if (node.kind == Kind::collective) {
        attribute(to, "comm_type").set_int64_val(type_of(node.collective));
        attribute(to, "pg_name").set_string_val(fmt::format("{}", node.group));
        if (node.collective == CollectiveKind::broadcast) {
            const RankIndex root = groups[static_cast<std::size_t>(node.group)][static_cast<std::size_t>(node.root)];
            attribute(to, "comm_src").set_int32_val(static_cast<std::int32_t>(root));
        }
        return;
    }
    const bool sends = node.kind == Kind::send;
    attribute(to, "comm_src").set_int32_val(static_cast<std::int32_t>(sends ? rank : node.peer));
    attribute(to, "comm_dst").set_int32_val(static_cast<std::int32_t>(sends ? node.peer : rank));
    attribute(to, "comm_tag").set_int32_val(static_cast<std::int32_t>(node.tag));
}

void write_rank(const RankPrograms& programs, RankIndex rank, const std::string& path) {
    const std::vector<ProgramNode>& nodes = programs.ranks[static_cast<std::size_t>(rank)];
    OutputFile out{path};
    chakra::GlobalMetadata head;
    head.set_version("1.0.0");
    append(out, head);
    double ended = 0;  // sum of durations, so that rounding to microseconds does not add up
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const ProgramNode& node = nodes[i];
        chakra::Node made;
        made.set_id(i);
        made.set_name(node.name);
        made.set_type(type_of(node.kind));
        for (const int before : node.after) made.add_data_deps(static_cast<std::uint64_t>(before));
        const double end = ended + node.time.value * 1e6;
        made.set_duration_micros(static_cast<std::uint64_t>(whole(end) - whole(ended)));
        ended = end;
        describe(made, node, rank, programs.groups);
        append(out, made);
    }
    out.commit();
}

}  // namespace

std::vector<std::string> program_files(const RankPrograms& programs, const std::string& prefix, ProgramFormat format) {
    if (format == ProgramFormat::goal) return {prefix + ".goal"};
    const bool chakra = format == ProgramFormat::chakra;
    std::vector<std::string> files{prefix + (chakra ? ".groups.json" : ".ti")};
    for (std::size_t rank = 0; rank < programs.ranks.size(); ++rank)
        files.push_back(fmt::format("{}.{}.{}", prefix, rank, chakra ? "et" : "ti"));
    return files;
}

void write_chakra(const RankPrograms& programs, const std::string& prefix) {
    const std::vector<std::string> files = program_files(programs, prefix, ProgramFormat::chakra);
    nlohmann::ordered_json groups = nlohmann::ordered_json::object();
    for (std::size_t i = 1; i < programs.groups.size(); ++i)
        groups[fmt::format("{}", i)] = std::vector<std::int64_t>(programs.groups[i].begin(), programs.groups[i].end());
    OutputFile out{files.front()};
    out.append(groups.dump(1) + "\n");
    out.commit();
    for (std::size_t rank = 0; rank < programs.ranks.size(); ++rank)
        write_rank(programs, RankIndex{rank}, files[rank + 1]);
}

void write_goal(const RankPrograms& programs, const std::string& path);
void write_smpi(const RankPrograms& programs, const std::vector<std::string>& files);

void write_programs(const RankPrograms& programs, const std::string& prefix, ProgramFormat format) {
    if (format == ProgramFormat::chakra) return write_chakra(programs, prefix);
    const std::vector<std::string> files = program_files(programs, prefix, format);
    if (format == ProgramFormat::goal) return write_goal(programs, files.front());
    write_smpi(programs, files);
}

}  // namespace rehearse::trace
