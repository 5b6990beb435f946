// SPDX-License-Identifier: Apache-2.0
// Names and texts of strangers, as they may stand on a terminal, in a picture and in a table.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// `text` in which everything that is no character to read (controls but line ends and tabs, bytes that are no UTF-8,
/// what XML has no place for, marks that turn the direction of writing) is written as its bytes: "\x1b[2J".
std::string printable(std::string_view text);

/// A field of a CSV file, in quotes where it needs them (RFC 4180).
std::string csv_field(std::string_view text);

}  // namespace rehearse
