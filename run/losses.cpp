// SPDX-License-Identifier: Apache-2.0
#include "run/losses.hpp"

#include <algorithm>

namespace rehearse::run {

Losses::Losses(const RankContext& rank)
    : device_(rank.device),
      has_loss_(std::ranges::any_of(rank.part().network.layers, [](const Layer& layer) { return is_loss(layer.op); })),
      micro_batch_(rank.micro_batch()) {
    const SoftmaxLoss* const loss = labelled_loss(rank.schedule.network);
    if (loss == nullptr || loss->image.empty()) return;
    pixel_classes_ = loss->classes;
    class_weights_ = loss->class_weights;
    confusion_.resize(at(loss->classes * loss->classes));
}

void Losses::begin_step() {
    sum_ = 0;
    std::ranges::fill(confusion_, 0.0);
}

// Pages that the host looked at itself would leave the device, and have to come back in the next step.
template <typename T>
std::span<const T> Losses::here(std::span<const T> numbers, kernels::Device::Memory& room) {
    if (device_ == nullptr || numbers.empty()) return numbers;
    if (room == nullptr) room = device_->allocate_staging(numbers.size_bytes());  // as many each time
    device_->copy_beside(room.get(), numbers.data(), numbers.size_bytes());
    return {reinterpret_cast<const T*>(room.get()), numbers.size()};
}

void Losses::count(const ReadyStep& ready) {
    const kernels::View made = ready.buffers.dst;
    for (const float loss : here(std::span<const float>{made.data(), made.size()}, losses_)) sum_ += loss;
    if (pixel_classes_ > 0) count_pixels(ready);
}

// Scores are {samples, classes, pixels}; the first of equal ones wins. Labels of no weight ask for nothing.
void Losses::count_pixels(const ReadyStep& ready) {
    const kernels::ConstView made = ready.buffers.src.front();
    const float* const scores = here(std::span<const float>{made.data(), made.size()}, scores_).data();
    const std::span<const std::int32_t> labels = here(ready.buffers.labels, labels_);
    const auto classes = static_cast<std::size_t>(pixel_classes_);
    const std::size_t pixels = ready.buffers.src.front().size() / classes / static_cast<std::size_t>(micro_batch_);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 0) continue;
        const auto label = static_cast<std::size_t>(labels[i]);
        if (!class_weights_.empty() && class_weights_[label] == 0) continue;
        const float* const of_pixel = scores + i / pixels * classes * pixels + i % pixels;
        std::size_t best = 0;
        for (std::size_t c = 1; c < classes; ++c) {
            if (of_pixel[c * pixels] > of_pixel[best * pixels]) best = c;
        }
        confusion_[label * classes + best] += 1;
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
