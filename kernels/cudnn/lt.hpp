// SPDX-License-Identifier: Apache-2.0
// A product as cuBLASLt is told of it, and the algorithms that it proposes. Only this folder includes it.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/engine.hpp"
#include "kernels/cudnn/describe.hpp"
#include "kernels/cudnn/describe_fp8.hpp"

namespace rehearse::kernels::cudnn {

/// Empty, or why cuBLASLt cannot be used. Opens it.
const std::string& lt_refusal();

struct LtAlgorithm {
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;
};

/// How the sums of 8-bit products are kept: added to f32 now and then, or in tensor cores' own fewer bits to the end.
enum class Fp8Sums { promoted, fast };

/// A pass of a dense layer; `with_bias`: the bias is added, or its gradient made, in the product's epilogue.
class LtProduct {
public:
    LtProduct(const Problem& problem, bool tf32, bool with_bias);
    /// Of 8-bit factors, into 16 bits of type `result`; a bias that is added may be in the epilogue.
    LtProduct(const Fp8Product& product, DataType result, Fp8Sums sums, bool with_bias);
    const Product& described() const { return product_; }
    /// For tensors that begin at whole `alignment`s; the best first, as cuBLASLt estimates. Empty: `why`.
    std::vector<LtAlgorithm> algorithms(std::size_t alignment, Bytes limit, int most, std::string& why) const;
    /// By what the factors of the next product have to be multiplied: an f32 each, in the GPU's memory.
    void scale_by(const float* a, const float* b) const;
    /// `bias` may be null.
    void multiply(cuda::Engine& engine, const LtAlgorithm& by, const void* a, const void* b, void* c, void* bias,
                  void* workspace) const;

private:
    void tell(cublasComputeType_t compute, bool transpose_a, bool transpose_b);
    void tell_of_bias(cublasLtEpilogue_t epilogue, DataType type);
    template <typename Value>
    void set(cublasLtMatmulDescAttributes_t what, Value value) const;

    Product product_;
    std::shared_ptr<cublasLtMatmulDescOpaque_t> told_;
    std::shared_ptr<cublasLtMatrixLayoutOpaque_t> a_, b_, c_;
};

}  // namespace rehearse::kernels::cudnn
