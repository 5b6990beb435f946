// SPDX-License-Identifier: Apache-2.0
#include "run/data/data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/error.hpp"
#include "run/random.hpp"

namespace rehearse::run {

namespace {

constexpr std::uint64_t waves = 3;  // of a plane of a class's picture
constexpr double noise = 0.5;       // standard deviation; a picture's own is about 1
enum Purpose : std::uint64_t { label_of, picture_of, noise_of, level_of, sequence_of, follower_of, favourite_of };

}  // namespace

SyntheticTask::SyntheticTask(const Shape& sample, std::int64_t classes, std::uint64_t seed, const Shape& image)
    : classes_(classes), seed_(seed) {
    require(!sample.empty() && elements(sample) > 0 && classes > 0, "samples with elements, and classes");
    if (!image.empty()) {
        if (Shape(sample.begin() + 1, sample.end()) != image) {
            throw InputError(
                fmt::format("the network labels {} pixels of a sample of {}: synthetic data have one "
                            "label a pixel of the input",
                            to_string(image), to_string(sample)));
        }
        pixels_ = elements(image);
    }
    width_ = sample.back();
    if (sample.size() > 1) height_ = sample[sample.size() - 2];
    channels_ = elements(sample) / (height_ * width_);
}

std::int32_t synthetic_label(std::int64_t index, std::int64_t classes, std::uint64_t seed) {
    const std::uint64_t bits = key(key(seed, label_of), static_cast<std::uint64_t>(index));
    return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(classes));
}

std::int32_t SyntheticTask::label(std::int64_t index) const { return synthetic_label(index, classes_, seed_); }

// One plane wave with at most two periods across the image: cos(2 pi (fx x / width + fy y / height) + phase), written
// as a product of a row's and a column's part, so that nothing but two short tables needs cosines.
void SyntheticTask::add_wave(std::uint64_t wave_key, std::span<float> plane) const {
    Uniform random{wave_key};
    const double turn = 2 * std::numbers::pi;
    const double fx = 4 * random.next() - 2;
    const double fy = 4 * random.next() - 2;
    const double phase = turn * random.next();
    const double amplitude = std::sqrt(2.0 / static_cast<double>(waves));
    std::vector<float> cosine(static_cast<std::size_t>(width_)), sine(cosine.size());
    for (std::size_t x = 0; x < cosine.size(); ++x) {
        const double angle = turn * fx * static_cast<double>(x) / static_cast<double>(width_) + phase;
        cosine[x] = static_cast<float>(amplitude * std::cos(angle));
        sine[x] = static_cast<float>(amplitude * std::sin(angle));
    }
    for (std::int64_t y = 0; y < height_; ++y) {
        const double angle = turn * fy * static_cast<double>(y) / static_cast<double>(height_);
        const auto c = static_cast<float>(std::cos(angle));
        const auto s = static_cast<float>(std::sin(angle));
        float* row = plane.data() + y * width_;
        for (std::size_t x = 0; x < cosine.size(); ++x) row[x] += cosine[x] * c - sine[x] * s;
    }
}

void SyntheticTask::fill(std::int64_t index, std::span<float> sample) const {
    require(static_cast<std::int64_t>(sample.size()) == channels_ * height_ * width_, "room for one sample");
    // Uniform noise of variance a^2 / 3 on [-a, a].
    const double reach = noise * std::numbers::sqrt3;
    Uniform random{key(key(seed_, noise_of), static_cast<std::uint64_t>(index))};
    for (float& value : sample) value = static_cast<float>(reach * (2 * random.next() - 1));
    if (pixels_ > 0) {
        add_levels(index, sample);
    } else {
        add_picture(index, sample);
    }
}

void SyntheticTask::add_picture(std::int64_t index, std::span<float> sample) const {
    const std::uint64_t picture = key(key(seed_, picture_of), static_cast<std::uint64_t>(label(index)));
    const auto plane = static_cast<std::size_t>(height_ * width_);
    for (std::uint64_t channel = 0; channel < static_cast<std::uint64_t>(channels_); ++channel) {
        for (std::uint64_t wave = 0; wave < waves; ++wave) {
            add_wave(key(key(picture, channel), wave), sample.subspan(channel * plane, plane));
        }
    }
}

