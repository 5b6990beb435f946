// SPDX-License-Identifier: Apache-2.0
// Which backends this build has: the only file that asks the preprocessor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "kernels/backend.hpp"
#include "kernels/channels_last.hpp"
#include "kernels/device.hpp"
#include "kernels/reference/backend.hpp"
#if REHEARSE_HAS_CPU
#include "kernels/cpu/backends.hpp"
#include "kernels/cpu/rows/batchnorm.hpp"
#endif
#if REHEARSE_HAS_CUDA
#include "kernels/cuda/convolution.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/layers.hpp"
#endif
#if REHEARSE_HAS_CUDNN
#include "kernels/cudnn/backends.hpp"
#endif
#if REHEARSE_HAS_ONEDNN
#include "kernels/onednn/backend.hpp"
#endif

namespace rehearse::kernels {
namespace {

constexpr std::array every_pass{Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update};

// The first refusal of a pass that the operator has. An Unknown has passes (they are costed) and is refused in them.
Support supports_every_pass(const Backend& backend, const Op& op, std::int64_t batch, DataType type, Bytes limit) {
    for (const Pass pass : every_pass) {
        if (!has_pass(op, pass)) continue;
        if (Support support = supports_within(backend, {op, pass, batch, type}, limit); !support.yes) return support;
    }
    return {};
}

void require_known(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Backend* backend : backends()) {
        if (std::ranges::find(names, backend->name()) == names.end()) names.push_back(backend->name());
    }
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

void require_known_algorithm(std::string_view algorithm, std::string_view only) {
    std::vector<std::string_view> algorithms;
    for (const Backend* backend : backends()) {
        const bool listed = only.empty() || backend->name() == only;
        if (listed && is_algorithm(*backend, algorithm)) return;
        if (listed && !backend->algorithm().empty()) algorithms.push_back(backend->algorithm());
    }
    const std::string of = only.empty() ? "this build" : fmt::format("backend '{}'", only);
    if (algorithms.empty()) throw InputError(fmt::format("algorithm '{}': {} has none to choose from", algorithm, of));
    throw InputError(fmt::format("unknown algorithm '{}'{}; {} has: {}", algorithm, did_you_mean(algorithm, algorithms),
                                 of, join(algorithms)));
}

#if REHEARSE_HAS_CUDA
// On buffers that lie in the GPU's memory, the preferred first.
const std::vector<const Backend*>& on_gpu() {
    static const auto owned = [] {
        std::vector<std::unique_ptr<Backend>> all;
        const auto add = [&all](std::vector<std::unique_ptr<Backend>> some) {
            for (auto& backend : some) all.push_back(std::move(backend));
        };
#if REHEARSE_HAS_CUDNN
        add(cudnn::plans(cuda::gpu(), false));
        add(cudnn::products(cuda::gpu()));
        add(cudnn::products_lt(cuda::gpu()));
#endif
        add(cuda::convolutions(cuda::gpu()));
        all.push_back(cuda::layers(cuda::gpu()));
#if REHEARSE_HAS_CUDNN
        add(cudnn::products_fp8(cuda::gpu()));  // last: nobody gets 8 bits who has not asked for them
#endif
        return all;
    }();
    static const auto listed = [] {
        std::vector<const Backend*> all;
        for (const auto& backend : owned) all.push_back(backend.get());
        return all;
    }();
    return listed;
}

struct ChannelsLast {
    std::vector<std::unique_ptr<Backend>> on_device{}, staged{}, on_host{};
    std::vector<const Backend*> listed{};
};
const ChannelsLast& channels_last_on_gpu() {
    static const ChannelsLast only = [] {
        ChannelsLast made;
#if REHEARSE_HAS_CUDNN
        made.on_device = cudnn::plans(cuda::gpu(), true);
#endif
        for (auto& own : cuda::channels_last_convolutions(cuda::gpu())) made.on_device.push_back(std::move(own));
        for (const auto& backend : made.on_device) {
            made.listed.push_back(backend.get());
            made.staged.push_back(cuda::staged(*backend, cuda::gpu()));
            made.on_host.push_back(channels_first(*made.staged.back()));
        }
        return made;
    }();
    return only;
}
#endif

std::vector<const Backend*> host_backends() {
    std::vector<const Backend*> present;
#if REHEARSE_HAS_CPU
    present.push_back(&cpu::batchnorm());  // oneDNN's takes 1.2 to 3.6 times as long (docs/kernels.md)
    for (const Backend* backend : cpu::preferred()) present.push_back(backend);
#endif
#if REHEARSE_HAS_ONEDNN
    present.push_back(&onednn::backend());
#endif
#if REHEARSE_HAS_CPU
    for (const Backend* backend : cpu::backends()) {
        if (backend != &cpu::batchnorm()) present.push_back(backend);
    }
#endif
#if REHEARSE_HAS_ONEDNN
    for (const Backend* backend : onednn::convolutions()) present.push_back(backend);
#endif
    present.push_back(&reference::backend());
    return present;
}

std::vector<const Backend*> present_backends() {
    std::vector<const Backend*> present = host_backends();
#if REHEARSE_HAS_CUDA
    // Behind all of the CPU: who does not ask for them gets their copies to the GPU and back only in place of plain
    // loops.
    static const auto on_host = [] {
        std::vector<std::unique_ptr<Backend>> all;
        for (const Backend* backend : on_gpu()) all.push_back(cuda::staged(*backend, cuda::gpu()));
        return all;
    }();
    for (const auto& backend : on_host) present.insert(present.end() - 1, backend.get());
#endif
    return present;
}

std::vector<Absent> missing_backends() {
    std::vector<Absent> absent;
#if !REHEARSE_HAS_ONEDNN
    absent.push_back({"onednn", "built without oneDNN (install libdnnl-dev, configure with -DREHEARSE_ONEDNN=ON)"});
#endif
#if !REHEARSE_HAS_CPU
    absent.push_back({"cpu", "built without Highway (install libhwy-dev, configure with -DREHEARSE_CPU=ON)"});
#endif
#if !REHEARSE_HAS_CUDNN
    for (const std::string_view name : {"cudnn", "cublas", "cublaslt"}) {
        absent.push_back(
            {name, "built without cuDNN and cuBLAS (install CUDA with cuDNN 9, configure with -DREHEARSE_CUDNN=ON)"});
    }
#endif
#if !REHEARSE_HAS_CUDA
    absent.push_back({"cuda", "built without CUDA (install the CUDA toolkit, configure with -DREHEARSE_CUDA=ON)"});
#endif
    return absent;
}

// Who refuses, by the reason: those of one reason are told together, and reasons in the order in which they came.
struct Refusals {
    std::vector<std::pair<std::string, std::vector<std::string>>> all = {};

