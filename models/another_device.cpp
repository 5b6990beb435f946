// SPDX-License-Identifier: Apache-2.0
#include "models/another_device.hpp"

namespace rehearse::models {

namespace {

constexpr double likeness_error = 0.4;  // as those of models/devices.toml

std::string another_than(const ShippedKernels& kernels) {
    if (!kernels.model.starts_with("v100")) return "v100";
    return kernels.kernels.type == DataType::f16 ? "t4" : "p100";
}

}  // namespace

std::shared_ptr<const PriceModel> by_another_device(const ShippedKernels& kernels) {
    if (kernels.family == "knl") return nullptr;
    const DeviceSheet& sheet = kernels.kernels.sheet;
    DeviceClass device;
    device.name = kernels.model;
    device.peak[kernels.kernels.type] = {sheet.peak, "calibrate/deepbench/devices.csv"};
    device.memory_bandwidth = {sheet.bandwidth, "calibrate/deepbench/devices.csv"};
    const Likeness likeness{.like = another_than(kernels),
                            .processors = sheet.processors,
                            .error = likeness_error,
                            .source = "by the data sheet"};
    return transferred_price_model(likeness, device);
}

}  // namespace rehearse::models
