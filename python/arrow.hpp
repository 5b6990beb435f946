// SPDX-License-Identifier: Apache-2.0
// Columns in memory as other programs' data frames read them: Arrow's C data interface, whose two structs are laid down
// by its specification, so that no library of Arrow's is needed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings.hpp"

namespace rehearse::python {

/// A named column; all columns of a table are of one length.
struct ArrowColumn {
    std::string name;
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>> values;
};

/// A capsule "arrow_schema": a struct with a child a column, none of which has missing values. `columns` may be empty
/// ones: only their names and types count.
py::capsule arrow_schema(const std::vector<ArrowColumn>& columns);

/// The capsules "arrow_schema" and "arrow_array" of `columns`, each of `rows` values. Whoever takes them over may keep
/// the data after Python has forgotten the timeline.
std::pair<py::capsule, py::capsule> arrow_array(std::vector<ArrowColumn> columns, std::int64_t rows);

}  // namespace rehearse::python
