// SPDX-License-Identifier: Apache-2.0
// Sorting, and what data pick and put: samples shared among threads.
#include <exception>
#include <vector>

#include "core/index.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/general/by_data.hpp"

namespace rehearse::kernels::cpu {
namespace {

class ByData final : public Shared {
public:
    explicit ByData(const Problem& problem)
        : Shared(problem, 0),
          op_(std::get<Rearrangement>(problem.op)),
          moved_(op_),
          forward_(problem.pass == Pass::forward),
          batch_(problem.batch) {}

private:
    // An index that lies outside is told once all threads are done.
    void compute(const Buffers& b, float* /*scratch*/) override {
        std::vector<std::exception_ptr> wrong(at(workers_));
        share(batch_, 1, workers_, [&](std::int64_t worker, Stretch samples) {
            try {
                for (std::int64_t n = samples.begin; n < samples.end; ++n) sample(b, n);
            } catch (...) {
                wrong[at(worker)] = std::current_exception();
            }
        });
        for (const std::exception_ptr& each : wrong)
            if (each != nullptr) std::rethrow_exception(each);
    }

    void sample(const Buffers& b, std::int64_t n) const {
        std::vector<const float*> src;
        std::vector<float*> diff_src;
        for (std::size_t k = 0; k < op_.inputs.size(); ++k) {
            const std::int64_t first = n * elements(op_.inputs[k]);
            src.push_back(b.src[k].data() + first);
            const bool asked = !forward_ && !b.diff_src[k].empty();
            diff_src.push_back(asked ? b.diff_src[k].data() + first : nullptr);
        }
        const std::int64_t to = n * elements(op_.output);
        if (forward_) return moved_.forward(src, b.dst.data() + to);
        moved_.backward(src, b.diff_dst.data() + to, diff_src);
    }

    Rearrangement op_;
    kernels::general::ByData moved_;
    bool forward_;
    std::int64_t batch_;
};

}  // namespace

std::unique_ptr<Kernel> make_by_data(const Problem& problem) { return std::make_unique<ByData>(problem); }

}  // namespace rehearse::kernels::cpu
