// SPDX-License-Identifier: Apache-2.0
// With x a padded image of {n, c}, w a dilated kernel of {k, c}, y an output of {n, k}, transforms in capitals:
//   forward           Y[n, k] = sum over c of X[n, c] conj W[k, c]
//   backward_data     X[n, c] = sum over k of Y[n, k] W[k, c]
//   backward_weights  W[k, c] = sum over n of X[n, c] conj Y[n, k]
#include <algorithm>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/layers.hpp"
#include "kernels/cuda/points.hpp"
#include "kernels/cuda/typed.hpp"

namespace rehearse::kernels::cuda {
namespace {

// The least number from n on whose factors are 2, 3, 5 and 7, and even: what FFTs are fast at.
std::int64_t smooth(std::int64_t n) {
    for (n += n % 2;; n += 2) {
        std::int64_t rest = n;
        for (const std::int64_t factor : {2, 3, 5, 7}) {
            while (rest % factor == 0) rest /= factor;
        }
        if (rest == 1) return n;
    }
}

class FftKernel final : public DeviceKernel {
public:
    FftKernel(Engine& engine, const Problem& problem)
        : DeviceKernel(engine, problem), op_(std::get<Conv>(problem.op)), planes_(fft_planes(op_)) {
        const Shape out = output_shape(problem.op);
        const Window& w = op_.window;
        image_ = {op_.height, op_.width, w.pad_top, w.pad_left, 1, 1};
        kernel_ = {w.kernel_h, w.kernel_w, 0, 0, w.dilation_h, w.dilation_w};
        output_ = {out[1], out[2], 0, 0, 1, 1};
        const std::int64_t n = problem.batch, c = op_.channels, k = op_.filters;
        float* const room = reserve(fft_scratch(op_, n));
        const std::int64_t spectrum = 2 * planes_.frequencies();
        images_ = room, kernels_ = images_ + n * c * spectrum, outputs_ = kernels_ + k * c * spectrum;
        plane_room_ = outputs_ + n * k * spectrum;
    }

private:
    void lay(Values from, std::int64_t count, const Laid& laid, float* spectra) {
        auto task = points<LayIntoPlanes>(count * planes_.pixels());
        task.from = from, task.to = plane_room_, task.planes = planes_, task.laid = laid;
        engine().run(PointTask{task});
        engine().transform({planes_.height, planes_.width, count}, plane_room_, spectra);
    }
    void take(float* spectra, std::int64_t count, const Laid& laid, Values to, Values bias = {}) {
        engine().transform_back({planes_.height, planes_.width, count}, spectra, plane_room_);
        auto task = points<TakeFromPlanes>(count * laid.rows * laid.columns);
        task.from = plane_room_, task.to = to, task.planes = planes_, task.laid = laid;
        task.factor = 1 / static_cast<float>(planes_.pixels());
        task.bias = bias, task.biases = op_.filters, task.area = laid.rows * laid.columns;
        engine().run(PointTask{task});
    }
    void compute(const Buffers& b) override {
        const std::int64_t n = problem().batch, c = op_.channels, k = op_.filters;
        const bool forward = problem().pass == Pass::forward, data = problem().pass == Pass::backward_data;
        if (!data) lay(values(b.src[0]), n * c, image_, images_);
        if (forward || data) lay(values(b.weights), k * c, kernel_, kernels_);
        if (!forward) lay(values(b.diff_dst), n * k, output_, outputs_);
        MultiplySpectra task;
        task.frequencies = planes_.frequencies();
        task.conjugate_b = !data;
        if (forward) {
            task.a = images_, task.b = kernels_, task.product = outputs_;
            task.rows = n, task.columns = k, task.terms = c;
            task.a_outer = c, task.a_inner = 1, task.b_outer = c, task.b_inner = 1;
        } else if (data) {
            task.a = outputs_, task.b = kernels_, task.product = images_;
            task.rows = n, task.columns = c, task.terms = k;
            task.a_outer = k, task.a_inner = 1, task.b_outer = 1, task.b_inner = c;
        } else {
            task.a = images_, task.b = outputs_, task.product = kernels_;
            task.rows = c, task.columns = k, task.terms = n, task.swapped = true;
            task.a_outer = 1, task.a_inner = c, task.b_outer = 1, task.b_inner = k;
        }
        task.count_points();
        engine().run(PointTask{task});
        if (forward) take(outputs_, n * k, output_, values(b.dst), op_.bias ? bias(b.weights) : Values{});
        if (data) take(images_, n * c, image_, values(b.diff_src[0]));
        if (!forward && !data) take(kernels_, k * c, kernel_, values(b.diff_weights));
        if (!forward && !data && op_.bias) sum_bias(b);
    }
    void sum_bias(const Buffers& b) {
        const Rows of{op_.filters, problem().batch, output_.rows * output_.columns,
                      op_.filters * output_.rows * output_.columns};
        sum_channels(engine(), values(b.diff_dst), of, bias(b.diff_weights));
    }
    Values bias(ConstView weights) const {
        return beyond(values(weights), op_.filters * op_.channels * op_.window.taps());
    }

    Conv op_;
    Planes planes_;
    Laid image_, kernel_, output_;
    float *images_ = nullptr, *kernels_ = nullptr, *outputs_ = nullptr, *plane_room_ = nullptr;
};

}  // namespace

Planes fft_planes(const Conv& op) {
    const Window& w = op.window;
    return {smooth(op.height + w.pad_top + w.pad_bottom), smooth(op.width + w.pad_left + w.pad_right)};
}

std::int64_t fft_scratch(const Conv& op, std::int64_t batch) {
    const Planes planes = fft_planes(op);
    const std::int64_t images = batch * op.channels, kernels = op.filters * op.channels, outputs = batch * op.filters;
    return 2 * planes.frequencies() * (images + kernels + outputs) +
           planes.pixels() * std::max({images, kernels, outputs});
}

std::unique_ptr<Kernel> fft_kernel(Engine& engine, const Problem& problem) {
    return std::make_unique<FftKernel>(engine, problem);
}

}  // namespace rehearse::kernels::cuda
