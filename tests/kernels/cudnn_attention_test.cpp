// SPDX-License-Identifier: Apache-2.0
// The graph of operations that cuDNN gets of attention, carried out here as describe_attention.hpp defines them,
// against the reference; and which engines cuDNN proposes for a GPU that is only described.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "kernels/channels_last.hpp"
#include "kernels/cudnn/describe_attention.hpp"
#include "kernels/heads.hpp"
#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"
#if REHEARSE_HAS_CUDNN
#include "kernels/cuda/convolution.hpp"
#include "kernels/cudnn/backends.hpp"
#include "tests/kernels/stored.hpp"
#endif

namespace rehearse::kernels::cudnn {
namespace {

std::vector<Attention> shapes() {
    return {{1, 1, 1, 8},
            {2, 3, 5, 8},
            {.heads = 3, .queries = 4, .keys = 4, .head_size = 8, .causal = true},
            {.heads = 2, .queries = 5, .keys = 5, .head_size = 16, .packed = true},
            {.heads = 1, .queries = 7, .keys = 7, .head_size = 8, .causal = true, .packed = true}};
}

// Each tensor's numbers lie as its strides say, those of the graph's own in memory of their own.
class Carried {
public:
    Carried(const Attention& op, Pass pass, Tensors& t) : op_(op), t_(t), graph_(attention_graph(op, pass, t.batch)) {
        for (const GraphTensor& tensor : graph_.tensors) {
            std::int64_t last = 0;
            for (int d = 0; d < 4; ++d) last += (tensor.shape.sizes[d] - 1) * tensor.shape.strides[d];
            own_.emplace_back(tensor.kept == Kept::nowhere ? last + 1 : 0);
        }
        for (const GraphNode& node : graph_.nodes) run(node);
    }

private:
    using Place = std::array<std::int64_t, 4>;

    std::vector<float>& buffer(Kept kept) {
        const auto part = [&](Kept first) {
            return op_.packed ? 0 : static_cast<std::size_t>(kept) - static_cast<std::size_t>(first);
        };
        if (kept == Kept::dst) return t_.dst;
        if (kept == Kept::diff_dst) return t_.diff_dst;
        if (kept == Kept::log_sums) return t_.workspace;
        return kept >= Kept::diff_q ? t_.diff_src[part(Kept::diff_q)] : t_.src[part(Kept::q)];
    }
    // A dimension of 1 stands for all.
    std::int64_t offset(int tensor, const Place& at) const {
        const Described& shape = graph_.tensors[static_cast<std::size_t>(tensor)].shape;
        std::int64_t sum = 0;
        for (std::size_t d = 0; d < 4; ++d) sum += shape.sizes[d] == 1 ? 0 : at[d] * shape.strides[d];
        return sum;
    }
    double get(int tensor, const Place& at) {
        const auto index = static_cast<std::size_t>(tensor);
        const Kept kept = graph_.tensors[index].kept;
        if (kept == Kept::scale) return score_scale(op_);
        if (kept == Kept::lowest) return -1e30;
        if (kept == Kept::nowhere) return own_[index].at(static_cast<std::size_t>(offset(tensor, at)));
        return buffer(kept).at(static_cast<std::size_t>(first_element(op_, kept) + offset(tensor, at)));
    }
    void put(int tensor, const Place& at, double value) {
        const auto index = static_cast<std::size_t>(tensor);
        const Kept kept = graph_.tensors[index].kept;
        if (kept == Kept::nowhere) {
            own_[index].at(static_cast<std::size_t>(offset(tensor, at))) = value;
        } else {
            buffer(kept).at(static_cast<std::size_t>(first_element(op_, kept) + offset(tensor, at))) =
                static_cast<float>(value);
        }
    }
    const std::vector<std::int64_t>& sizes(int tensor) const {
        return graph_.tensors[static_cast<std::size_t>(tensor)].shape.sizes;
    }
    template <typename F>
    static void each(const std::vector<std::int64_t>& sizes, F visit) {
        Place at{};
        for (at[0] = 0; at[0] < sizes[0]; ++at[0])
            for (at[1] = 0; at[1] < sizes[1]; ++at[1])
                for (at[2] = 0; at[2] < sizes[2]; ++at[2])
                    for (at[3] = 0; at[3] < sizes[3]; ++at[3]) visit(at);
    }
    double of_all(const GraphNode& node, const Place& at) {  // what is reduced
        const bool largest = node.action == Action::largest;
        double made = largest ? -INFINITY : 0;
        for (std::int64_t i = 0; i < sizes(node.from)[3]; ++i) {
            const double value = get(node.from, {at[0], at[1], at[2], i});
            made = largest ? std::max(made, value) : made + value;
        }
        return made;
    }
    double of_one(const GraphNode& node, const Place& at) {
        const auto a = [&] { return get(node.from, at); };
        const auto b = [&] { return get(node.other, at); };
        switch (node.action) {
            case Action::times:
                return a() * b();
            case Action::minus:
                return a() - b();
            case Action::over:
                return a() / b();
            case Action::plus:
                return a() + b();
            case Action::exponential:
                return std::exp(a());
            case Action::logarithm:
                return std::log(a());
            case Action::rounded:
                return a();
            case Action::row:
                return static_cast<double>(at[2]);
            case Action::column:
                return static_cast<double>(at[3]);
            case Action::at_least:
                return a() >= b() ? 1 : 0;
            case Action::chosen:
                return get(node.mask, at) != 0 ? a() : b();
            default:
                ADD_FAILURE() << "no such action";
                return 0;
        }
    }
    void run(const GraphNode& node) {
        if (node.action == Action::relaid) {
            own_[static_cast<std::size_t>(node.to)] = own_[static_cast<std::size_t>(node.from)];
            return;
        }
        each(sizes(node.to), [&](const Place& at) {
            double made = 0;
            if (node.action == Action::product) {
                ASSERT_EQ(sizes(node.from)[3], sizes(node.other)[2]);
                for (std::int64_t k = 0; k < sizes(node.from)[3]; ++k) {
                    made += get(node.from, {at[0], at[1], at[2], k}) * get(node.other, {at[0], at[1], k, at[3]});
                }
            } else if (node.action == Action::largest || node.action == Action::total) {
                made = of_all(node, at);
            } else {
                made = of_one(node, at);
            }
            put(node.to, at, made);
        });
    }

