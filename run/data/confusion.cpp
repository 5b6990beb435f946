// SPDX-License-Identifier: Apache-2.0
// How well pixels are told apart.
#include "run/program.hpp"

namespace rehearse::run {

// Scores are {samples, classes, pixels}; the first of equal ones wins.
void Program::count_pixels(const ReadyStep& ready) {
    const float* const scores = ready.buffers.src.front().data();
    const auto classes = static_cast<std::size_t>(pixel_classes_);
    const std::size_t pixels =
        ready.buffers.src.front().size() / classes / static_cast<std::size_t>(micro_batch_size(schedule_, rank_class_));
    for (std::size_t i = 0; i < ready.buffers.labels.size(); ++i) {
        const float* const of_pixel = scores + i / pixels * classes * pixels + i % pixels;
        std::size_t best = 0;
        for (std::size_t c = 1; c < classes; ++c) {
            if (of_pixel[c * pixels] > of_pixel[best * pixels]) best = c;
        }
        confusion_[static_cast<std::size_t>(ready.buffers.labels[i]) * classes + best] += 1;
    }
}

double mean_iou(std::span<const double> confusion, std::int64_t classes) {
    const auto n = static_cast<std::size_t>(classes);
    double sum = 0;
    int occurring = 0;
    for (std::size_t c = 0; c < n; ++c) {
        double either = -confusion[c * n + c];
        for (std::size_t other = 0; other < n; ++other) either += confusion[c * n + other] + confusion[other * n + c];
        if (either == 0) continue;
        sum += confusion[c * n + c] / either;
        ++occurring;
    }
    return occurring > 0 ? sum / occurring : 0;
}

}  // namespace rehearse::run
