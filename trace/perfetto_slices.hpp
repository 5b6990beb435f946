// SPDX-License-Identifier: Apache-2.0
// Blocks of packets parsed ahead, on all cores, of who puts them together in their order.
//
//   file ──► block ──► parser of a core ──► records ─┐
//        ──► block ──► parser of a core ──► records ─┴─► in the file's order
//
// A parser needs to know three numbers, those of the annotations that differ between equal kinds of slices. They are
// given at the file's beginning; whoever finds that a block was parsed with others parses it again.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "trace/perfetto_packets.hpp"

namespace rehearse::trace {

/// Numbers of the annotations that are each event's own, 0 as long as they are not known, and how many names of
/// annotations there are.
struct OwnKeys {
    std::uint64_t rank = 0, iteration = 0, flow = 0, count = 0;
    void add(std::string_view name);
    bool operator==(const OwnKeys&) const = default;
};

struct SliceRecord {
    static constexpr std::uint32_t ends = 0xFFFFFFFF, other = 0xFFFFFFFE;
    std::int64_t time = 0;  // of the file; of `other`: where in the block its packet begins
    std::int64_t flow = 0;  // of `other`: how many bytes it has
    std::int64_t rank = 0;
    std::uint32_t track = 0;
    std::uint32_t kind = 0;  // of the parser, of a slice that begins; ends; other: a packet that is not only a slice
    std::int32_t iteration = 0;
};

/// What is between a slice's name and category and its own annotations: equal bytes say the same.
struct KindBytes {
    std::uint64_t name = 0, category = 0;
    std::string annotations;
};

struct ParsedBlock {
    Block block;
    OwnKeys before, after;
    std::vector<SliceRecord> records;
    std::int64_t packets = 0;
    int parser = 0;
    bool irregular = false;
    enum class State { waits, is_parsed, done } state = State::waits;
};

class SliceParser {
public:
    explicit SliceParser(int number) : number_(number) {}
    void parse(ParsedBlock& block, const OwnKeys& keys);
    KindBytes kind(std::uint32_t number) const;

private:
    void take(std::string_view packet, ParsedBlock& block);
    bool take_event(std::string_view event, SliceRecord& record);
    bool is_own(std::string_view annotation, SliceRecord& record) const;
    std::uint32_t kind_of(std::uint64_t name, std::uint64_t category);

    int number_;
    OwnKeys keys_;
    std::string bytes_;  // of the kind that is looked up: annotations, name, category
    mutable std::mutex mutex_;
    std::deque<std::string> kinds_;  // who merges reads them while the parser goes on
    std::vector<std::uint64_t> hashes_;
    std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1024);  // one more than the kind; a power of two
};

/// The blocks of a file in their order. Other threads are started only where there is a second block.
class SliceBlocks {
public:
    explicit SliceBlocks(Packets& file);
    ~SliceBlocks();
    SliceBlocks(const SliceBlocks&) = delete;
    SliceBlocks& operator=(const SliceBlocks&) = delete;

    /// Nothing at the end. Valid until the next is asked for. Parsed with the keys that came out of the block before.
    const ParsedBlock* next();
    const SliceParser& parser(int number) const { return *parsers_[static_cast<std::size_t>(number)]; }

private:
    void fill();
    void work(SliceParser& parser);
    ParsedBlock* claim();

    Packets& file_;
    std::vector<std::unique_ptr<SliceParser>> parsers_;  // the first is of who asks
    std::mutex mutex_;
    std::condition_variable work_, done_;
    std::deque<std::unique_ptr<ParsedBlock>> ahead_;
    std::unique_ptr<ParsedBlock> given_;
    OwnKeys keys_;
    bool at_end_ = false, stops_ = false, began_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace rehearse::trace