    const Attention& op_;
    Tensors& t_;
    AttentionGraph graph_;
    std::vector<std::vector<double>> own_;
};

// Rounded to f32 once where they end, like the reference's; the log of sums, below 2^7, is kept in f32 between passes.
void expect_near(const std::vector<float>& made, const std::vector<float>& right) {
    ASSERT_EQ(made.size(), right.size());
    for (std::size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(made[i], right[i], 0x1p-14) << "at " << i;
}

TEST(AttentionGraph, IsTheReferencesAttention) {
    for (const Attention& op : shapes()) {
        SCOPED_TRACE(to_string(Op{op}));
        Tensors right{op, 2, reference::backend()}, made{op, 2, reference::backend()};
        right.run(reference::backend(), Pass::forward);
        Carried{op, Pass::forward, made};
        expect_near(made.dst, right.dst);
        expect_near(made.workspace, right.workspace);
        right.run(reference::backend(), Pass::backward_data);
        Carried{op, Pass::backward_data, made};
        for (std::size_t i = 0; i < right.diff_src.size(); ++i) expect_near(made.diff_src[i], right.diff_src[i]);
    }
}

#if REHEARSE_HAS_CUDNN
// As cuDNN itself writes a GPU down. Compute capability, multiprocessors and shared memory are those of the vendor's
// data sheets; the clocks decide nothing here.
std::string described_gpu(int capability, int processors, int shared_memory) {
    return fmt::format(
        R"({{"deviceVer":{},"driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":85899345920,)"
        R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
        R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
        R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
        R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
        R"("supportCoopLaunch":1,"smClockRateKHz":1410000,"memClockRateKHz":1215000,"l2CacheSize":41943040,)"
        R"("deviceName":"described"}})",
        capability, processors, shared_memory);
}

const std::map<std::string, std::string>& described_gpus() {
    static const std::map<std::string, std::string> all{{"A100", described_gpu(800, 108, 166912)},
                                                        {"H200", described_gpu(900, 132, 232448)}};
    return all;
}

bool has_driver() {
    return dlopen("libcuda.so.1", RTLD_NOW) != nullptr || dlopen(REHEARSE_CUDA_STUB, RTLD_NOW) != nullptr;
}

TEST(Cudnn, TakesTheDescriptionOfAttention) {
    for (const Attention& op : shapes()) {
        for (const Pass pass : {Pass::forward, Pass::backward_data}) {
            EXPECT_EQ(refused_description({op, pass, 2, DataType::f16}, false), "") << to_string(Op{op});
        }
    }
}

TEST(Cudnn, ProposesEnginesForConvolutionsOfAGpuThatIsNotThere) {
    const Window window{3, 3, 1, 1, 1, 1, 1, 1, 1, 1};
    const Conv op{64, 56, 56, 64, window, 1, false};
    for (const auto& [name, gpu] : described_gpus()) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
            for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
                const Problem problem{op, pass, 32, type};
                for (const bool last : {false, true}) {
                    std::string why;
                    EXPECT_GT(engines_on(gpu, problem, last, why), 0)
                        << name << ": " << to_string(problem) << (last ? ", channels last: " : ": ") << why;
                }
            }
        }
    }
}

