// SPDX-License-Identifier: Apache-2.0
// What every kernel library looks like from outside: ask what it supports, prepare once a shape, run many times.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.hpp"
#include "core/units.hpp"
#include "kernels/view.hpp"

namespace rehearse::kernels {

struct Support {
    bool yes = true;
    std::string reason;  // of a no: "f16 is not implemented"
};

/// Dense row-major NCHW tensors of one batch, of the problem's data type. A kernel reads and writes only what its pass
/// says:
///   forward           src or indices, weights, (labels)       -> dst, workspace
///   backward_data     src, dst, weights, workspace, diff_dst  -> diff_src, and diff_weights where there is no
///                                                                backward_weights (BatchNorm, LayerNorm)
///   backward_weights  src or indices, dst, diff_dst, workspace, (weights) -> diff_weights; of a direct EmbeddingBag:
///                                                                weights
///   update            weights, diff_weights, momentum         -> weights, momentum, (weights_copy); Adam and LAMB:
///                                                                second_moment, too
/// `weights` and `diff_weights` hold the operator's tensors one after the other, in the order of rehearse::weights(op).
/// A tied MatMul has another layer's for `weights`, and a `diff_weights` of its own, to be added to that layer's.
/// SoftmaxLoss, TermsLoss: dst is the loss of each sample {batch}; backward_data ignores diff_dst, divides by
/// `loss_batch` (and the rows or pixels of a sample). diff_* are overwritten, never added to, except that diff_src[i]
/// of an empty span is skipped. run() checks every size and type (buffers.hpp says what may be left out). An update's
/// weights and moments are of the problem's type, its diff_weights of any: mixed precision (Micikevicius et al. 2018)
/// is an f32 update of f32 weights by gradients in f16, and weights_copy takes the new weights as f16.
/// Large: one member a tensor that some operator reads or writes.
struct Buffers {
    std::vector<ConstView> src;
    ConstView dst_in;  // the forward output, for a backward pass
    View dst;
    View weights;
    ConstView diff_dst;
    std::vector<View> diff_src;
    View diff_weights;
    View momentum;                               // of SGD; Adam and LAMB: the first moment
    View second_moment;                          // of Adam and LAMB
    View weights_copy;                           // of any type, or empty
    std::span<const std::int64_t> tensor_sizes;  // of LAMB: of the tensors that lie one after the other in weights
    std::span<const std::int32_t> indices;       // of Embedding, EmbeddingBag: ids, in place of src
    std::span<float> workspace;                  // kept by the caller from forward to backward of one micro-batch
    std::span<float> state;                      // BatchNorm: running mean, running variance
    std::span<const std::int32_t> labels;        // of SoftmaxLoss, {batch}, {batch, pixels} or {batch, rows}
    std::int64_t first_row = 0;   // of an Embedding and of SoftmaxTerms in parts: where this rank's share begins
    std::int64_t loss_batch = 1;  // samples that the loss is a mean over: the global batch
    float learning_rate = 0, momentum_factor = 0, weight_decay = 0;  // Adam's beta 1 is momentum_factor
    float second_factor = 0.999F, epsilon = 1e-8F;                   // Adam's beta 2; what keeps its divisor from 0
    std::int64_t update_count = 1;                                   // this one included: for Adam's bias correction
    std::uint64_t seed = 0;                                          // of Dropout: one a step and layer
    std::int64_t first_sample = 0;         // of Dropout: where this batch lies in the global batch, so that a mask does
                                           // not depend on how many ranks and micro-batches share it
    std::int64_t sample_elements = 0;      // of Dropout, where src is a piece of each sample: elements of a whole one,
    std::int64_t first_element = 0;        // and where the piece begins; 0: all of it
    std::span<const std::int64_t> places;  // or, where it is no run of them, where each element lies
    std::span<const std::vector<float>> fixed;          // of an Elementwise: what its constants hold, of no sample
    std::span<const std::vector<std::int32_t>> chosen;  // of an Elementwise (by trainable tensor; empty: as they lie),
                                                        // a Gather, a Rearrangement that packs: Given::places
};

/// A problem made ready. run() is what gets timed; it may be called from one thread at a time.
class Kernel {
public:
    virtual ~Kernel() = default;
    virtual void run(const Buffers& buffers) = 0;
    /// Memory that run() takes beyond its buffers; the kernels of a calling thread share one block of it.
    virtual Bytes scratch() const { return {}; }
};

inline constexpr Bytes any_scratch{std::numeric_limits<double>::infinity()};
/// What a rank's kernels may take of scratch memory where the user does not say: 1 GiB.
inline constexpr Bytes default_scratch_limit{1024.0 * 1024.0 * 1024.0};
/// In which type products are summed: `chunked` adds a few in f16 and the sums of these in f32. `tf32` sums in f32
/// products of f32 numbers that were rounded to 10 bits of fraction first.
enum class Accumulation { f32, chunked, f16, tf32 };
std::string_view to_string(Accumulation accumulation);

/// One implementation of operators: plain loops, oneDNN, an algorithm of ours.
class Backend {
public:
    virtual ~Backend() = default;
    virtual std::string_view name() const = 0;
    /// "direct", "im2col", "winograd4", ... where one library has several ways, each a Backend of its own; else empty.
    virtual std::string_view algorithm() const { return {}; }
    /// Of a convolution or product; every sum of other operators is in f32 or better.
    virtual Accumulation accumulation() const { return Accumulation::f32; }
    virtual Support supports(const Problem& problem) const = 0;
    virtual std::unique_ptr<Kernel> prepare(const Problem& problem) const = 0;  // slow, once per shape
    /// As prepare; what can work in smaller pieces takes at most `limit` of scratch memory if it can.
    virtual std::unique_ptr<Kernel> prepare_within(const Problem& problem, Bytes /*limit*/) const {
        return prepare(problem);
    }
    /// Of a supported problem: the scratch memory of the kernel that prepare_within makes. Allocates none of it.
    virtual Bytes scratch(const Problem& /*problem*/, Bytes /*limit*/) const { return {}; }
    /// What its speed depends on besides the machine, "2.6.3 avx512_core": with another version, measure anew.
    virtual std::string version() const { return {}; }
    /// f32 elements that forward must keep for backward; forward and backward of a layer come from one backend.
    virtual std::int64_t workspace(const Op& op, std::int64_t batch) const = 0;
};

/// All backends of this build, the preferred first, reference last; and those that are absent, with the reason.
std::span<const Backend* const> backends();
struct Absent {
    std::string_view name, reason;
};
std::span<const Absent> absent_backends();

/// supports(), and runs it with at most `limit` of scratch memory; a no says how much it needs.
Support supports_within(const Backend& backend, const Problem& problem, Bytes limit);

/// "onednn", or "cpu direct" where one library has several ways: what names a backend in a message.
std::string full_name(const Backend& backend);

/// Whether this is the algorithm that was asked for: by its name, or by its family's, "winograd" for winograd2, 4
/// and 6.
bool is_algorithm(const Backend& backend, std::string_view asked);

/// The first backend that supports every pass of this operator at this batch and type. InputError names every refusal
/// when there is none. `only` and `algorithm`, where not empty, take all others out of the list, save for
/// - an operator that no backend of that algorithm supports: it is chosen as if no algorithm had been asked for;
/// - an operator that none of the algorithms of `only` supports: the others run it. A library that comes as algorithms
///   ("cpu") has only some operators; one that comes whole ("onednn") is asked for all or nothing.
/// So `only = "cpu", algorithm = "winograd4"` trains any network, with Winograd wherever it applies. Whoever needs more
/// scratch memory than `limit` in a pass is taken out of the list too.
const Backend& choose(const Op& op, std::int64_t batch, DataType type, std::string_view only = {},
                      std::string_view algorithm = {}, Bytes limit = any_scratch);

}  // namespace rehearse::kernels
