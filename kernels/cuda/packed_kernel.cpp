// SPDX-License-Identifier: Apache-2.0
// Convolutions of 16-bit numbers whose channels are laid together first.
#include <vector>

#include "kernels/cuda/lowering.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

constexpr std::int64_t floats_of_vector = sizeof(Vector) / sizeof(float);

// A pass's factors by groups: channels that are summed over, of images {groups * channels, pixels}.
struct Laid {
    std::int64_t groups = 1, channels = 1, pixels = 1, vectors = 1;
    std::int64_t source(std::int64_t images) const { return images * pixels * groups * vectors; }
};

Laid laid(const Conv& op, Pass pass) {
    Laid made;
    made.groups = op.groups;
    const bool forward = pass == Pass::forward;
    const Shape out = output_shape(Op{op});
    made.channels = (forward ? op.channels : op.filters) / op.groups;
    made.pixels = forward ? op.depth * op.height * op.width : out[1] * out[2] * out[3];
    made.vectors = divide_up(made.channels, 8);
    return made;
}

// The same launches with terms of eight channels: those of the first channel are the taps.
std::vector<Launch> packed_launches(const Problem& problem) {
    const Conv op = volume(problem.op);
    const Laid to = laid(op, problem.pass);
    std::vector<Launch> all = launches(op, problem.pass, images(problem));
    for (Launch& launch : all) {
        const auto first = launch.terms.begin();
        const std::vector<Term> taps(first, first + static_cast<std::ptrdiff_t>(launch.terms.size()) / to.channels);
        launch.terms.clear();
        for (const Term& tap : taps) {
            for (std::int64_t v = 0; v < to.vectors; ++v) {
                launch.terms.push_back({static_cast<std::int32_t>(v), tap.weight, tap.d, tap.h, tap.w, 0});
            }
        }
        ImplicitGemm& s = launch.gemm;
        s.term_count = static_cast<std::int32_t>(launch.terms.size());
        s.source_image = to.pixels * to.groups * to.vectors;
        s.source_group = to.vectors;
        s.weight_row = s.term_count;
        s.weight_group = std::int64_t{s.rows} * s.term_count;
    }
    return all;
}

std::int64_t weight_vectors(const Launch& launch) { return launch.gemm.groups * launch.gemm.weight_group; }

class PackedKernel final : public DeviceKernel {
public:
    PackedKernel(Engine& engine, const Problem& problem, bool by_warpgroups)
        : DeviceKernel(engine, problem),
          op_(volume(problem.op)),
          laid_(laid(op_, problem.pass)),
          launches_(packed_launches(problem)),
          by_warpgroups_(by_warpgroups) {
        auto* room = reinterpret_cast<Vector*>(reserve(packed_scratch(problem)));
        source_ = room;
        room += laid_.source(images(problem));
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
        LayChannels channels;
        channels.from = forward ? b.src[0].bytes() : b.diff_dst.bytes(), channels.to = source_;
        channels.images = images(problem()), channels.groups = laid_.groups, channels.channels = laid_.channels;
        channels.pixels = laid_.pixels, channels.vectors = laid_.vectors;
        engine().run(PointTask{channels});
        for (const Launch& launch : launches_) {
            lay_weights(b, launch.gemm);
            ImplicitGemm gemm = launch.gemm;
            gemm.target = forward ? b.dst.bytes() : b.diff_src[0].bytes();
            if (forward && op_.bias) {
                gemm.bias = offset(const_cast<void*>(b.weights.bytes()), weight_count(op_), problem().type);
            }
            engine().run(packed(gemm));
        }
    }
    // {filters, channels, taps} of each group.
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
        task.row_step = forward ? filter : taps, task.channel_step = forward ? taps : filter;
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
                if (by_warpgroups_) {
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
    Laid laid_;
    std::vector<Launch> launches_;
    std::vector<Memory> terms_;
    Vector* source_ = nullptr;
    bool by_warpgroups_;
};

}  // namespace

std::int64_t packed_scratch(const Problem& problem) {
    std::int64_t vectors = laid(volume(problem.op), problem.pass).source(images(problem));
    for (const Launch& launch : packed_launches(problem)) vectors += weight_vectors(launch);
    return floats_of_vector * vectors;
}

std::unique_ptr<Kernel> packed_kernel(Engine& engine, const Problem& problem, bool by_warpgroups) {
    return std::make_unique<PackedKernel>(engine, problem, by_warpgroups);
}

}  // namespace rehearse::kernels::cuda
