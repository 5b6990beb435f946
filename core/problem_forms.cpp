// SPDX-License-Identifier: Apache-2.0
#include "core/problem_forms.hpp"

#include <algorithm>
#include <array>

namespace rehearse {

namespace {

constexpr std::array forms{
    ProblemForm{"conv2d", "conv2d:n8c64h56w56k64r3s3:pad1:stride1:f32:forward",
                "a convolution: batch n, channels c, height h, width w, filters k of r x s; words padN or "
                "padTOPxLEFTxBOTTOMxRIGHT, strideN or strideHxW, dilationN, groupsN, bias, relu"},
    ProblemForm{"conv3d", "conv3d:n1c16d32h64w64k16t3r3s3:pad1:stride1:f32:forward",
                "of volumes: depth d, filters of t x r x s"},
    ProblemForm{"convtranspose", "convtranspose:n8c64h28w28k32r2s2:pad0:stride2:f32:forward",
                "a transposed convolution; word outpadN"},
    ProblemForm{"matmul", "matmul:n1m1024n1024k1024:f32:forward",
                "a product: n matrices of m x k times one of k x n; words bias, relu or gelu, tied"},
    ProblemForm{"attention", "attention:n8h16q512k512d64:f32:forward",
                "attention: h heads, q queries, k keys, of size d; words causal, packed"},
    ProblemForm{"pool", "pool:n8c64h112w112r3s3:pad1:stride2:max:f32:forward",
                "pooling: max or average; word countpad"},
    ProblemForm{"batchnorm", "batchnorm:n8c64h56w56:f32:forward", "batch normalization; words add, relu"},
    ProblemForm{"layernorm", "layernorm:n8r512c1024:f32:forward", "layer normalization of r rows of c features"},
    ProblemForm{"activation", "activation:n8:64x56x56:relu:f32:forward", "a shape, and relu, sigmoid, tanh or gelu"},
    ProblemForm{"add", "add:n8:64x56x56:inputs2:f32:forward", "a sum of N tensors of one shape"},
    ProblemForm{"embedding", "embedding:n8t512v30522c1024:f32:forward",
                "t tokens out of a vocabulary of v, of c features; words positionsN, segmentsN"},
    ProblemForm{"softmax", "softmax:n8:1000:f32:forward", "of so many classes"},
    ProblemForm{"sgd", "sgd:n1:1000000:f32:update", "an update of so many weights; also adam"},
};

}  // namespace

std::span<const ProblemForm> problem_forms() { return forms; }

std::string_view example_of(std::string_view kind) {
    const auto found = std::ranges::find(forms, kind, &ProblemForm::kind);
    return found != forms.end() ? found->example : forms.front().example;
}

}  // namespace rehearse
