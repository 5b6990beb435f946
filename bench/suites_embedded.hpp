// SPDX-License-Identifier: Apache-2.0
// The text of bench/suites/*.csv.
#pragma once

#include <string_view>

namespace rehearse::bench {

std::string_view deepbench_conv_csv();
std::string_view deepbench_gemm_csv();

}  // namespace rehearse::bench
