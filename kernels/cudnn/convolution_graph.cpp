// SPDX-License-Identifier: Apache-2.0
// A convolution as cuDNN's graph of one operation.
#include "kernels/cudnn/graph.hpp"

namespace rehearse::kernels::cudnn {
namespace {

constexpr std::int64_t alignment = 16;  // of every tensor: ours begin at 64 bytes, a batch's rows need not

struct Names {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, convolution, w, x, y;
};

Names names(Pass pass) {
    if (pass == Pass::forward) {
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    }
    if (pass == Pass::backward_data) {
        return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    }
    return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

Descriptor tensor(const Described& shape, DataType type, std::int64_t id) {
    Descriptor made{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
    const cudnnDataType_t element = type_of(type);
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &element);
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.sizes);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, shape.strides);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id});
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {alignment});
    made.finalize("a tensor's description");
    return made;
}

Descriptor convolution(const Correlation& c) {
    Descriptor made{CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {static_cast<std::int64_t>(c.stride.size())});
    made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.before);
    made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.after);
    made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.stride);
    made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilation);
    made.finalize("a convolution's description");
    return made;
}

}  // namespace

cudnnDataType_t type_of(DataType type) {
    if (type == DataType::f32) return CUDNN_DATA_FLOAT;
    return type == DataType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

Graph convolution_graph(const Problem& problem, bool channels_last) {
    const DataType type = problem.type;
    const Correlation c = correlation(problem.op, problem.batch, channels_last);
    const auto& ids = convolution_ids;
    const std::vector<Descriptor> parts{tensor(c.x, type, ids[0]), tensor(c.w, type, ids[1]), tensor(c.y, type, ids[2]),
                                        convolution(c)};
    const Names n = names(problem.pass);
    Descriptor operation{n.operation};
    operation.set(n.x, parts[0]);
    operation.set(n.w, parts[1]);
    operation.set(n.y, parts[2]);
    operation.set(n.convolution, parts[3]);
    const float alpha = 1, beta = 0;
    operation.set(n.alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    operation.set(n.beta, CUDNN_TYPE_FLOAT, 1, &beta);
    operation.finalize("a convolution's operation");
    return {{operation}, parts, type};
}

}  // namespace rehearse::kernels::cudnn
