// SPDX-License-Identifier: Apache-2.0
#include "core/precision.hpp"

namespace rehearse {

DataType compute_type(Precision precision) {
    switch (precision) {
        case Precision::fp32:
            return DataType::f32;
        case Precision::bf16:
            return DataType::bf16;
        case Precision::fp16:
        case Precision::mixed:
            return DataType::f16;
    }
    return DataType::f32;
}

DataType wire_type(Precision precision) { return compute_type(precision); }

DataType update_type(Precision precision) {
    return precision == Precision::mixed ? DataType::f32 : compute_type(precision);
}

DataType compute_type(Precision precision, const Op& op) {
    return is_loss(op) ? DataType::f32 : compute_type(precision);
}

bool scales_loss(Precision precision) { return compute_type(precision) == DataType::f16; }

}  // namespace rehearse
