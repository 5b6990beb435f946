// SPDX-License-Identifier: Apache-2.0
// A product as cuBLASLt is told of it, and the algorithms that it proposes. Only this folder includes it.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/engine.hpp"
#include "kernels/cudnn/describe.hpp"

namespace rehearse::kernels::cudnn {

/// Empty, or why cuBLASLt cannot be used. Opens it.
const std::string& lt_refusal();

struct LtAlgorithm {
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;
};

/// A pass of a dense layer; `with_bias`: the bias is added, or its gradient made, in the product's epilogue.
class LtProduct {
public:
    LtProduct(const Problem& problem, bool tf32, bool with_bias);
    const Product& described() const { return product_; }
    /// For tensors that begin at whole `alignment`s; the best first, as cuBLASLt estimates. Empty: `why`.
    std::vector<LtAlgorithm> algorithms(std::size_t alignment, Bytes limit, int most, std::string& why) const;
    /// `bias` may be null.
    void multiply(cuda::Engine& engine, const LtAlgorithm& by, const void* a, const void* b, void* c, void* bias,
                  void* workspace) const;

private:
    template <typename Value>
    void set(cublasLtMatmulDescAttributes_t what, Value value) const;

    Product product_;
    std::shared_ptr<cublasLtMatmulDescOpaque_t> told_;
    std::shared_ptr<cublasLtMatrixLayoutOpaque_t> a_, b_, c_;
};

}  // namespace rehearse::kernels::cudnn
