// SPDX-License-Identifier: Apache-2.0
// `rehearse bench p2p|allreduce|reducescatter|allgather|broadcast|alltoall`, under mpirun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report.hpp"
#include "core/op.hpp"

namespace rehearse::cli {

class CommandLine;

/// --type; InputError unless f32, f16 or bf16.
DataType type_named(const std::string& word);

struct MessageOptions {
    std::string least = "8B", most = "64MiB", type = "f32", samples;
    double factor = 2;
    std::int64_t iterations = 0;  // 0: by the budget
    int warm_up = 2;
};
void add_message_options(CommandLine& app, MessageOptions& options);

/// What the other kinds of bench say too.
struct MessageBench {
    const Common& common;
    const MessageOptions& messages;
    std::string algorithms, out;
    bool check = true;
    std::uint64_t seed = 1;
    Seconds budget;
    int rounds = 7;
};

std::vector<std::string_view> message_kinds();
/// `kind` is one of them. BackendError where the build has no MPI.
int bench_messages(std::string_view kind, const MessageBench& bench);

}  // namespace rehearse::cli
