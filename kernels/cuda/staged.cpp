// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/convolution.hpp"
#include "kernels/delegate.hpp"
#include "kernels/touched.hpp"

namespace rehearse::kernels::cuda {
namespace {

class StagedKernel final : public Kernel {
public:
    StagedKernel(const Problem& problem, std::unique_ptr<Kernel> kernel, Engine& engine)
        : problem_(problem), kernel_(std::move(kernel)), engine_(engine) {}
    Bytes scratch() const override { return kernel_->scratch(); }
    void run(const Buffers& host) override {
        Buffers device = host;
        std::vector<Memory> memory;
        std::vector<std::pair<View, View>> out;
        for_each_tensor(problem_, device, host, [&](auto& inside, const auto& outside, Use use) {
            if (outside.empty()) return;
            memory.push_back(engine_.allocate(outside.size_bytes()));
            const View there{memory.back().get(), outside.size(), outside.type()};
            if (use != Use::written) engine_.copy_in(there.bytes(), outside.bytes(), outside.size_bytes());
            if constexpr (std::is_same_v<decltype(outside), const View&>) {
                if (use != Use::read) out.emplace_back(there, outside);
            }
            inside = there;
        });
        const auto bring = [&](auto outside, bool back) {
            if (outside.empty()) return outside;
            memory.push_back(engine_.allocate(outside.size_bytes()));
            engine_.copy_in(memory.back().get(), outside.data(), outside.size_bytes());
            using Element = typename decltype(outside)::element_type;
            if constexpr (std::is_same_v<Element, float>) {
                const View there{memory.back().get(), outside.size(), DataType::f32};
                if (back) out.emplace_back(there, View{outside});
            }
            return decltype(outside){reinterpret_cast<Element*>(memory.back().get()), outside.size()};
        };
        device.workspace = bring(host.workspace, true);
        device.state = bring(host.state, problem_.pass == Pass::forward);
        device.labels = bring(host.labels, false);
        if (!host.indices.empty()) {  // the host looks at them, too
            memory.push_back(engine_.allocate_shared(host.indices.size_bytes()));
            auto* const ids = reinterpret_cast<std::int32_t*>(memory.back().get());
            std::ranges::copy(host.indices, ids);
            device.indices = {ids, host.indices.size()};
        }
        if (!host.weights_copy.empty()) {
            memory.push_back(engine_.allocate(host.weights_copy.size_bytes()));
            device.weights_copy = {memory.back().get(), host.weights_copy.size(), host.weights_copy.type()};
            out.emplace_back(device.weights_copy, host.weights_copy);
        }
        kernel_->run(device);
        engine_.finish();
        for (const auto& [from, to] : out) engine_.copy_out(to.bytes(), from.bytes(), to.size_bytes());
    }

private:
    Problem problem_;
    std::unique_ptr<Kernel> kernel_;
    Engine& engine_;
};

class Staged final : public Delegate {
public:
    Staged(const Backend& device, Engine& engine) : Delegate(device), engine_(engine) {}
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        return std::make_unique<StagedKernel>(problem, backend_.prepare(problem), engine_);
    }

private:
    Engine& engine_;
};

}  // namespace

std::unique_ptr<Backend> staged(const Backend& device, Engine& engine) {
    return std::make_unique<Staged>(device, engine);
}

}  // namespace rehearse::kernels::cuda
