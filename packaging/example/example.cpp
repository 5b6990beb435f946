// SPDX-License-Identifier: Apache-2.0
// A program of one's own that predicts: ResNet-50 on 6 and 384 GPUs of Summit.
#include <cstdio>

#include "models/models.hpp"
#include "predict/predict.hpp"

int main() {
    rehearse::predict::Job job;
    job.network = rehearse::models::load_network("resnet50");
    job.machine = rehearse::models::load_machine("summit");
    job.devices = {6, 384};
    for (const rehearse::predict::Point& point : rehearse::predict::predict(job).points) {
        std::printf("%4ld devices: %.1f ms a step\n", static_cast<long>(point.figures.devices), point.figures.time.step.value * 1e3);
    }
}
