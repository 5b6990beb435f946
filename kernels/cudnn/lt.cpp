// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn/lt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cuda/library.hpp"

namespace rehearse::kernels::cudnn {
namespace {

using cuda::Engine;

struct Lt {
    cuda::Library library{fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR), REHEARSE_CUBLASLT_LIBRARY};
    decltype(&cublasLtGetStatusString) words =
        library.function<decltype(cublasLtGetStatusString)>("cublasLtGetStatusString");
    decltype(&cublasLtCreate) create = library.function<decltype(cublasLtCreate)>("cublasLtCreate");
    decltype(&cublasLtMatmulDescCreate) make_product =
        library.function<decltype(cublasLtMatmulDescCreate)>("cublasLtMatmulDescCreate");
    decltype(&cublasLtMatmulDescDestroy) end_product =
        library.function<decltype(cublasLtMatmulDescDestroy)>("cublasLtMatmulDescDestroy");
    decltype(&cublasLtMatmulDescSetAttribute) set_product =
        library.function<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
    decltype(&cublasLtMatrixLayoutCreate) make_matrix =
        library.function<decltype(cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate");
    decltype(&cublasLtMatrixLayoutDestroy) end_matrix =
        library.function<decltype(cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy");
    decltype(&cublasLtMatmulPreferenceCreate) make_preference =
        library.function<decltype(cublasLtMatmulPreferenceCreate)>("cublasLtMatmulPreferenceCreate");
    decltype(&cublasLtMatmulPreferenceDestroy) end_preference =
        library.function<decltype(cublasLtMatmulPreferenceDestroy)>("cublasLtMatmulPreferenceDestroy");
    decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference =
        library.function<decltype(cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristics =
        library.function<decltype(cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
    decltype(&cublasLtMatmul) multiply = library.function<decltype(cublasLtMatmul)>("cublasLtMatmul");

    void check(cublasStatus_t status, const char* what) const {
        if (status == CUBLAS_STATUS_SUCCESS) return;
        throw BackendError(fmt::format("cuBLASLt failed in {}: {}", what, words(status)));
    }
};

const Lt& lt() {
    static const Lt& only = *new Lt;
    return only;
}

cublasLtHandle_t handle() {
    static cublasLtHandle_t only = [] {
        cublasLtHandle_t made = nullptr;
        lt().check(lt().create(&made), "cublasLtCreate");
        return made;
    }();
    return only;
}

cudaDataType type_of(cuda::Fp8 format) { return format == cuda::Fp8::e4m3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2; }
cudaDataType type_of(DataType type) {
    if (type == DataType::f32) return CUDA_R_32F;
    return type == DataType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

using Matrix = std::shared_ptr<cublasLtMatrixLayoutOpaque_t>;

Matrix matrix(cudaDataType type, std::int64_t rows, std::int64_t columns, std::int64_t row) {
    cublasLtMatrixLayout_t made = nullptr;
    lt().check(
        lt().make_matrix(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), row),
        "cublasLtMatrixLayoutCreate");
    return {made, [](cublasLtMatrixLayout_t p) { lt().end_matrix(p); }};
}

}  // namespace

const std::string& lt_refusal() { return lt().library.refusal(); }

template <typename Value>
void LtProduct::set(cublasLtMatmulDescAttributes_t what, Value value) const {
    lt().check(lt().set_product(told_.get(), what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

void LtProduct::tell(cublasComputeType_t compute, bool transpose_a, bool transpose_b) {
    cublasLtMatmulDesc_t made = nullptr;
    lt().check(lt().make_product(&made, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
    told_ = {made, [](cublasLtMatmulDesc_t each) { lt().end_product(each); }};
    set(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
}

void LtProduct::tell_of_bias(cublasLtEpilogue_t epilogue, DataType type) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(type)));
    // The heuristics look at where it begins: any whole vector, until there is one.
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{256});
}

LtProduct::LtProduct(const Problem& problem, bool tf32, bool with_bias)
    : product_(product(std::get<MatMul>(problem.op), problem.pass, problem.batch)) {
    const Product& p = product_;
    const cudaDataType type = type_of(problem.type);
    a_ = matrix(type, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.row_a);
    b_ = matrix(type, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.row_b);
    c_ = matrix(type, p.m, p.n, p.row_c);
    tell(tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, p.transpose_a, p.transpose_b);
    if (!with_bias || p.bias == BiasPart::none) return;
    tell_of_bias(p.bias == BiasPart::added ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_BGRADA, problem.type);
}

LtProduct::LtProduct(const Fp8Product& p, DataType result, Fp8Sums sums, bool with_bias)
    : product_{p.a.which, p.b.which, true, false, p.m, p.n, p.k, p.a.pitch, p.b.pitch, p.m, p.bias} {
    a_ = matrix(type_of(p.a.format), p.k, p.m, p.a.pitch);
    b_ = matrix(type_of(p.b.format), p.k, p.n, p.b.pitch);
    c_ = matrix(type_of(result), p.m, p.n, p.m);
    tell(CUBLAS_COMPUTE_32F, true, false);
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(sums == Fp8Sums::fast ? 1 : 0));
    if (with_bias && p.bias == BiasPart::added) tell_of_bias(CUBLASLT_EPILOGUE_BIAS, result);
}

void LtProduct::scale_by(const float* a, const float* b) const {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, a);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, b);
}

std::vector<LtAlgorithm> LtProduct::algorithms(std::size_t alignment, Bytes limit, int most, std::string& why) const {
    cublasLtMatmulPreference_t made = nullptr;
    lt().check(lt().make_preference(&made), "cublasLtMatmulPreferenceCreate");
    const std::shared_ptr<cublasLtMatmulPreferenceOpaque_t> preference{
        made, [](cublasLtMatmulPreference_t each) { lt().end_preference(each); }};
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
        lt().check(lt().set_preference(made, what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    constexpr double most_ever = 1e12;  // any_scratch is infinite
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(std::min(limit.value, most_ever)));
    for (const auto each : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
        prefer(each, static_cast<std::uint32_t>(alignment));
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
    int count = 0;
    const cublasStatus_t status = lt().heuristics(handle(), told_.get(), a_.get(), b_.get(), c_.get(), c_.get(), made,
                                                  most, found.data(), &count);
    if (status != CUBLAS_STATUS_SUCCESS) why = lt().words(status);
    if (status != CUBLAS_STATUS_SUCCESS) return {};
    std::vector<LtAlgorithm> all;
    for (int i = 0; i < count; ++i) {
        const auto& each = found[static_cast<std::size_t>(i)];
        if (each.state == CUBLAS_STATUS_SUCCESS) all.push_back({each.algo, each.workspaceSize});
    }
    if (all.empty()) why = "cuBLASLt proposes no algorithm";
    return all;
}

void LtProduct::multiply(Engine& engine, const LtAlgorithm& by, const void* a, const void* b, void* c, void* bias,
                         void* workspace) const {
    if (bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float alpha = 1, beta = 0;
    lt().check(lt().multiply(handle(), told_.get(), &alpha, a, a_.get(), b, b_.get(), &beta, c, c_.get(), c, c_.get(),
                             &by.algorithm, workspace, by.workspace, static_cast<cudaStream_t>(engine.stream())),
               "a product");
}

}  // namespace rehearse::kernels::cudnn
