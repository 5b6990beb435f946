// SPDX-License-Identifier: Apache-2.0
// What tensors of an ONNX file hold, inside of it or beside it.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/half.hpp"
#include "core/text.hpp"
#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

using Values = std::vector<double>;

template <typename From>
Values as_doubles(const From& values) {
    return {values.begin(), values.end()};
}

// ONNX is little-endian, as are our hosts.
template <typename T, typename Convert>
Values from_raw(const std::string& raw, Convert convert) {
    Values values(raw.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
        T one;
        std::memcpy(&one, raw.data() + i * sizeof(T), sizeof(T));
        values[i] = convert(one);
    }
    return values;
}
template <typename T>
Values from_raw(const std::string& raw) {
    return from_raw<T>(raw, [](T one) { return static_cast<double>(one); });
}

template <typename Half>
double of_half(std::uint16_t bits) {
    return static_cast<float>(Half::of_bits(bits));
}
template <typename Half>
Values from_halves(const onnx::TensorProto& tensor, const std::string& raw) {
    if (!raw.empty()) return from_raw<std::uint16_t>(raw, of_half<Half>);
    Values values;
    for (const std::int32_t bits : tensor.int32_data())
        values.push_back(of_half<Half>(static_cast<std::uint16_t>(bits)));
    return values;
}

// Of a file beside the network's; InputError where it is not there or too short.
std::string external(const onnx::TensorProto& tensor, const std::string& path) {
    std::string location;
    std::int64_t offset = 0, length = -1;
    for (const auto& entry : tensor.external_data()) {
        if (entry.key() == "location") location = entry.value();
        if (entry.key() == "offset") offset = parse_int(entry.value(), path);
        if (entry.key() == "length") length = parse_int(entry.value(), path);
    }
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / location;
    std::error_code none;
    std::ifstream file(beside, std::ios::binary | std::ios::ate);
    const auto size = std::filesystem::is_regular_file(beside, none) ? static_cast<std::int64_t>(file.tellg()) : -1;
    const bool there = !location.empty() && file && offset >= 0 && offset <= size;
    if (there && length < 0) length = size - offset;
    if (!there || length > size - offset) {
        throw InputError(fmt::format("{}: '{}' should lie in {}, which is absent or too short", path, tensor.name(),
                                     beside.string()));
    }
    std::string raw(static_cast<std::size_t>(length), '\0');
    file.seekg(offset);
    file.read(raw.data(), length);
    return raw;
}

Values values_of(const onnx::TensorProto& tensor, const std::string& raw) {
    switch (tensor.data_type()) {
        case onnx::TensorProto::FLOAT:
            return raw.empty() ? as_doubles(tensor.float_data()) : from_raw<float>(raw);
        case onnx::TensorProto::DOUBLE:
            return raw.empty() ? as_doubles(tensor.double_data()) : from_raw<double>(raw);
        case onnx::TensorProto::FLOAT16:
            return from_halves<Float16>(tensor, raw);
        case onnx::TensorProto::BFLOAT16:
            return from_halves<BFloat16>(tensor, raw);
        case onnx::TensorProto::INT64:
            return raw.empty() ? as_doubles(tensor.int64_data()) : from_raw<std::int64_t>(raw);
        case onnx::TensorProto::INT32:
            return raw.empty() ? as_doubles(tensor.int32_data()) : from_raw<std::int32_t>(raw);
        case onnx::TensorProto::BOOL:
        case onnx::TensorProto::UINT8:
            return raw.empty() ? as_doubles(tensor.int32_data()) : from_raw<std::uint8_t>(raw);
        default:
            return {};
    }
}

}  // namespace

std::shared_ptr<const std::vector<double>> data_of(const onnx::TensorProto& tensor, const std::string& path) {
    double elements = 1;
    for (const std::int64_t dim : tensor.dims()) elements *= static_cast<double>(std::max<std::int64_t>(dim, 0));
    const bool outside = tensor.data_location() == onnx::TensorProto::EXTERNAL;
    if (path.empty() && (elements > static_cast<double>(largest_kept) || outside)) return nullptr;
    Values values = values_of(tensor, outside ? external(tensor, path) : tensor.raw_data());
    if (static_cast<double>(values.size()) != elements) return nullptr;  // weights that were left out
    return std::make_shared<const Values>(std::move(values));
}

}  // namespace rehearse::models