    void add(const Backend& backend, const std::string& reason) {
        const auto found = std::ranges::find(all, reason, [](const auto& each) { return each.first; });
        auto& group = found == all.end() ? all.emplace_back(reason, std::vector<std::string>{}) : *found;
        group.second.push_back(full_name(backend));
    }
    std::string text() const {
        if (all.size() == 1) return all.front().first;  // of all that were asked
        std::string text;
        for (const auto& [reason, names] : all)
            text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", fmt::join(names, ", "), reason);
        return text;
    }
};

// The first of a list of backends that runs the operator; what the others said is added to `refusals`.
struct Search {
    std::span<const Backend* const> from;
    const Op& op;
    std::int64_t batch;
    DataType type;
    Bytes limit;
    Refusals refusals = {};

    template <typename Listed>
    const Backend* first(Listed listed) {
        for (const Backend* backend : from) {
            if (!listed(*backend)) continue;
            const Support support = supports_every_pass(*backend, op, batch, type, limit);
            if (support.yes) return backend;
            refusals.add(*backend, support.reason);
        }
        return nullptr;
    }
};

bool comes_as_algorithms(std::string_view name) {
    return std::ranges::any_of(backends(), [&](const Backend* backend) { return backend->name() == name; }) &&
           std::ranges::none_of(backends(), [&](const Backend* backend) {
               return backend->name() == name && backend->algorithm().empty();
           });
}

}  // namespace

std::span<const Backend* const> backends() {
    static const std::vector<const Backend*> present = present_backends();
    return present;
}

std::span<const Backend* const> channels_last() {
#if REHEARSE_HAS_CUDA
    return channels_last_on_gpu().listed;
#else
    return {};
#endif
}

const Backend& checked_channels_last([[maybe_unused]] const Backend& backend) {
#if REHEARSE_HAS_CUDA
    const ChannelsLast& all = channels_last_on_gpu();
    const auto found = std::ranges::find(all.listed, &backend);
    require(found != all.listed.end(), "one of channels_last()");
    return *all.on_host[static_cast<std::size_t>(found - all.listed.begin())];
#else
    throw BackendError("built without CUDA");
#endif
}

std::span<const Absent> absent_backends() {
    static const std::vector<Absent> absent = missing_backends();
    return absent;
}

Device* device(std::string_view name) {
    if (name == "cpu") return nullptr;
    if (name != "cuda") throw InputError(fmt::format("--device {}: unknown; there are: cpu, cuda", name));
#if REHEARSE_HAS_CUDA
    static const auto only = cuda::device(cuda::gpu(), on_gpu(), host_backends(), channels_last_on_gpu().listed);
    return only.get();
#else
    throw InputError("--device cuda: not in this build: install the CUDA toolkit, configure with -DREHEARSE_CUDA=ON");
#endif
}

Device* usable_device(std::string_view name) {
    Device* const found = device(name);
    if (found == nullptr || found->refusal().empty()) return found;
    throw InputError(fmt::format("--device {}: {}", name, found->refusal()));
}

Support supports_within(const Backend& backend, const Problem& problem, Bytes limit) {
    if (problem.type == DataType::tf32 || problem.type == DataType::fp8) {
        return {.yes = false, .reason = fmt::format("{} is priced, not run", to_string(problem.type))};
    }
    Support support = backend.supports(problem);
    if (!support.yes || limit == any_scratch) return support;
    const Bytes needed = backend.scratch(problem, limit);
    if (needed <= limit) return support;
    return {.yes = false,
            .reason = fmt::format("needs {} of scratch memory, allowed are {}", to_string(needed), to_string(limit))};
}

std::string full_name(const Backend& backend) {
    if (backend.algorithm().empty()) return std::string{backend.name()};
    return fmt::format("{} {}", backend.name(), backend.algorithm());
}

bool is_algorithm(const Backend& backend, std::string_view asked) {
    const std::string_view name = backend.algorithm();
    return !name.empty() && name.starts_with(asked) &&
           name.find_first_not_of("0123456789", asked.size()) == std::string_view::npos;
}

const Backend& choose(const Op& op, std::int64_t batch, DataType type, std::string_view only,
                      std::string_view algorithm, Bytes limit) {
    return choose_from(backends(), op, batch, type, only, algorithm, limit);
}

const Backend& choose_from(std::span<const Backend* const> from, const Op& op, std::int64_t batch, DataType type,
                           std::string_view only, std::string_view algorithm, Bytes limit) {
    if (!only.empty()) require_known(only);
    if (!algorithm.empty()) require_known_algorithm(algorithm, only);
    Search search{from, op, batch, type, limit};
    const auto named = [&](const Backend& backend) { return only.empty() || backend.name() == only; };
    if (!algorithm.empty()) {
        const auto asked = [&](const Backend& backend) { return named(backend) && is_algorithm(backend, algorithm); };
        if (const Backend* found = search.first(asked); found != nullptr) return *found;
        search.refusals = {};  // the algorithm is in the list below too
    }
    if (const Backend* found = search.first(named); found != nullptr) return *found;
    if (comes_as_algorithms(only)) {
        const auto others = [&](const Backend& backend) { return !named(backend); };
        if (const Backend* found = search.first(others); found != nullptr) return *found;
    }
    throw InputError(fmt::format("no backend runs {} at batch {}: {}", to_string(op), batch, search.refusals.text()));
}

}  // namespace rehearse::kernels
