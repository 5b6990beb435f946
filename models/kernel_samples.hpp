// SPDX-License-Identifier: Apache-2.0
// Measured kernels from tables in the form of Baidu's DeepBench.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/csv.hpp"
#include "prices/price_model.hpp"

namespace rehearse::models {

/// The problem that a row of conv.csv, gemm.csv or rnn.csv is (it has the columns of one of them): a gemm {M, N, K} = {M, K}
/// x {K, N} (column-major) with N, N is a dense layer's forward pass, with T, N its backward_data and with N, T its
/// backward_weights (prices/kernel_point.hpp). Recurrent layers read as many features as they have hidden ones, which
/// the sheet's layers skip the product with; "bwd_total" is both backward passes, here backward_data. InputError with file and line for sizes that are no problem.
Problem problem_of(const Csv& table, std::size_t row, DataType type);

/// A row of a table that the user gives.
struct SampleRow {
    std::string device, precision, snapshot;  // as DeepBench names them: "V100", "fp16_tc", "da81ba7"
    std::string pass;                         // "forward", ..., for products "all", for rows of both backward passes together "backward"
    bool training = true;                     // false: a row of the inference sheets
    KernelSample sample;                      // of type f16 for fp16_tc, else f32
};

/// Needs the columns device, precision, time_us and the sizes; mode and snapshot may be absent ("train", "da81ba7").
std::vector<SampleRow> read_samples(std::string_view text, const std::string& origin);

}  // namespace rehearse::models
