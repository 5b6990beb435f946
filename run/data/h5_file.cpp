// SPDX-License-Identifier: Apache-2.0
// Samples of an HDF5 file, one row of its data sets at a time.
#include <fmt/format.h>

#include <memory>

#include "core/error.hpp"
#include "run/checkpoint/files.hpp"
#include "run/data/hdf5.hpp"

namespace rehearse::run {

namespace {

class H5Samples {
public:
    H5Samples(const std::filesystem::path& path, const Shape& sample, const SoftmaxLoss& loss)
        : where_(path.string()), classes_(loss.classes), file_(open_file(path)) {
        data_ = data_set("data");
        labels_ = data_set("labels");
        const Shape data = shape_of(data_), labels = shape_of(labels_);
        Shape right_data{data.empty() ? 0 : data[0]}, right_labels = right_data;
        right_data.insert(right_data.end(), sample.begin(), sample.end());
        right_labels.insert(right_labels.end(), loss.image.begin(), loss.image.end());
        if (loss.rows > 1) right_labels.push_back(loss.rows);
        if (right_data[0] < 1 || data != right_data || labels != right_labels) {
            throw InputError(
                fmt::format("{}: has data of {} and labels of {}; the network takes {} and {}, with one size "
                            "for the samples before them",
                            where_, to_string(data), to_string(labels), to_string(sample),
                            loss.image.empty() ? "one label" : to_string(loss.image)));
        }
        count_ = data[0];
    }

    std::int64_t count() const { return count_; }

    void read(std::int64_t place, std::span<float> input, std::span<std::int32_t> labels) const {
        const std::string where = fmt::format("{}: sample {}", where_, place);
        read_rows(labels_, place, 1, labels, where);
        check_labels(labels, classes_, where);
        if (!input.empty()) read_rows(data_, place, 1, input, where);
    }

private:
    H5 data_set(const std::string& name) const {
        H5 found = find(file_, name);
        if (!found || !is_data_set(found)) {
            throw InputError(fmt::format("{}: has no data set '{}': there must be 'data' and 'labels'", where_, name));
        }
        return found;
    }

    std::string where_;
    std::int64_t classes_, count_ = 0;
    H5 file_, data_, labels_;
};

}  // namespace

LabelledFile open_h5(const std::filesystem::path& file, const Shape& sample, const SoftmaxLoss& loss) {
    const auto samples = std::make_shared<const H5Samples>(file, sample, loss);
    return {samples->count(), [samples](std::int64_t place, std::span<float> input, std::span<std::int32_t> labels) {
                samples->read(place, input, labels);
            }};
}

}  // namespace rehearse::run
