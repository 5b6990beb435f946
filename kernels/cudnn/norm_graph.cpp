// SPDX-License-Identifier: Apache-2.0
// A normalization as cuDNN's graph of one operation.
#include "kernels/cudnn/graph.hpp"

namespace rehearse::kernels::cudnn {
namespace {

enum class Lies { in_memory, by_value };

Descriptor tensor(const Described& shape, cudnnDataType_t type, NormTensor id, Lies lies = Lies::in_memory) {
    Descriptor made{CUDNN_BACKEND_TENSOR_DESCRIPTOR};
    const bool by_value = lies == Lies::by_value;
    made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.sizes);
    made.set(CUDNN_ATTR_TENSOR_STRIDES, shape.strides);
    made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {static_cast<std::int64_t>(id)});
    made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {std::int64_t{by_value ? 4 : 16}});
    made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    made.finalize("a tensor's description");
    return made;
}

class Operation {
public:
    Operation(const Normalized& n, DataType type, Pass pass)
        : n_(n),
          type_(type_of(type)),
          made_(pass == Pass::forward ? CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR
                                      : CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR) {
        const cudnnBackendNormMode_t mode = n.by_layer ? CUDNN_LAYER_NORM : CUDNN_BATCH_NORM;
        made_.set(pass == Pass::forward ? CUDNN_ATTR_OPERATION_NORM_FWD_MODE : CUDNN_ATTR_OPERATION_NORM_BWD_MODE,
                  CUDNN_TYPE_NORM_MODE, 1, &mode);
        if (pass == Pass::forward) forward();
        if (pass != Pass::forward) backward();
        made_.finalize("a normalization's operation");
    }
    Graph graph(DataType type) { return {{made_}, parts_, type}; }

private:
    void add(cudnnBackendAttributeName_t name, const Described& shape, NormTensor id, bool in_f32) {
        parts_.push_back(tensor(shape, in_f32 ? CUDNN_DATA_FLOAT : type_, id));
        made_.set(name, parts_.back());
    }
    void number(cudnnBackendAttributeName_t name, NormTensor id) {
        const std::vector<std::int64_t> ones(n_.x.sizes.size(), 1);
        parts_.push_back(tensor({ones, ones}, CUDNN_DATA_FLOAT, id, Lies::by_value));
        made_.set(name, parts_.back());
    }
    void forward() {
        const cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_TRAINING;
        made_.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
        add(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, n_.x, NormTensor::x, false);
        add(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, n_.statistics, NormTensor::mean, true);
        add(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, n_.statistics, NormTensor::inverse, true);
        add(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, n_.parameters, NormTensor::gamma, true);
        add(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, n_.parameters, NormTensor::beta, true);
        number(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, NormTensor::epsilon);
        add(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, n_.x, NormTensor::y, false);
        if (n_.by_layer) return;
        number(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, NormTensor::momentum);
        const auto running = [&](cudnnBackendAttributeName_t name, NormTensor id) {
            add(name, n_.statistics, id, true);
        };
        running(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, NormTensor::running_mean);
        running(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, NormTensor::running_variance);
        running(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, NormTensor::next_mean);
        running(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, NormTensor::next_variance);
    }
    void backward() {
        add(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, n_.x, NormTensor::x, false);
        add(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, n_.statistics, NormTensor::mean, true);
        add(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, n_.statistics, NormTensor::inverse, true);
        add(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, n_.x, NormTensor::diff_y, false);
        add(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, n_.parameters, NormTensor::gamma, true);
        add(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, n_.parameters, NormTensor::diff_gamma, true);
        add(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, n_.parameters, NormTensor::diff_beta, true);
        add(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, n_.x, NormTensor::diff_x, false);
    }

    const Normalized& n_;
    cudnnDataType_t type_;
    Descriptor made_;
    std::vector<Descriptor> parts_;
};

}  // namespace

Graph norm_graph(const Problem& problem, bool channels_last) {
    const Normalized n = normalized(problem.op, problem.batch, channels_last);
    return Operation{n, problem.type, problem.pass}.graph(problem.type);
}

}  // namespace rehearse::kernels::cudnn
