// SPDX-License-Identifier: Apache-2.0
// A profiler's events as they stand in its file, small enough for millions of them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/recording.hpp"
#include "trace/input_file.hpp"

namespace rehearse::trace {

/// Each text once, by number; 0 is the empty one.
class Texts {
public:
    Texts() { number(""); }
    std::uint32_t number(std::string_view text);
    std::string_view text(std::uint32_t number) const { return texts_[number]; }
    std::vector<std::string> taken();

private:
    std::deque<std::string> texts_;
    std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

/// What a name says of an event on the host. An annotation is what a program puts around operators
/// (record_function), whatever name it gives.
enum class Role : std::uint8_t { marker, loader, update, node, wrapper, call, annotation };
Role role_of(std::string_view name, bool annotates);

struct HostEvent {
    std::int64_t start = 0, end = 0, sequence = -1, external = 0;
    std::uint32_t name = 0, shapes = 0, thread = 0;
    Role role = Role::call;
};

struct Launch {  // by the runtime
    std::int64_t correlation = 0, start = 0;
    std::uint32_t thread = 0;
};

struct Kernel {
    enum class Kind : std::uint8_t { compute, collective, copy };
    std::int64_t start = 0, end = 0, correlation = 0, external = 0, bytes = 0, ranks = 0;
    std::uint32_t name = 0, collective = 0, members = 0;  // of a collective: its kind, and the list of its ranks
    Kind kind = Kind::compute;
};

struct HostCollective {
    std::int64_t start = 0, end = 0, bytes = 0;
    std::uint32_t kind = 0;
};

struct RecordedEvents {
    std::int64_t rank = 0, ranks = 1;
    Texts texts;
    std::deque<HostEvent> host;
    std::deque<Launch> launches;
    std::deque<Kernel> kernels;
    std::deque<HostCollective> collectives;
};

/// "all_reduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "gloo:all_reduce", "_allgather_base"; empty: none of
/// these.
std::string_view collective_named(std::string_view name);

/// Of "[0, 4]"; empty where the list is cut short ("[0, 1, ..., 7]") or is none.
std::vector<std::int64_t> ranks_in(std::string_view list);

/// "HtoD" of "Memcpy HtoD (Pinned -> Device)" and of ROCm's "CopyHostToDevice"; "memset", and "copy" of any other.
std::string_view direction_of(std::string_view name);

/// InputError with the byte.
RecordedEvents read_events(InputFile& file);

}  // namespace rehearse::trace
