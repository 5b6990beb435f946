// SPDX-License-Identifier: Apache-2.0
// Dense layers by cuBLAS.
#include <cublas_v2.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/library.hpp"
#include "kernels/cudnn/backends.hpp"
#include "kernels/cudnn/describe.hpp"
#include "kernels/support.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;
using Gemm = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                            const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                            cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);

struct Blas {
    cuda::Library library{fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR), REHEARSE_CUBLAS_LIBRARY};
    decltype(&cublasGetStatusString) words = library.function<decltype(cublasGetStatusString)>("cublasGetStatusString");
    decltype(&cublasCreate_v2) create = library.function<decltype(cublasCreate_v2)>("cublasCreate_v2");
    decltype(&cublasSetStream_v2) set_stream = library.function<decltype(cublasSetStream_v2)>("cublasSetStream_v2");
    Gemm* gemm = library.function<Gemm>("cublasGemmEx");

    void check(cublasStatus_t status, const char* what) const {
        if (status != CUBLAS_STATUS_SUCCESS)
            throw BackendError(fmt::format("cuBLAS failed in {}: {}", what, words(status)));
    }
};

const Blas& blas() {
    static const Blas& only = *new Blas;
    return only;
}

cublasHandle_t handle(Engine& engine) {
    static cublasHandle_t only = [] {
        cublasHandle_t made = nullptr;
        blas().check(blas().create(&made), "cublasCreate");
        return made;
    }();
    blas().check(blas().set_stream(only, static_cast<cudaStream_t>(engine.stream())), "cublasSetStream");
    return only;
}

cudaDataType type_of(DataType type) {
    if (type == DataType::f32) return CUDA_R_32F;
    return type == DataType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

class Dense final : public cuda::DeviceKernel {
public:
    Dense(Engine& engine, const Problem& problem, bool tf32)
        : DeviceKernel(engine, problem),
          op_(std::get<MatMul>(problem.op)),
          product_(product(op_, problem.pass, problem.batch)),
          tf32_(tf32) {}

private:
    void compute(const Buffers& b) override {
        const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
        const auto number = [](std::int64_t value) { return static_cast<int>(value); };
        const cudaDataType type = type_of(problem().type);
        const float alpha = 1, beta = 0;
        const Product& p = product_;
        blas().check(
            blas().gemm(handle(engine()), operation(p.transpose_a), operation(p.transpose_b), number(p.m), number(p.n),
                        number(p.k), &alpha, factor(p.a, b), type, number(p.row_a), factor(p.b, b), type,
                        number(p.row_b), &beta, result(problem().pass, b), type, number(p.row_c),
                        tf32_ ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            "a product");
        const std::int64_t count = op_.k * op_.n;
        if (p.bias == BiasPart::added) cuda::add_bias(engine(), problem(), b, count);
        if (p.bias == BiasPart::summed) cuda::sum_bias(engine(), problem(), b, count);
    }

    MatMul op_;
    Product product_;
    bool tf32_;
};

class Products final : public Backend {
public:
    Products(Engine& engine, bool tf32) : engine_(engine), tf32_(tf32) {}
    std::string_view name() const override { return "cublas"; }
    std::string_view algorithm() const override { return tf32_ ? "tensor-tf32" : "gemm"; }
    Accumulation accumulation() const override { return tf32_ ? Accumulation::tf32 : Accumulation::f32; }
    std::string version() const override { return engine_.version(); }
    std::int64_t workspace(const Op& /*op*/, std::int64_t /*batch*/) const override { return 0; }
    Support supports(const Problem& problem) const override {
        if (Support any = supported_by_any(problem); !any.yes) return any;
        std::string reason = product_refusal(engine_, problem, tf32_);
        if (reason.empty()) reason = blas().library.refusal();
        return reason.empty() ? Support{} : Support{.yes = false, .reason = reason};
    }
    std::unique_ptr<Kernel> prepare(const Problem& problem) const override {
        require_supported(*this, problem);
        if (problem.pass == Pass::update) return cuda::layer_kernel(engine_, problem, 0);
        return std::make_unique<Dense>(engine_, problem, tf32_);
    }

private:
    Engine& engine_;
    bool tf32_;
};

}  // namespace

std::string product_refusal(const Engine& engine, const Problem& problem, bool tf32) {
    const auto* op = std::get_if<MatMul>(&problem.op);
    if (op == nullptr) return fmt::format("runs products, not {}", kind_of(problem.op));
    if (op->activation) return "multiplies without a fused activation: run the network with --fuse off";
    if (op->tied && op->bias && problem.pass == Pass::backward_weights) return "sums no bias beside tied weights";
    if (std::max({problem.batch * op->m, op->n, op->k}) > std::numeric_limits<int>::max()) {
        return "a matrix has 2^31 rows or more";
    }
    if (tf32 && problem.type != DataType::f32) return "TF32 is how f32 is multiplied";
    if (std::string why = engine.refusal(); !why.empty()) return why;
    if ((tf32 || problem.type == DataType::bf16) && engine.capability() < 80) {
        return "TF32 and bf16 need compute capability 8.0";
    }
    return {};
}

std::vector<std::unique_ptr<Backend>> products(Engine& engine) {
    std::vector<std::unique_ptr<Backend>> all;
    all.push_back(std::make_unique<Products>(engine, false));
    all.push_back(std::make_unique<Products>(engine, true));
    return all;
}

}  // namespace rehearse::kernels::cudnn