// Compiled when they are asked for, too.
TEST(Cudnn, ProposesEnginesForNormalizationsOfAGpuThatIsNotThere) {
    if (!has_driver()) GTEST_SKIP() << "neither libcuda.so.1 nor the toolkit's stub of it: " << dlerror();
    for (const auto& [name, gpu] : described_gpus()) {
        for (const Op& op : {Op{BatchNorm{64, 56, 56}}, Op{LayerNorm{128, 1024}}}) {
            for (const Pass pass : {Pass::forward, Pass::backward_data}) {
                for (const DataType type : {DataType::f32, DataType::f16}) {
                    for (const bool last : {false, true}) {
                        if (last && std::holds_alternative<LayerNorm>(op)) continue;
                        const Problem problem{op, pass, 32, type};
                        std::string why;
                        EXPECT_GT(engines_on(gpu, problem, last, why), 0)
                            << name << ": " << to_string(problem) << (last ? ", channels last: " : ": ") << why;
                    }
                }
            }
        }
        std::string why;
        EXPECT_EQ(engines_on(gpu, {BatchNorm{64, 8, 8, 0, true}, Pass::forward, 1, DataType::f16}, false, why), 0);
        EXPECT_EQ(why, "normalizes without a fused ReLU or sum: run the network with --fuse off");
        EXPECT_EQ(engines_on(gpu, {BatchNorm{6, 8, 8}, Pass::forward, 1, DataType::f16}, true, why), 0);
        EXPECT_EQ(why, "normalizes channels by fours");
    }
}

// Whole numbers from -4 to 4; quotients and roots of either side round a few times to f32, and once to 16 bits.
TEST(Cudnn, NormalizesOnAGpu) {
    if (!cuda::gpu().refusal().empty()) GTEST_SKIP() << cuda::gpu().refusal();
    int compared = 0;
    for (const bool last : {false, true}) {
        for (const auto& device : plans(cuda::gpu(), last)) {
            const auto there = cuda::staged(*device, cuda::gpu());
            const auto relaid = channels_first(*there);
            const Backend* const backend = last ? relaid.get() : there.get();
            for (const Op& op : {Op{BatchNorm{8, 5, 7}}, Op{BatchNorm{16, 4, 4}}, Op{LayerNorm{6, 64}}}) {
                Tensors expected{op, 3, reference::backend()}, actual{op, 3, *backend};
                for (const Pass pass : {Pass::forward, Pass::backward_data}) {
                    const Problem problem{op, pass, 3, DataType::f16};
                    if (!backend->supports(problem).yes) continue;
                    SCOPED_TRACE(full_name(*backend) + " " + to_string(problem));
                    run_stored<Float16>(expected, reference::backend(), pass);
                    run_stored<Float16>(actual, *backend, pass);
                    const auto near = [](const std::vector<float>& got, const std::vector<float>& right) {
                        ASSERT_EQ(got.size(), right.size());
                        for (std::size_t i = 0; i < right.size(); ++i)
                            ASSERT_NEAR(got[i], right[i], 0x1p-9 * std::abs(right[i]) + 0x1p-9) << "at " << i;
                    };
                    if (pass == Pass::forward) near(actual.dst, expected.dst);
                    if (pass == Pass::forward) near(actual.state, expected.state);
                    if (pass == Pass::backward_data) near(actual.diff_src[0], expected.diff_src[0]);
                    if (pass == Pass::backward_data) near(actual.diff_weights, expected.diff_weights);
                    ++compared;
                }
            }
        }
    }
    EXPECT_GT(compared, 8);
}

