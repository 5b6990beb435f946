// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a measured collective lie: on one node of a machine or on several; who predicts it there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/read_samples.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

/// Predicts what a collective takes on a machine: `row.hosts` nodes, on each as many of its first devices as hold the
/// ranks. Who fits messages hands in the simulation, which this folder does not know.
using CollectiveTime = std::function<Seconds(const Machine& machine, const CollectiveRow& row)>;

/// Whose messages a file tells of.
enum class Between { devices, nodes };
std::string_view word_of(Between between);

/// Returns whose messages are in the time of `row`: nodes where its ranks are on several hosts. Where the file does not
/// tell, `asked` says it, or a machine that has one node. InputError "where: ..." where nobody does, and where `asked`
/// contradicts the file.
Between between_of(const CollectiveRow& row, std::optional<Between> asked, const Machine& machine,
                   const std::string& where);

/// Returns `row` with its hosts. Where the file does not tell, messages between devices are of one node, and messages
/// between nodes of as many nodes as share the ranks evenly. InputError "where: ..." where several numbers of nodes do.
CollectiveRow placed(CollectiveRow row, Between between, const Machine& machine, const std::string& where);

/// Returns the numbers of nodes, two or more, that share `ranks` ranks evenly, none with more than its devices.
std::vector<std::int64_t> numbers_of_nodes(std::int64_t ranks, const Machine& machine);

/// Names a collective as errors do: "all_reduce of 134.2 MB among 4 ranks on 1 node by ring".
std::string name_of(const CollectiveRow& row);

/// Throws InputError "where: ..." where the machine has no such place for the ranks of `row`, whose hosts are known.
void check_place(const CollectiveRow& row, const Machine& machine, const std::string& where);

}  // namespace rehearse::calibrate
