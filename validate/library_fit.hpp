// SPDX-License-Identifier: Apache-2.0
// What a library's file has from measured rows, taken anew from the rows of other machines: errors as of a machine that
// nobody has measured.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/progress.hpp"
#include "validate/library_tables.hpp"

namespace rehearse::validate {

/// One answer a row, in their order, each by figures that no row of its machine has a part in, but those of other
/// machines, `beside` among them. Shares, gaps and steps of a transport begin as if nothing were known (a wire's whole
/// rate, no time of a thread's; what a way through the CPU leaves by the library's first transport, whose source is
/// none of the rows), and are chosen one after the other by the least mean logarithmic error over the rows of all other
/// machines with this transport or one that it is like; what those rows say nothing of stays as it began. The same
/// holds for what rings and switches inside a node reach, by the generation of GPUs, and for the time of a call.
/// `progress` is told of machines; rows of those that were not reached when it ended the work have no answer.
/// InputError where a machine is not known.
std::vector<std::optional<LibraryAnswer>> answer_left_out(const std::vector<LibraryRow>& rows,
                                                          const std::vector<LibraryRow>& beside = {},
                                                          const Progress& progress = {});

/// What measured rows of one machine say of its library, and how far off they leave it.
struct FittedFigures {
    std::vector<std::pair<std::string, double>> figures;  // as [collectives.figures] of a machine file names them
    double error_before = 0, error_after = 0;             // relative, one standard deviation over the rows
};
/// Beginning with what the machine's library says, each figure is changed while that leaves the rows nearer by more
/// than one part in fifty, one after the other; what they say nothing of stays. InputError where the machine is not
/// known, or `rows` are of several, or none.
FittedFigures fit_figures(const std::vector<LibraryRow>& rows);

}  // namespace rehearse::validate