// cuDNN compiles attention when it is asked for, with the driver's library: the toolkit's stub of it will do to be told
// whether an engine takes the graph, and has the name under which cuDNN opens it.
TEST(Cudnn, ProposesEnginesForAttentionOfAGpuThatIsNotThere) {
    if (!has_driver()) GTEST_SKIP() << "neither libcuda.so.1 nor the toolkit's stub of it: " << dlerror();
    std::vector<Attention> all = shapes();
    all.push_back({16, 512, 512, 64});
    all.push_back({.heads = 12, .queries = 128, .keys = 128, .head_size = 128, .causal = true, .packed = true});
    for (const auto& [name, gpu] : described_gpus()) {
        for (const Attention& op : all) {
            for (const Pass pass : {Pass::forward, Pass::backward_data}) {
                const Problem problem{op, pass, 8, op.packed ? DataType::bf16 : DataType::f16};
                std::string why;
                EXPECT_GT(engines_on(gpu, problem, false, why), 0) << name << ": " << to_string(problem) << ": " << why;
            }
        }
    }
}

// Inputs of up to a half. Sums of up to 40 terms below 2^2, of which each carries the rounding of its probability to 16
// bits, here as f16.
TEST(Cudnn, AttendsOnAGpu) {
    if (!cuda::gpu().refusal().empty()) GTEST_SKIP() << cuda::gpu().refusal();
    int compared = 0;
    for (const auto& device : plans(cuda::gpu(), false)) {
        const auto backend = cuda::staged(*device, cuda::gpu());
        for (const Attention& op : {Attention{2, 33, 40, 16}, Attention{2, 40, 40, 64, true, true}}) {
            Tensors expected{op, 2, reference::backend()}, actual{op, 2, *backend};
            for (Tensors* t : {&expected, &actual}) {
                for (auto& tensor : t->src) {
                    for (float& value : tensor) value /= 8;
                }
            }
            for (const Pass pass : {Pass::forward, Pass::backward_data}) {
                const Problem problem{op, pass, 2, DataType::f16};
                if (!backend->supports(problem).yes) continue;
                SCOPED_TRACE(full_name(*backend) + " " + to_string(problem));
                run_stored<Float16>(expected, reference::backend(), pass);
                run_stored<Float16>(actual, *backend, pass);
                const auto near = [](const std::vector<float>& got, const std::vector<float>& right) {
                    for (std::size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(got[i], right[i], 0x1p-5) << "at " << i;
                };
                near(actual.dst, expected.dst);
                for (std::size_t i = 0; pass == Pass::backward_data && i < expected.diff_src.size(); ++i) {
                    near(actual.diff_src[i], expected.diff_src[i]);
                }
                actual.dst = expected.dst, actual.workspace = expected.workspace;
                ++compared;
            }
        }
    }
    EXPECT_GT(compared, 3);
}

TEST(Cudnn, RefusesAttentionThatItWouldGetWrong) {
    std::string why;
    const std::string& gpu = described_gpus().at("H200");
    EXPECT_EQ(engines_on(gpu, {Attention{1, 2, 2, 8}, Pass::forward, 1, DataType::f32}, false, why), 0);
    EXPECT_EQ(why, "attends in 16 bits only");
    const Attention late{.heads = 1, .queries = 2, .keys = 4, .head_size = 8, .causal = true};
    EXPECT_EQ(engines_on(gpu, {late, Pass::forward, 1, DataType::f16}, false, why), 0);
    EXPECT_EQ(why, "causal attention needs as many keys as queries");
}
#endif

}  // namespace
}  // namespace rehearse::kernels::cudnn
