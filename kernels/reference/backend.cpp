// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/backend.hpp"

#include <type_traits>

#include "core/error.hpp"
#include "kernels/buffers.hpp"
#include "kernels/general/places.hpp"
#include "kernels/heads.hpp"
#include "kernels/reference/loops.hpp"
#include "kernels/storage.hpp"
#include "kernels/support.hpp"

namespace rehearse::kernels::reference {
namespace {

class Loops final : public Kernel {
public:
    Loops(const Problem& problem, std::int64_t workspace) : problem_(problem), sizes_(problem, workspace) {
        // The update of a layer is the same loop as the update of a bucket of layers.
        if (problem.pass == Pass::update && !updated(problem.op)) {
            problem_.op = SgdUpdate{parameters(problem.op)};
        }
    }

    void run(const Buffers& buffers) override {
        sizes_.check(buffers);
        std::visit([&](const auto& op) { run_op(op, buffers); }, problem_.op);
    }

private:
    template <typename O>
    void run_op(const O& op, const Buffers& buffers) const {
        if constexpr (!requires { reference::run(op, problem_.pass, problem_.batch, buffers); }) {
            require(false, "prepare refuses what computes nothing");
        } else {
            reference::run(op, problem_.pass, problem_.batch, buffers);
        }
    }

    Problem problem_;
    BufferSizes sizes_;
};

class Reference final : public Backend {
public:
    std::string_view name() const override { return "reference"; }

    Support supports(const Problem& problem) const override { return supported_by_any(problem); }

    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        require_supported(*this, problem);
        const std::int64_t kept = workspace(problem.op, problem.batch);
        auto loops = std::make_unique<Loops>(in_f32(problem), kept);
        // An update may bring gradients of another type.
        if (problem.type == DataType::f32 && problem.pass != Pass::update) return loops;
        return stored_as(problem, kept, std::move(loops));
    }

    std::int64_t workspace(const Op& op, std::int64_t batch) const override {
        if (const auto* norm = std::get_if<BatchNorm>(&op)) return 2 * norm->channels;
        if (const auto* dropout = std::get_if<Dropout>(&op)) return batch * elements(dropout->shape);
        if (const auto* attention = std::get_if<Attention>(&op)) return attention_workspace(*attention, batch);
        if (const auto* norm = std::get_if<LayerNorm>(&op)) return layer_norm_workspace(*norm, batch);
        if (const auto* cells = std::get_if<Recurrent>(&op)) return general::recurrent_workspace(*cells, batch);
        return keeps_slope(op) ? batch * elements(output_shape(op)) : 0;
    }
};

}  // namespace

const Backend& backend() {
    static const Reference reference;
    return reference;
}

}  // namespace rehearse::kernels::reference
