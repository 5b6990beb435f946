// SPDX-License-Identifier: Apache-2.0
// Convolutions of 16-bit numbers whose channels are laid together first.
#include <vector>

#include "core/error.hpp"
#include "kernels/cuda/packed_launches.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

constexpr std::int64_t floats_of_vector = sizeof(Vector) / sizeof(float);

std::int64_t weight_vectors(const Launch& launch) { return launch.gemm.groups * launch.gemm.weight_group; }

class PackedKernel final : public DeviceKernel {
public:
    PackedKernel(Engine& engine, const Problem& problem, Packing packing)
        : DeviceKernel(engine, problem),
          op_(volume(problem.op)),
          laid_(packed_channels(op_, problem.pass)),
          launches_(packed_launches(problem, packing.channels_last)),
          packing_(packing) {
        auto* room = reinterpret_cast<Vector*>(reserve(packed_scratch(problem, packing.channels_last)));
        source_ = room;
        if (!lies_packed()) room += laid_.source(images(problem));
        for (Launch& launch : launches_) {
            const std::size_t bytes = launch.terms.size() * sizeof(Term);
            terms_.push_back(engine.allocate(bytes + sizeof(Term)));
            if (bytes > 0) engine.copy_in(terms_.back().get(), launch.terms.data(), bytes);
            launch.gemm.terms = reinterpret_cast<const Term*>(terms_.back().get());
            launch.gemm.source = source_, launch.gemm.weights = room;
            room += weight_vectors(launch);
        }
    }

private:
    void compute(const Buffers& b) override {
        const bool forward = problem().pass == Pass::forward;
        const void* const from = forward ? b.src[0].bytes() : b.diff_dst.bytes();
        void* const to = forward ? b.dst.bytes() : b.diff_src[0].bytes();
        if (packing_.channels_last) require_whole({from, to});
        lay_source(from);
        for (const Launch& launch : launches_) {
            ImplicitGemm gemm = launch.gemm;
            if (lies_packed()) gemm.source = from;
            if (has_weights_packed() && is_whole(b.weights.bytes())) {
                gemm.weights = b.weights.bytes();
            } else {
                lay_weights(b, gemm);
            }
            gemm.target = to;
            if (forward && op_.bias) {
                gemm.bias = offset(const_cast<void*>(b.weights.bytes()), weight_count(op_), problem().type);
            }
            engine().run(packed(gemm));
        }
    }
    /// Whether the tensor that is summed over lies as PackedGemm takes it.
    bool lies_packed() const { return packing_.channels_last && laid_.channels % 8 == 0; }
    /// {filters, taps, channels} are rows of terms of eight channels.
    bool has_weights_packed() const { return lies_packed() && problem().pass == Pass::forward; }
    void lay_source(const void* from) {
        if (lies_packed()) return;
        if (packing_.channels_last) {
            PadPixels task;
            task.from = from, task.to = source_, task.channels = laid_.channels, task.vectors = laid_.vectors;
            task.count = laid_.source(images(problem()));
            return engine().run(PointTask{task});
        }
        LayChannels task;
        task.from = from, task.to = source_;
        task.images = images(problem()), task.groups = laid_.groups, task.channels = laid_.channels;
        task.pixels = laid_.pixels, task.vectors = laid_.vectors;
        engine().run(PointTask{task});
    }
    // {filters, channels, taps} of each group, or {filters, taps, channels}.
    void lay_weights(const Buffers& b, const ImplicitGemm& gemm) {
        if (gemm.term_count == 0) return;
        const bool forward = problem().pass == Pass::forward;
        const std::int64_t channels = op_.channels / op_.groups, filters = op_.filters / op_.groups;
        const std::int64_t taps = op_.window.taps(), filter = channels * taps;
        LayTerms task;
        task.from = b.weights.bytes(), task.to = static_cast<Vector*>(const_cast<void*>(gemm.weights));
        task.terms = gemm.terms, task.term_count = gemm.term_count, task.rows = gemm.rows;
        task.count = gemm.groups * gemm.weight_group, task.channels = laid_.channels;
        task.group_step = filters * filter;
        const std::int64_t channel = packing_.channels_last ? 1 : taps;  // from one to the next
        task.row_step = forward ? filter : channel, task.channel_step = forward ? channel : filter;
        engine().run(PointTask{task});
    }
    PackedTask packed(const ImplicitGemm& gemm) {
        PackedTask made;
        with_type(problem().type, [&]<typename Element>(Element) {
            if constexpr (sizeof(Element) == 2) {
                const auto as = [&](auto task) {
                    static_cast<ImplicitGemm&>(task) = gemm;
                    task.source_pixel = laid_.groups * laid_.vectors;
                    made = task;
                    const Blocks blocks = task.blocks();
                    return blocks.x * blocks.y * blocks.z;
                };
                if (packing_.by_warpgroups) {
                    if (gemm.rows > 64) as(TallGroups<Element>{});
                    if (gemm.rows <= 64) as(WideGroups<Element>{});
                    return;
                }
                const std::int64_t blocks = as(LargePacked<Element>{});
                if (blocks < 2 * engine().processors()) as(SmallPacked<Element>{});
            }
        });
        return made;
    }

    Conv op_;
    PackedChannels laid_;
    std::vector<Launch> launches_;
    std::vector<Memory> terms_;
    Vector* source_ = nullptr;
    Packing packing_;
};

}  // namespace

std::int64_t packed_scratch(const Problem& problem, bool channels_last) {
    const PackedChannels to = packed_channels(volume(problem.op), problem.pass);
    std::int64_t vectors = channels_last && to.channels % 8 == 0 ? 0 : to.source(images(problem));
    for (const Launch& launch : packed_launches(problem, channels_last)) vectors += weight_vectors(launch);
    return floats_of_vector * vectors;
}

std::unique_ptr<Kernel> packed_kernel(Engine& engine, const Problem& problem, Packing packing) {
    return std::make_unique<PackedKernel>(engine, problem, packing);
}

}  // namespace rehearse::kernels::cuda
