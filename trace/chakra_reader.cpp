// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/quoting.hpp"
#include "core/text.hpp"
#include "trace/chakra.pb.h"
#include "trace/programs.hpp"

namespace rehearse::trace {

namespace {

using Kind = ProgramNode::Kind;
using Groups = std::map<std::string, std::vector<RankIndex>>;  // by pg_name

constexpr std::array<std::string_view, 3> versions{"", "0.0.4", "1.0.0"};
constexpr std::array<std::string_view, 5> schemas{"1.0.2-chakra.0.0.4", "1.0.3-chakra.0.0.4", "1.1.0-chakra.0.0.4",
                                                  "1.1.1-chakra.0.0.4", "symbolic_tensor_network"};

class File {
public:
    File(const std::string& path, RankIndex rank, std::int64_t ranks, Groups& groups)
        : path_(path), rank_(rank), ranks_(ranks), groups_(groups), text_(read_file(path)) {}

    /// In an order in which each node comes after those that it waits for.
    std::vector<ProgramNode> nodes() {
        chakra::GlobalMetadata head;
        if (!next(head)) refuse("is empty: right would be a Chakra execution trace (.et)");
        check(head);
        std::vector<chakra::Node> read;
        chakra::Node node;
        for (; next(node); node.Clear()) read.push_back(node);
        return ordered(read);
    }

private:
    [[noreturn]] void refuse(const std::string& what) const { throw InputError(fmt::format("{}: {}", path_, what)); }
    [[noreturn]] void refuse(const chakra::Node& node, const std::string& what) const {
        refuse(fmt::format("node {} '{}': {}", node.id(), printable(node.name()), what));
    }

    bool next(google::protobuf::MessageLite& message) {
        if (at_ == text_.size()) return false;
        const std::size_t begin = at_;
        std::uint64_t length = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (at_ == text_.size()) refuse(fmt::format("cut off at byte {}, inside a length", begin));
            if (shift > 28) refuse(fmt::format("byte {}: no length of a message", begin));
            const auto byte = static_cast<std::uint8_t>(text_[at_++]);
            length |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if (byte < 0x80) break;
        }
        if (length > text_.size() - at_) {
            refuse(fmt::format("cut off: the message at byte {} has {} bytes, {} are left", begin, length,
                               text_.size() - at_));
        }
        if (!message.ParseFromArray(text_.data() + at_, static_cast<int>(length)))
            refuse(fmt::format("byte {}: no {} of a Chakra execution trace", begin, message.GetTypeName()));
        at_ += length;
        return true;
    }

    void check(const chakra::GlobalMetadata& head) const {
        if (std::ranges::find(versions, head.version()) == versions.end())
            refuse(fmt::format("version '{}' is not known: 0.0.4 and 1.0.0 are", printable(head.version())));
        for (const chakra::AttributeProto& each : head.attr()) {
            if (each.name() == "schema" && std::ranges::find(schemas, each.string_val()) == schemas.end())
                refuse(fmt::format("schema '{}' is not known: {} are", printable(each.string_val()), join(schemas)));
        }
    }

    std::vector<ProgramNode> ordered(const std::vector<chakra::Node>& read) {
        std::unordered_map<std::uint64_t, std::size_t> places;
        for (std::size_t i = 0; i < read.size(); ++i) {
            if (!places.emplace(read[i].id(), i).second) refuse(read[i], "another node has this id");
        }
        std::vector<std::vector<std::size_t>> before(read.size()), after(read.size());
        std::vector<std::size_t> open(read.size());
        for (std::size_t i = 0; i < read.size(); ++i) {
            std::set<std::uint64_t> waits{read[i].data_deps().begin(), read[i].data_deps().end()};
            waits.insert(read[i].ctrl_deps().begin(), read[i].ctrl_deps().end());
            for (const std::uint64_t id : waits) {
                const auto place = places.find(id);
                if (place == places.end()) refuse(read[i], fmt::format("waits for node {}, which is not there", id));
                before[i].push_back(place->second);
                after[place->second].push_back(i);
            }
            open[i] = before[i].size();
        }
        std::set<std::size_t> ready;
        for (std::size_t i = 0; i < read.size(); ++i) {
            if (open[i] == 0) ready.insert(i);
        }
        std::vector<ProgramNode> nodes;
        std::vector<int> index(read.size());
        while (!ready.empty()) {
            const std::size_t i = *ready.begin();
            ready.erase(ready.begin());
            index[i] = static_cast<int>(nodes.size());
            ProgramNode node = node_of(read[i]);
            for (const std::size_t each : before[i]) node.after.push_back(index[each]);
            std::ranges::sort(node.after);
            nodes.push_back(std::move(node));
            for (const std::size_t each : after[i]) {
                if (--open[each] == 0) ready.insert(each);
            }
        }
        if (nodes.size() == read.size()) return nodes;
        const auto stuck = std::ranges::find_if(open, [](std::size_t left) { return left > 0; });
        refuse(read[static_cast<std::size_t>(stuck - open.begin())], "waits for itself, by way of others");
    }

