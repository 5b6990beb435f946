// SPDX-License-Identifier: Apache-2.0
// Element-wise operators that were measured on boards, which no price is fitted on: they hold shares of the bandwidth
// in devices.toml to account.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "prices/price_model.hpp"

namespace rehearse::models {

/// Those of one board from a megabyte on: add, mul, div of two tensors, relu, gelu, tanh.
struct ElementwiseRows {
    std::string device;  // as devices.toml names it
    std::vector<KernelSample> samples;
};
/// Of a table with `op`, `rows`, `cols` and a column a board; other operators in it are passed over, and boards without
/// a row. InputError with file and line where a time is not above zero.
std::vector<ElementwiseRows> elementwise_rows(std::string_view text, const std::string& origin);
/// Of the table that is built in.
std::vector<ElementwiseRows> elementwise_rows();

}  // namespace rehearse::models
