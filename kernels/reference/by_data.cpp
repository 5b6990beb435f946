// SPDX-License-Identifier: Apache-2.0
// Sorting, and what data pick and put: sample by sample.
#include <vector>

#include "core/index.hpp"
#include "kernels/general/by_data.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {

void run_by_data(const Rearrangement& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const general::ByData moved(op);
    for (std::int64_t n = 0; n < batch; ++n) {
        std::vector<const float*> src;
        std::vector<float*> diff_src;
        for (std::size_t k = 0; k < op.inputs.size(); ++k) {
            const std::int64_t first = n * elements(op.inputs[k]);
            src.push_back(b.src[k].as<float>().data() + first);
            const bool asked = pass == Pass::backward_data && !b.diff_src[k].empty();
            diff_src.push_back(asked ? b.diff_src[k].as<float>().data() + first : nullptr);
        }
        const std::int64_t to = n * elements(op.output);
        if (pass == Pass::forward) moved.forward(src, b.dst.as<float>().data() + to);
        if (pass == Pass::backward_data) moved.backward(src, b.diff_dst.as<float>().data() + to, diff_src);
    }
}

}  // namespace rehearse::kernels::reference