    const chakra::AttributeProto* attribute(const chakra::Node& node, std::string_view name) const {
        for (const chakra::AttributeProto& each : node.attr()) {
            if (each.name() == name) return &each;
        }
        return nullptr;
    }

    // Of whichever type it is written in.
    std::optional<double> number(const chakra::Node& node, std::string_view name) const {
        const chakra::AttributeProto* found = attribute(node, name);
        if (found == nullptr) return std::nullopt;
        double value = 0;
        using Value = chakra::AttributeProto;
        switch (found->value_case()) {
            case Value::kDoubleVal:
                value = found->double_val();
                break;
            case Value::kFloatVal:
                value = found->float_val();
                break;
            case Value::kInt32Val:
                value = found->int32_val();
                break;
            case Value::kInt64Val:
                value = static_cast<double>(found->int64_val());
                break;
            case Value::kUint32Val:
                value = found->uint32_val();
                break;
            case Value::kUint64Val:
                value = static_cast<double>(found->uint64_val());
                break;
            case Value::kSint32Val:
                value = found->sint32_val();
                break;
            case Value::kSint64Val:
                value = static_cast<double>(found->sint64_val());
                break;
            case Value::kFixed32Val:
                value = found->fixed32_val();
                break;
            case Value::kFixed64Val:
                value = static_cast<double>(found->fixed64_val());
                break;
            case Value::kSfixed32Val:
                value = found->sfixed32_val();
                break;
            case Value::kSfixed64Val:
                value = static_cast<double>(found->sfixed64_val());
                break;
            case Value::kBoolVal:
                value = found->bool_val() ? 1 : 0;
                break;
            default:
                refuse(node, fmt::format("{} is no number", name));
        }
        if (!(value >= 0) || value > 9e18) refuse(node, fmt::format("{} {} is not 0 or more", name, value));
        return value;
    }
    double needed(const chakra::Node& node, std::string_view name) const {
        const std::optional<double> found = number(node, name);
        if (!found) refuse(node, fmt::format("has no {}", name));
        return *found;
    }

    ProgramNode node_of(const chakra::Node& node) {
        ProgramNode made;
        made.name = node.name();
        switch (node.type()) {
            case chakra::COMP_NODE:
                made.kind = number(node, "is_cpu_op").value_or(0) > 0 ? Kind::load : Kind::compute;
                made.flops = Flops{number(node, "num_ops").value_or(0)};
                made.bytes = Bytes{number(node, "tensor_size").value_or(0)};
                made.time = Seconds{1e-6 * static_cast<double>(node.duration_micros())};
                if (const auto exact = number(node, "duration_nanos")) made.time = Seconds{1e-9 * *exact};
                return made;
            case chakra::COMM_SEND_NODE:
            case chakra::COMM_RECV_NODE:
                return message(node, std::move(made));
            case chakra::COMM_COLL_NODE:
                return collective(node, std::move(made));
            case chakra::METADATA_NODE:
                add_groups(node);
                return made;
            case chakra::INVALID_NODE:
                return made;
            default:
                refuse(node, "is of a type that has no schedule here (loads and stores of remote memory, storage)");
        }
    }

    ProgramNode message(const chakra::Node& node, ProgramNode made) const {
        const bool sends = node.type() == chakra::COMM_SEND_NODE;
        made.kind = sends ? Kind::send : Kind::receive;
        made.bytes = Bytes{needed(node, "comm_size")};
        made.peer = RankIndex{static_cast<std::int64_t>(needed(node, sends ? "comm_dst" : "comm_src"))};
        made.tag = static_cast<std::int64_t>(number(node, "comm_tag").value_or(0));
        if (made.peer >= ranks_ || made.peer == rank_)
            refuse(node, fmt::format("is a message between rank {} and {} of {}", rank_, made.peer, ranks_));
        return made;
    }

    ProgramNode collective(const chakra::Node& node, ProgramNode made) {
        made.kind = Kind::collective;
        made.bytes = Bytes{needed(node, "comm_size")};
        switch (static_cast<std::int64_t>(needed(node, "comm_type"))) {
            case chakra::ALL_REDUCE:
                made.collective = CollectiveKind::all_reduce;
                break;
            case chakra::ALL_GATHER:
                made.collective = CollectiveKind::all_gather;
                break;
            case chakra::REDUCE_SCATTER:
                made.collective = CollectiveKind::reduce_scatter;
                break;
            case chakra::ALL_TO_ALL:
                made.collective = CollectiveKind::all_to_all;
                break;
            case chakra::BROADCAST:
                made.collective = CollectiveKind::broadcast;
                break;
            default:
                refuse(node,
                       "is a collective that has no schedule here: all-reduce, all-gather, reduce-scatter, "
                       "all-to-all and broadcast have");
        }
        const chakra::AttributeProto* group = attribute(node, "pg_name");
        const std::string name = group == nullptr ? "" : group->string_val();
        if (name.empty()) require_all_dimensions(node);
        made.group = used(node, name);
        if (made.collective == CollectiveKind::broadcast) made.root = root_of(node, made.group);
        return made;
    }

