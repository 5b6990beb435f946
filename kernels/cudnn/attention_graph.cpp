// SPDX-License-Identifier: Apache-2.0
// Attention as cuDNN's graph of operations, from its description.
#include <array>

#include "core/error.hpp"
#include "kernels/cudnn/graph.hpp"

namespace rehearse::kernels::cudnn {
namespace {

constexpr cudnnDataType_t f32 = CUDNN_DATA_FLOAT;

cudnnDataType_t stored_type(Number number, DataType element) {
    if (number == Number::index) return CUDNN_DATA_INT32;
    if (number == Number::truth) return CUDNN_DATA_BOOLEAN;
    return number == Number::f32 ? CUDNN_DATA_FLOAT : type_of(element);
}

Descriptor tensor(const GraphTensor& t, DataType element, std::int64_t id) {
    Descriptor made{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
    const cudnnDataType_t type = stored_type(t.number, element);
    const bool is_virtual = t.kept == Kept::nowhere, by_value = t.kept == Kept::scale || t.kept == Kept::lowest;
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.shape.sizes);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, t.shape.strides);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id});
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {t.number == Number::element ? std::int64_t{16} : std::int64_t{4}});
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    made.finalize("a tensor's description");
    return made;
}

cudnnPointwiseMode_t mode_of(Action action) {
    switch (action) {
        case Action::times:
            return CUDNN_POINTWISE_MUL;
        case Action::minus:
            return CUDNN_POINTWISE_SUB;
        case Action::over:
            return CUDNN_POINTWISE_DIV;
        case Action::plus:
            return CUDNN_POINTWISE_ADD;
        case Action::exponential:
            return CUDNN_POINTWISE_EXP;
        case Action::logarithm:
            return CUDNN_POINTWISE_LOG;
        case Action::rounded:
            return CUDNN_POINTWISE_IDENTITY;
        case Action::row:
        case Action::column:
            return CUDNN_POINTWISE_GEN_INDEX;
        case Action::at_least:
            return CUDNN_POINTWISE_CMP_GE;
        default:
            require(action == Action::chosen, "element by element");
            return CUDNN_POINTWISE_BINARY_SELECT;
    }
}

class Operations {
public:
    Operations(const AttentionGraph& described, DataType element) {
        for (std::size_t i = 0; i < described.tensors.size(); ++i) {
            parts.push_back(tensor(described.tensors[i], element, attention_id(i)));
        }
        for (const GraphNode& node : described.nodes) operations.push_back(operation(node));
    }
    std::vector<Descriptor> operations, parts;

private:
    const Descriptor& at(int tensor) const { return parts[static_cast<std::size_t>(tensor)]; }

    Descriptor operation(const GraphNode& node) {
        if (node.action == Action::product) return product(node);
        if (node.action == Action::largest || node.action == Action::total) return reduction(node);
        if (node.action == Action::relaid) {
            Descriptor made{CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR};
            made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(node.from));
            made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(node.to));
            made.finalize("a reshape's operation");
            return made;
        }
        return pointwise(node);
    }
    Descriptor product(const GraphNode& node) {
        Descriptor how{CUDNN_BACKEND_MATMUL_DESCRIPTOR};
        how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f32);
        how.finalize("a product's description");
        parts.push_back(how);
        Descriptor made{CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR};
        made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(node.from));
        made.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(node.other));
        made.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(node.to));
        made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
        made.finalize("a product's operation");
        return made;
    }
    Descriptor reduction(const GraphNode& node) {
        Descriptor how{CUDNN_BACKEND_REDUCTION_DESCRIPTOR};
        const cudnnReduceTensorOp_t by =
            node.action == Action::largest ? CUDNN_REDUCE_TENSOR_MAX : CUDNN_REDUCE_TENSOR_ADD;
        how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &by);
        how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f32);
        how.finalize("a reduction's description");
        parts.push_back(how);
        Descriptor made{CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR};
        made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(node.from));
        made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(node.to));
        made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
        made.finalize("a reduction's operation");
        return made;
    }
    Descriptor pointwise(const GraphNode& node) {
        Descriptor how{CUDNN_BACKEND_POINTWISE_DESCRIPTOR};
        const cudnnPointwiseMode_t mode = mode_of(node.action);
        how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
        how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &f32);
        if (node.action == Action::row) how.set(CUDNN_ATTR_POINTWISE_AXIS, {2});
        if (node.action == Action::column) how.set(CUDNN_ATTR_POINTWISE_AXIS, {3});
        how.finalize("a pointwise description");
        parts.push_back(how);
        Descriptor made{CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR};
        made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
        made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(node.from));
        if (node.other >= 0) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(node.other));
        if (node.mask >= 0) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(node.mask));
        made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(node.to));
        made.finalize("a pointwise operation");
        return made;
    }
};

}  // namespace

Graph graph_of(const AttentionGraph& described, DataType type) {
    Operations all{described, type};
    return {all.operations, std::move(all.parts), type};
}

}  // namespace rehearse::kernels::cudnn
