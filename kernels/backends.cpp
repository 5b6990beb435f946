// SPDX-License-Identifier: Apache-2.0
// Which backends this build has: the only file that asks the preprocessor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "kernels/backend.hpp"
#include "kernels/reference/backend.hpp"
#if REHEARSE_HAS_ONEDNN
#include "kernels/onednn/backend.hpp"
#endif

namespace rehearse::kernels {
namespace {

constexpr std::array every_pass{Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update};

// The first refusal of a pass that the operator has. An Unknown has passes (they are costed) and is refused in them.
Support supports_every_pass(const Backend& backend, const Op& op, std::int64_t batch, DataType type) {
    for (const Pass pass : every_pass) {
        if (!has_pass(op, pass)) continue;
        if (Support support = backend.supports({op, pass, batch, type}); !support.yes) return support;
    }
    return {};
}

void require_known(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Backend* backend : backends()) names.push_back(backend->name());
    for (const Absent& absent : absent_backends()) {
        if (absent.name == name) {
            throw InputError(fmt::format("backend '{}' is not in this build: {}", name, absent.reason));
        }
    }
    if (std::ranges::find(names, name) == names.end()) {
        throw InputError(
            fmt::format("unknown backend '{}'{}; this build has: {}", name, did_you_mean(name, names), join(names)));
    }
}

}  // namespace

std::span<const Backend* const> backends() {
    static const std::array present {
#if REHEARSE_HAS_ONEDNN
        &onednn::backend(),
#endif
            &reference::backend(),
    };
    return present;
}

std::span<const Absent> absent_backends() {
#if REHEARSE_HAS_ONEDNN
    static constexpr std::array absent{Absent{"cuda", "not written yet"}};
#else
    static constexpr std::array absent{
        Absent{"onednn", "built without oneDNN (install libdnnl-dev, configure with -DREHEARSE_ONEDNN=ON)"},
        Absent{"cuda", "not written yet"}};
#endif
    return absent;
}

const Backend& choose(const Op& op, std::int64_t batch, DataType type, std::string_view only) {
    if (!only.empty()) require_known(only);
    std::string refusals;
    for (const Backend* backend : backends()) {
        if (!only.empty() && backend->name() != only) continue;
        const Support support = supports_every_pass(*backend, op, batch, type);
        if (support.yes) return *backend;
        refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "; ", backend->name(), support.reason);
    }
    throw InputError(fmt::format("no backend runs {} at batch {}: {}", to_string(op), batch, refusals));
}

}  // namespace rehearse::kernels