    // Ranks of some dimensions of a network alone, which generators for ASTRA-sim name so, are a group that nobody
    // lists.
    void require_all_dimensions(const chakra::Node& node) const {
        const chakra::AttributeProto* const involved = attribute(node, "involved_dim");
        if (involved == nullptr) return;
        const auto& dimensions = involved->bool_list().values();
        if (std::ranges::find(dimensions, false) == dimensions.end()) return;
        refuse(node,
               "is among the ranks of some dimensions of the network (involved_dim), and no file lists them: right "
               "would be a pg_name and --groups");
    }

    // The group's first, where the file does not say.
    std::int64_t root_of(const chakra::Node& node, std::int64_t group) const {
        const std::optional<double> rank = number(node, "comm_src");
        if (!rank) return 0;
        const auto of_group =
            std::ranges::find(known, group, &std::pair<const std::vector<RankIndex>, std::int64_t>::second);
        const std::vector<RankIndex>& members = of_group->first;
        const auto root = std::ranges::find(members, RankIndex{static_cast<std::int64_t>(*rank)});
        if (root == members.end())
            refuse(node, fmt::format("is a broadcast from rank {:.0f}, which is not in its group", *rank));
        return root - members.begin();
    }

    // "" and "0" are all ranks where the file does not say otherwise, as in ASTRA-sim.
    std::int64_t used(const chakra::Node& node, const std::string& name) {
        const auto found = groups_.find(name);
        std::vector<RankIndex> members = found == groups_.end() ? std::vector<RankIndex>{} : found->second;
        if (found == groups_.end() && !name.empty() && name != "0")
            refuse(node, fmt::format("is of group '{}', which no file tells of", printable(name)));
        if (members.empty()) {
            for (RankIndex rank{0}; rank < ranks_; ++rank) members.push_back(rank);
        }
        if (std::ranges::find(members, rank_) == members.end())
            refuse(node, fmt::format("is of group '{}', which rank {} is not in", printable(name), rank_));
        const auto [place, fresh] = known.emplace(members, std::ssize(known));
        return place->second;
    }

    // As PyTorch's observer writes "process_group:init": a text around a list of JSON.
    void add_groups(const chakra::Node& node) const {
        const std::string& text = node.inputs().values();
        const std::size_t begin = text.find("[{"), end = text.rfind("}]");
        if (begin == std::string::npos || end == std::string::npos || end < begin) return;
        const auto list = nlohmann::json::parse(text.substr(begin, end + 2 - begin), nullptr, false);
        if (!list.is_array()) refuse(node, "its process groups are no JSON");
        for (const auto& each : list) {
            if (!each.is_object() || !each.contains("pg_name") || !each["pg_name"].is_string()) continue;
            std::vector<RankIndex> members;
            for (const auto& rank : each.value("ranks", nlohmann::json::array())) {
                if (!rank.is_number_unsigned() || std::cmp_greater_equal(rank.get<std::uint64_t>(), ranks_))
                    refuse(node, "a process group has a rank that is not there");
                members.emplace_back(rank.get<std::int64_t>());
            }
            groups_[each["pg_name"].get<std::string>()] = members;
        }
    }

public:
    std::map<std::vector<RankIndex>, std::int64_t> known;  // groups so far, by number

private:
    std::string path_;
    RankIndex rank_;
    std::int64_t ranks_;
    Groups& groups_;
    std::string text_;
    std::size_t at_ = 0;
};

Groups groups_in(std::string_view text, std::int64_t ranks) {
    Groups groups;
    if (text.empty()) return groups;
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const auto refuse = [](std::string_view what) {
        throw InputError(fmt::format("groups of ranks: {}; right would be JSON like {{\"1\": [0, 1]}}", what));
    };
    if (!json.is_object()) refuse("no JSON object");
    for (const auto& [name, members] : json.items()) {
        if (!members.is_array()) refuse(fmt::format("group '{}' is no list", printable(name)));
        for (const auto& rank : members) {
            if (!rank.is_number_unsigned() || std::cmp_greater_equal(rank.get<std::uint64_t>(), ranks))
                refuse(fmt::format("group '{}' has a rank that is not there", printable(name)));
            groups[name].emplace_back(rank.get<std::int64_t>());
        }
    }
    return groups;
}

}  // namespace

RankPrograms read_chakra(const std::vector<std::string>& files, std::string_view groups_json) {
    const auto ranks = static_cast<std::int64_t>(files.size());
    Groups groups = groups_in(groups_json, ranks);
    RankPrograms programs;
    std::vector<RankIndex> all;
    for (RankIndex rank{0}; rank < ranks; ++rank) all.push_back(rank);
    std::map<std::vector<RankIndex>, std::int64_t> known{{all, 0}};
    for (RankIndex rank{0}; rank < ranks; ++rank) {
        File file{files[static_cast<std::size_t>(rank)], rank, ranks, groups};
        file.known = std::move(known);
        programs.ranks.push_back(file.nodes());
        known = std::move(file.known);
    }
    programs.groups.resize(known.size());
    for (const auto& [members, number] : known) programs.groups[static_cast<std::size_t>(number)] = members;
    return programs;
}

}  // namespace rehearse::trace
