// SPDX-License-Identifier: Apache-2.0
// What nearly every file includes, parsed once for all: the standard library and the nouns. Every file still includes
// what it uses: -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without this one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/machine.hpp"
#include "core/schedule.hpp"
