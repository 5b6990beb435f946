// SPDX-License-Identifier: Apache-2.0
#include "kernels/choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/threads.hpp"

namespace rehearse::kernels {
namespace {

constexpr std::array every_pass{Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update};

class OnThreads final : public Kernel {
public:
    OnThreads(std::unique_ptr<Kernel> kernel, int threads) : kernel_(std::move(kernel)), threads_(threads) {}
    void run(const Buffers& buffers) override {
        const ThreadsOfThis scope(threads_);
        kernel_->run(buffers);
    }
    Bytes scratch() const override { return kernel_->scratch(); }

private:
    std::unique_ptr<Kernel> kernel_;
    int threads_;
};

// The tuned choice of a problem if it can be followed here.
const Choice* tuned(const Problem& problem, const KernelSelection& selection) {
    if (!selection.backend.empty() || !selection.algorithm.empty() || selection.device != nullptr) return nullptr;
    const auto found = selection.tuned.find(to_string(problem));
    if (found == selection.tuned.end()) return nullptr;
    return supports_within(*found->second.backend, problem, selection.scratch_limit).yes ? &found->second : nullptr;
}

// Whether what one backend keeps from forward to backward would be read by another one.
bool mixes_workspaces(const PassChoices& choices, const Op& op, std::int64_t batch) {
    const Backend* const forward = of(choices, Pass::forward).backend;
    return std::ranges::any_of(choices, [&](const Choice& choice) {
        return choice.backend != nullptr && forward != nullptr && choice.backend != forward &&
               (choice.backend->workspace(op, batch) > 0 || forward->workspace(op, batch) > 0);
    });
}

}  // namespace

PassChoices choose_passes(const Op& op, std::int64_t batch, DataType type, const KernelSelection& selection) {
    const auto from = selection.device == nullptr ? backends() : selection.device->backends();
    const Choice untuned{
        &choose_from(from, op, batch, type, selection.backend, selection.algorithm, selection.scratch_limit), 0};
    PassChoices plain, best;
    for (const Pass pass : every_pass) {
        if (!has_pass(op, pass)) continue;
        const Choice* const found = tuned({op, pass, batch, type}, selection);
        plain[static_cast<std::size_t>(pass)] = untuned;
        best[static_cast<std::size_t>(pass)] = found != nullptr ? *found : untuned;
    }
    return mixes_workspaces(best, op, batch) ? plain : best;
}

int count_tuned(const Op& op, std::int64_t batch, DataType type, const KernelSelection& selection,
                const PassChoices& choices) {
    return static_cast<int>(std::ranges::count_if(every_pass, [&](Pass pass) {
        const Choice* const found = has_pass(op, pass) ? tuned({op, pass, batch, type}, selection) : nullptr;
        return found != nullptr && *found == of(choices, pass);
    }));
}

std::vector<const Backend*> implementations(const Problem& problem, Bytes limit, std::string* refusals) {
    std::vector<const Backend*> found;
    for (const Backend* backend : backends()) {
        if (backend == backends().back() && !found.empty()) break;
        const Support support = supports_within(*backend, problem, limit);
        if (support.yes) found.push_back(backend);
        if (!support.yes && refusals != nullptr) {
            *refusals += fmt::format("\n  {}: {}", full_name(*backend), support.reason);
        }
    }
    std::erase_if(found, [found](const Backend* whole) {
        return whole->algorithm().empty() && std::ranges::any_of(found, [whole](const Backend* other) {
                   return other->name() == whole->name() && !other->algorithm().empty();
               });
    });
    return found;
}

std::unique_ptr<Kernel> prepare(const Choice& choice, const Problem& problem, Bytes limit) {
    if (choice.threads == 0) return choice.backend->prepare_within(problem, limit);
    const ThreadsOfThis scope(choice.threads);
    return std::make_unique<OnThreads>(choice.backend->prepare_within(problem, limit), choice.threads);
}

}  // namespace rehearse::kernels
