// SPDX-License-Identifier: Apache-2.0
// Samples of an HDF5 file, one row of its data sets at a time.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "run/checkpoint/files.hpp"
#include "run/data/hdf5.hpp"

namespace rehearse::run {

namespace {

class H5Samples {
public:
    H5Samples(const std::filesystem::path& path, const Shape& sample, const SoftmaxLoss& loss, std::int64_t left_out)
        : where_(path.string()), classes_(loss.classes), left_out_(left_out), file_(open_file(path)) {
        data_ = data_set("data");
        labels_ = data_set("labels");
        const Shape data = shape_of(data_), labels = shape_of(labels_);
        Shape right_data{data.empty() ? 0 : data[0]}, right_labels = right_data;
        const Shape rows = loss.rows > 1 ? Shape{loss.rows} : loss.image;  // that have a label each
        right_data.insert(right_data.end(), sample.begin(), sample.end());
        right_labels.insert(right_labels.end(), rows.begin(), rows.end());
        if (right_data[0] < 1 || data != right_data || labels != right_labels) {
            throw InputError(
                fmt::format("{}: has data of {} and labels of {}; the network takes {} and {}, with one size "
                            "for the samples before them",
                            where_, to_string(data), to_string(labels), to_string(sample),
                            rows.empty() ? "one label" : to_string(rows)));
        }
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // as Shuffle numbers them
        if (data[0] > most) throw InputError(fmt::format("{}: {} samples, at most {}", where_, data[0], most));
        count_ = data[0];
    }

    std::int64_t count() const { return count_; }
    const std::string& where() const { return where_; }

    void read(std::int64_t place, std::span<float> input, std::span<std::int32_t> labels) const {
        const std::string where = fmt::format("{}: sample {}", where_, place);
        read_rows(labels_, place, 1, labels, where);
        settle_labels(labels, classes_, left_out_, where);
        if (!input.empty()) read_rows(data_, place, 1, input, where);
    }

    void read_block(std::int64_t place, const SampleBlock& block, std::span<float> input,
                    std::span<std::int32_t> labels) const {
        const std::string where = fmt::format("{}: sample {}", where_, place);
        Shape first{place}, size{1};
        first.insert(first.end(), block.first.begin(), block.first.end());
        size.insert(size.end(), block.size.begin(), block.size.end());
        run::read_block(data_, first, size, input, where);
        read(place, {}, labels);
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
    std::int64_t classes_, left_out_, count_ = 0;
    H5 file_, data_, labels_;
};

class H5Tokens {
public:
    H5Tokens(const std::filesystem::path& path, const Input& input, const SoftmaxLoss& loss, std::int64_t left_out)
        : where_(path.string()),
          length_(elements(input.shape)),
          vocabulary_(input.vocabulary),
          classes_(loss.classes),
          left_out_(left_out),
          file_(open_file(path)) {
        tokens_ = find(file_, "tokens");
        if (!tokens_ || !is_data_set(tokens_))
            throw InputError(fmt::format("{}: has no data set 'tokens', which the network reads", where_));
        labels_ = find(file_, "labels");
        shape_ = shape_of(tokens_);
        const Shape labels = labels_ ? shape_of(labels_) : Shape{};
        const bool follows = loss.rows == length_ && loss.rows > 1;  // each token has a label of its own
        const bool text = shape_.size() == 1 && !labels_ && follows;
        const bool rows = shape_.size() == 2 && !labels_ && follows && shape_[1] == length_ + 1;
        const Shape right =
            follows ? Shape{shape_.empty() ? 0 : shape_[0], length_} : Shape{shape_.empty() ? 0 : shape_[0]};
        const bool both = shape_.size() == 2 && labels_ && shape_[1] == length_ && labels == right;
        count_ = text ? (shape_[0] - 1) / length_ : shape_.empty() ? 0 : shape_[0];
        if ((text || rows || both) && count_ > 0) return;
        throw InputError(fmt::format(
            "{}: has tokens of {} and {}; the network takes tokens {{samples, {}}} with labels {{samples{}}}{}", where_,
            to_string(shape_), labels_ ? "labels of " + to_string(labels) : "no labels", length_,
            follows ? fmt::format(", {}", length_) : "",
            follows ? fmt::format(", or {{samples, {}}} without labels, or one text of more than {} tokens",
                                  length_ + 1, length_)
                    : ""));
    }

    std::int64_t count() const { return count_; }

    void read(std::int64_t place, std::span<std::int32_t> ids, std::span<std::int32_t> labels) const {
        const std::string where = fmt::format("{}: sample {}", where_, place);
        std::vector<std::int32_t> row(static_cast<std::size_t>(labels_ ? length_ : length_ + 1));
        if (shape_.size() == 1) read_rows(tokens_, place * length_, length_ + 1, std::span{row}, where);
        if (shape_.size() == 2) read_rows(tokens_, place, 1, std::span{row}, where);
        if (labels_) read_rows(labels_, place, 1, labels, where);
        if (!labels_) std::copy(row.begin() + 1, row.end(), labels.begin());
        row.resize(static_cast<std::size_t>(length_));
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (row[i] >= 0 && row[i] < vocabulary_) continue;
            throw InputError(
                fmt::format("{}: token {} is {}: the network's are 0 to {}", where, i, row[i], vocabulary_ - 1));
        }
        settle_labels(labels, classes_, left_out_, where);
        if (!ids.empty()) std::ranges::copy(row, ids.begin());
    }

private:
    std::string where_;
    std::int64_t length_, vocabulary_, classes_, left_out_, count_ = 0;
    Shape shape_;
    H5 file_, tokens_, labels_;
};

}  // namespace

TokenFile open_tokens(const std::filesystem::path& file, const Input& input, const SoftmaxLoss& loss,
                      std::int64_t left_out) {
    const auto samples = std::make_shared<const H5Tokens>(file, input, loss, left_out);
    return {samples->count(), [samples](std::int64_t place, std::span<std::int32_t> ids,
                                        std::span<std::int32_t> labels) { samples->read(place, ids, labels); }};
}

LabelledFile open_h5(const std::filesystem::path& file, const Shape& sample, const SoftmaxLoss& loss,
                     std::int64_t left_out) {
    const auto samples =
        reading(file.string(), [&] { return std::make_shared<const H5Samples>(file, sample, loss, left_out); });
    return {samples->count(),
            [samples](std::int64_t place, std::span<float> input, std::span<std::int32_t> labels) {
                reading(samples->where(), [&] { samples->read(place, input, labels); });
            },
            [samples](std::int64_t place, const SampleBlock& block, std::span<float> input,
                      std::span<std::int32_t> labels) {
                reading(samples->where(), [&] { samples->read_block(place, block, input, labels); });
            }};
}

}  // namespace rehearse::run