void SyntheticTask::add_levels(std::int64_t index, std::span<float> sample) const {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(pixels_));
    fill_labels(index, labels);
    const std::size_t channels = sample.size() / labels.size();
    for (std::size_t channel = 0; channel < channels; ++channel) {
        std::vector<float> levels;
        Uniform random{key(key(seed_, level_of), channel)};
        for (std::int64_t i = 0; i < classes_; ++i) levels.push_back(static_cast<float>(4 * random.next() - 2));
        float* const pixel = sample.data() + channel * labels.size();
        for (std::size_t i = 0; i < labels.size(); ++i) pixel[i] += levels[static_cast<std::size_t>(labels[i])];
    }
}

// Of a pixel: the class whose picture, drawn anew for each sample, is the brightest there.
void SyntheticTask::fill_labels(std::int64_t index, std::span<std::int32_t> labels) const {
    if (pixels_ == 0) {
        labels.front() = label(index);
        return;
    }
    require(static_cast<std::int64_t>(labels.size()) == pixels_, "room for the labels of one sample");
    std::vector<float> brightest(labels.size()), picture(labels.size());
    const std::uint64_t own = key(key(seed_, label_of), static_cast<std::uint64_t>(index));
    const auto plane = static_cast<std::size_t>(height_ * width_);
    for (std::int32_t i = 0; i < classes_; ++i) {
        std::ranges::fill(picture, 0.0F);
        for (std::size_t first = 0; first < picture.size(); first += plane) {
            for (std::uint64_t wave = 0; wave < waves; ++wave) {
                const std::uint64_t of_plane = key(key(own, static_cast<std::uint64_t>(i)), first);
                add_wave(key(of_plane, wave), std::span{picture}.subspan(first, plane));
            }
        }
        for (std::size_t pixel = 0; pixel < picture.size(); ++pixel) {
            if (i > 0 && picture[pixel] <= brightest[pixel]) continue;
            brightest[pixel] = picture[pixel];
            labels[pixel] = i;
        }
    }
}

SyntheticTokens::SyntheticTokens(std::int64_t vocabulary, std::uint64_t seed) : vocabulary_(vocabulary), seed_(seed) {
    require(vocabulary > 0 && vocabulary <= std::numeric_limits<std::int32_t>::max(), "ids are 32-bit integers");
}

// The cube puts half of all draws into the first eighth of the vocabulary.
std::int32_t SyntheticTokens::pick(double uniform) const {
    return static_cast<std::int32_t>(static_cast<double>(vocabulary_) * uniform * uniform * uniform);
}

void SyntheticTokens::fill(std::int64_t index, std::span<std::int32_t> tokens, std::span<std::int32_t> next) const {
    constexpr double follows = 0.75;
    require(tokens.size() == next.size(), "each token has a next one");
    Uniform random{key(key(seed_, sequence_of), static_cast<std::uint64_t>(index))};
    std::int32_t token = pick(random.next());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = token;
        const std::int32_t any = pick(random.next());
        const auto follower = pick(uniform(key(key(seed_, follower_of), static_cast<std::uint64_t>(token))));
        token = random.next() < follows ? follower : any;
        next[i] = token;
    }
}

void SyntheticTokens::fill_class(std::int64_t index, std::int32_t label, std::span<std::int32_t> ids) const {
    Uniform random{key(key(seed_, sequence_of), static_cast<std::uint64_t>(index))};
    const std::uint64_t favourites = key(key(seed_, favourite_of), static_cast<std::uint64_t>(label));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const std::int32_t any = pick(random.next());
        ids[i] = random.next() < 0.5 ? pick(uniform(key(favourites, i))) : any;
    }
}

}  // namespace rehearse::run
