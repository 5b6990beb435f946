// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/counts.hpp"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"

namespace rehearse::models {

Counts counts_in(const std::string& path) {
    const google::protobuf::LogSilencer silence;
    onnx::ModelProto model;
    if (!model.ParseFromString(read_file(path)))
        throw InputError(fmt::format("{}: not an ONNX file, or cut off", path));
    Counts counts;
    for (const auto& entry : model.metadata_props()) {
        const std::string where = fmt::format("{}: metadata {}", path, entry.key());
        if (entry.key() == "rehearse.parameters") counts.parameters = parse_int(entry.value(), where);
        if (entry.key() == "rehearse.samples") counts.samples = parse_int(entry.value(), where);
        if (entry.key() == "rehearse.multiply_adds") counts.multiply_adds = parse_number(entry.value(), where);
    }
    if (counts.samples < 1) throw InputError(fmt::format("{}: metadata rehearse.samples is below 1", path));
    return counts;
}

}  // namespace rehearse::models
