// SPDX-License-Identifier: Apache-2.0
#include "run/data/sample_volumes.hpp"

#include <vector>

#include "run/data/hdf5.hpp"

namespace rehearse::run {

void write_volumes(const std::filesystem::path& path, const Shape& sample, std::int64_t count) {
    Shape shape{count};
    shape.insert(shape.end(), sample.begin(), sample.end());
    std::vector<float> values(static_cast<std::size_t>(elements(shape)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761U % 1048573U);
    const std::vector<float> labels(static_cast<std::size_t>(count));
    write_file(path, [&](const H5& file) {
        write_plain(file, "data", values, shape);
        write_plain(file, "labels", labels, {count});
    });
}

}  // namespace rehearse::run
