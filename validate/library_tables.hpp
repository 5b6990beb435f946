// SPDX-License-Identifier: Apache-2.0
// Measured tables of libraries of collectives, each row beside what sim/collective/libraries says without it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/collectives/collective.hpp"
#include "core/machine.hpp"
#include "prices/interval.hpp"
#include "sim/collective/libraries/library_times.hpp"

namespace rehearse::validate {

/// One measured size of one table.
struct LibraryRow {
    std::string table, machine, transport, provenance;
    std::int64_t version = 0;  // as CollectiveSoftware::version
    std::int64_t nodes = 1, devices_per_node = 1;
    CollectiveKind kind = CollectiveKind::all_reduce;
    Bytes bytes;
    Seconds time;
    bool alone = false;  // each call was waited for; otherwise they followed on each other
};
/// InputError with file and line. Columns: those of calibrate/nccl/measured.csv.
std::vector<LibraryRow> read_library_rows(std::string_view text, const std::string& origin);
std::vector<LibraryRow> shipped_library_rows();

struct LibraryAnswer {
    LibraryRow row;
    sim::LibraryPrice predicted;
    prices::Interval<Seconds> band;
    double error() const { return predicted.time / row.time - 1; }
};
/// The communicators of tables, each made once.
class LibraryPrices {
public:
    /// By that of `libraries`, whose figures the caller may change, which has the name of the machine's own, or by the
    /// latter where there is none. InputError where a machine is not known.
    explicit LibraryPrices(const std::vector<LibraryRow>& rows,
                           const std::vector<std::shared_ptr<const CollectiveLibrary>>& libraries = {});
    /// Of a row of those.
    LibraryAnswer answer(const LibraryRow& row) const;
    const sim::LibraryTimes& times(const LibraryRow& row) const { return times_.at(key_of(row)); }

private:
    using Key = std::tuple<std::string, std::int64_t, std::string, std::int64_t, std::int64_t>;
    static Key key_of(const LibraryRow& row);
    std::map<Key, sim::LibraryTimes> times_;
};

/// One answer a row. InputError where a machine is not known.
std::vector<LibraryAnswer> answer(const std::vector<LibraryRow>& rows);

/// "all_reduce" and the like, as nccl-tests names its programs. InputError with the choices.
CollectiveKind library_operation(std::string_view word);
/// ... and nothing for "sendrecv", where each rank sends to the next and receives from the one before.
std::optional<CollectiveKind> library_test(std::string_view word);
std::string_view word_of(CollectiveKind kind);
/// Bus bandwidth of `bytes` in `time`, in GB/s of 1e9 bytes: what nccl-tests calls busbw (its doc/PERFORMANCE.md); of
/// no kind for a message.
double bus_bandwidth(std::optional<CollectiveKind> kind, Bytes bytes, Seconds time, std::int64_t ranks);

/// Elements of f32 that nccl-tests prints as count: of an all-gather, a reduce-scatter or an all-to-all those that go
/// from or to one rank (src/all_gather.cu, reduce_scatter.cu and alltoall.cu, github NVIDIA/nccl-tests), else of all
/// `bytes`.
double count_of(std::optional<CollectiveKind> kind, Bytes bytes, std::int64_t ranks);

}  // namespace rehearse::validate
