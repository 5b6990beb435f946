// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings: rows shared among threads.
#include "kernels/general/rotary.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/share.hpp"

namespace rehearse::kernels::cpu {
namespace {

class Rotary final : public Shared {
public:
    explicit Rotary(const Problem& problem)
        : Shared(problem, 0),
          turns_(std::get<Elementwise>(problem.op)),
          forward_(problem.pass == Pass::forward),
          lines_(problem.batch * turns_.rows()) {}

private:
    void compute(const Buffers& b, float* /*scratch*/) override {
        turns_.take(b.fixed, b.first_row, b.places);
        const float* const from = forward_ ? b.src[0].data() : b.diff_dst.data();
        float* const to = forward_ ? b.dst.data() : b.diff_src[0].data();
        share(lines_, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t line = part.begin; line < part.end; ++line) {
                const float* const x = from + line * turns_.width();
                float* const y = to + line * turns_.width();
                turns_.for_each(line % turns_.rows(), [&](std::int64_t i, std::int64_t j, float cos_i, float cos_j,
                                                          float sin_i, float sin_j) {
                    const float a = x[i], c = x[j];
                    if (i == j) {
                        y[i] = a;
                        return;
                    }
                    y[i] = forward_ ? a * cos_i - c * sin_i : a * cos_i + c * sin_j;
                    y[j] = forward_ ? c * cos_j + a * sin_j : c * cos_j - a * sin_i;
                });
            }
        });
    }

    kernels::general::Turns turns_;
    bool forward_;
    std::int64_t lines_;
};

}  // namespace

std::unique_ptr<Kernel> make_rotary(const Problem& problem) { return std::make_unique<Rotary>(problem); }

}  // namespace rehearse::kernels::cpu
