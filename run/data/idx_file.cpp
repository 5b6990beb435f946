// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/checkpoint/files.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

std::uint32_t big_endian(std::ifstream& file) {
    std::array<unsigned char, 4> bytes{};
    file.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

class IdxImages {
public:
    IdxImages(const std::filesystem::path& folder, const Shape& sample, const SoftmaxLoss& loss)
        : images_(read_idx(folder / "train-images-idx3-ubyte")), labels_(read_idx(folder / "train-labels-idx1-ubyte")) {
        const std::string where = folder.string();
        if (images_.shape.size() != 3 || labels_.shape.size() != 1 || images_.shape[0] != labels_.shape[0]) {
            throw InputError(fmt::format("{}: images of {} and labels of {} are not one label an image", where,
                                         to_string(images_.shape), to_string(labels_.shape)));
        }
        height_ = images_.shape[1];
        width_ = images_.shape[2];
        const bool flat = sample.size() == 1 && sample[0] == height_ * width_;
        const bool framed = sample.size() == 3 && sample[0] == 1 && sample[1] >= height_ && sample[2] >= width_;
        if ((!flat && !framed) || !loss.image.empty() || loss.rows != 1) {
            throw InputError(
                fmt::format("{}: images of 1x{}x{} with one label each, but the network takes {}: lenet5 "
                            "takes 1x32x32",
                            where, height_, width_, to_string(sample)));
        }
        frame_width_ = flat ? width_ : sample[2];
        top_ = flat ? 0 : (sample[1] - height_) / 2;
        left_ = flat ? 0 : (sample[2] - width_) / 2;
        std::vector<std::int32_t> labels(labels_.values.begin(), labels_.values.end());
        settle_labels(labels, loss.classes, -1, where);
    }

    std::int64_t count() const { return images_.shape[0]; }

    void read(std::int64_t place, std::span<float> input, std::span<std::int32_t> labels) const {
        labels.front() = labels_.values[at(place)];
        if (input.empty()) return;
        std::ranges::fill(input, 0.0F);
        const std::uint8_t* pixel = images_.values.data() + place * height_ * width_;
        for (std::int64_t y = 0; y < height_; ++y) {
            for (std::int64_t x = 0; x < width_; ++x) {
                input[at((top_ + y) * frame_width_ + left_ + x)] = static_cast<float>(*pixel++) / 255;
            }
        }
    }

private:
    IdxFile images_, labels_;
    std::int64_t height_ = 0, width_ = 0, frame_width_ = 0, top_ = 0, left_ = 0;
};

}  // namespace

std::optional<SampleBlock> block_of(const Shape& sample, std::span<const std::int64_t> places) {
    if (places.empty() || sample.empty()) return std::nullopt;
    const auto unravelled = [&](std::int64_t place) {
        Shape at_place(sample.size());
        for (std::size_t d = sample.size(); d-- > 0; place /= sample[d]) at_place[d] = place % sample[d];
        return at_place;
    };
    SampleBlock block{unravelled(places.front()), unravelled(places.back())};
    for (std::size_t d = 0; d < sample.size(); ++d) {
        block.size[d] += 1 - block.first[d];
        if (block.size[d] < 1) return std::nullopt;
    }
    if (elements(block.size) != static_cast<std::int64_t>(places.size())) return std::nullopt;
    for (std::size_t i = 0; i < places.size(); ++i) {
        std::int64_t left = static_cast<std::int64_t>(i), stride = 1, place = 0;
        for (std::size_t d = sample.size(); d-- > 0; left /= block.size[d], stride *= sample[d])
            place += (block.first[d] + left % block.size[d]) * stride;
        if (place != places[i]) return std::nullopt;
    }
    return block;
}

Shuffle::Shuffle(std::int64_t count, std::uint64_t seed) : seed_(seed), order_(at(count)) {
    require(count > 0, "samples to shuffle");
}

std::int64_t Shuffle::place(std::int64_t index) {
    const auto count = static_cast<std::int64_t>(order_.size());
    if (index / count != epoch_) {
        epoch_ = index / count;
        std::iota(order_.begin(), order_.end(), 0);
        Uniform random{key(seed_, static_cast<std::uint64_t>(epoch_))};
        for (std::int64_t i = count; i-- > 1;) {
            std::swap(order_[at(i)], order_[at(static_cast<std::int64_t>(random.next() * static_cast<double>(i + 1)))]);
        }
    }
    return order_[at(index % count)];
}

IdxFile read_idx(const std::filesystem::path& path) {
    constexpr std::uint32_t unsigned_bytes = 8, most_sizes = 4;
    const std::string where = path.string();
    std::ifstream file{path, std::ios::binary};
    if (!file || !std::filesystem::is_regular_file(path))
        throw InputError(fmt::format("{}: no such file, or it cannot be read (unpack .gz files first)", where));
    const std::uint32_t magic = big_endian(file);
    if (!file || magic >> 8 != unsigned_bytes || (magic & 0xFF) == 0 || (magic & 0xFF) > most_sizes) {
        throw InputError(fmt::format("{}: not an IDX file of unsigned bytes", where));
    }
    IdxFile read;
    for (std::uint32_t i = 0; i < (magic & 0xFF); ++i) read.shape.push_back(big_endian(file));
    const std::int64_t header = 4 + 4 * static_cast<std::int64_t>(read.shape.size());
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
    std::int64_t elements = 1;
    for (const std::int64_t each : read.shape)
        elements = each > 0 && elements <= size / each ? elements * each : size + 1;
    if (!file || size != header + elements) {
        throw InputError(fmt::format("{}: has {} bytes, not the {} that {} need with their header", where, size,
                                     elements > size ? "more" : std::to_string(header + elements),
                                     to_string(read.shape)));
    }
    read.values.resize(at(elements));
    file.read(reinterpret_cast<char*>(read.values.data()), elements);
    if (!file) throw InputError(fmt::format("{}: cannot be read to its end", where));
    return read;
}

LabelledFile open_idx(const std::filesystem::path& folder, const Shape& sample, const SoftmaxLoss& loss) {
    const auto samples = std::make_shared<const IdxImages>(folder, sample, loss);
    return {samples->count(), [samples](std::int64_t place, std::span<float> input, std::span<std::int32_t> labels) {
                samples->read(place, input, labels);
            }};
}

void settle_labels(std::span<std::int32_t> labels, std::int64_t classes, std::int64_t left_out,
                   const std::string& where) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] == left_out) {
            labels[i] = -1;
        } else if (labels[i] < 0 || labels[i] >= classes) {
            throw InputError(fmt::format("{}: label {} at place {} is none of the network's classes, 0 to {}", where,
                                         labels[i], i, classes - 1));
        }
    }
}

}  // namespace rehearse::run
