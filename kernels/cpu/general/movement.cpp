// SPDX-License-Identifier: Apache-2.0
// Values that move, in runs as long as all of them lie one after the other on both sides.
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels::cpu {
namespace {

// Where each run of a sample's result comes from.
struct Source {
    std::int64_t tensor = -1, first = 0;  // -1: it is filled
};

class Runs {
public:
    // `places` as of general::moved_places, of tensors with so many elements a sample.
    Runs(const std::vector<std::int64_t>& places, const std::vector<std::int64_t>& sizes) {
        std::vector<Source> all(places.size());
        std::vector<std::int64_t> begins{0};
        for (const std::int64_t size : sizes) begins.push_back(begins.back() + size);
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (places[i] < 0) continue;
            const auto after = std::upper_bound(begins.begin(), begins.end(), places[i]);
            all[i].tensor = after - begins.begin() - 1;
            all[i].first = places[i] - *(after - 1);
        }
        length_ = static_cast<std::int64_t>(places.size());
        for (std::size_t i = 1; i < all.size(); ++i) {
            const bool filled = all[i].tensor < 0 && all[i - 1].tensor < 0;
            const bool next = all[i].tensor == all[i - 1].tensor && all[i].first == all[i - 1].first + 1;
            if (!filled && !next) length_ = std::gcd(length_, static_cast<std::int64_t>(i));
        }
        for (std::size_t i = 0; i < all.size(); i += at(length_)) runs_.push_back(all[i]);
        std::vector<std::int64_t> sorted = places;
        std::erase_if(sorted, [](std::int64_t place) { return place < 0; });
        std::ranges::sort(sorted);
        once_ = std::ranges::adjacent_find(sorted) == sorted.end();
    }
    std::int64_t length() const { return length_; }
    const std::vector<Source>& runs() const { return runs_; }
    bool once() const { return once_; }  // no element goes to two places

private:
    std::int64_t length_ = 1;
    std::vector<Source> runs_;
    bool once_ = true;
};

class Movement final : public Shared {
public:
    explicit Movement(const Problem& problem)
        : Shared(problem, 0),
          op_(problem.op),
          pass_(problem.pass),
          batch_(problem.batch),
          count_(elements(output_shape(op_))) {
        for (const Shape& shape : input_shapes(op_)) sizes_.push_back(elements(shape));
        if (const auto* moved = std::get_if<Rearrangement>(&op_)) {
            fill_ = static_cast<float>(moved->fill);
            if (!kernels::general::is_told(*moved)) runs_.emplace(kernels::general::moved_places(*moved, {}), sizes_);
        }
        if (std::holds_alternative<Parameter>(op_)) {
            std::vector<std::int64_t> places(at(count_));
            std::iota(places.begin(), places.end(), 0);
            runs_.emplace(places, std::vector{count_});
        }
        weights_ = parameters(op_);
        const std::int64_t sources =
            weights_ > 0 ? weights_ : std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
        sums_ = whole_lines(2 * sources);  // in double, each worker's own
        if (pass_ != Pass::forward) reserve(workers_ * sums_);
    }

private:
    const Runs& runs(const Buffers& b) {
        if (runs_) return *runs_;
        require(!b.chosen.empty() && static_cast<std::int64_t>(b.chosen.front().size()) == count_,
                "it is told what it picks");
        const std::vector<std::int32_t>& chosen = b.chosen.front();
        if (told_ != chosen.data()) {  // the same for all steps of a layer
            picked_.emplace(std::vector<std::int64_t>(chosen.begin(), chosen.end()),
                            weights_ > 0 ? std::vector{weights_} : sizes_);
            told_ = chosen.data();
        }
        return *picked_;
    }

    void compute(const Buffers& b, float* scratch) override {
        const Runs& all = runs(b);
        if (pass_ == Pass::forward) return forward(b, all);
        backward(b, all, reinterpret_cast<double*>(scratch));
    }

    void forward(const Buffers& b, const Runs& all) const {
        std::vector<const float*> from;
        if (weights_ > 0) from.push_back(b.weights.data());
        for (const ConstView& src : b.src) from.push_back(src.data());
        float* const dst = b.dst.data();
        const auto pieces = static_cast<std::int64_t>(all.runs().size());
        share(batch_ * pieces, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t i = part.begin; i < part.end; ++i) {
                const Source& source = all.runs()[at(i % pieces)];
                float* const to = dst + i * all.length();
                if (source.tensor < 0) {
                    std::fill_n(to, all.length(), fill_);
                    continue;
                }
                const std::int64_t sample = weights_ > 0 ? 0 : i / pieces * sizes_[at(source.tensor)];
                std::copy_n(from[at(source.tensor)] + sample + source.first, all.length(), to);
            }
        });
    }

    // Of a tensor that no element of which goes to two places, gradients are moved back; else they are summed.
    void backward(const Buffers& b, const Runs& all, double* scratch) {
        if (weights_ > 0) std::fill_n(scratch, workers_ * sums_ / 2, 0.0);
        share(batch_, 1, workers_, [&](std::int64_t worker, Stretch samples) {
            double* const sums = scratch + worker * sums_ / 2;
            for (std::int64_t n = samples.begin; n < samples.end; ++n) {
                const float* const g = b.diff_dst.data() + n * count_;
                if (weights_ > 0) {
                    add(all, g, sums);
                } else if (all.once()) {
                    move_back(b, all, n, g);
                } else {
                    sum_back(b, all, n, g, sums);
                }
            }
        });
        for (std::int64_t i = 0; i < weights_; ++i) {
            double sum = 0;
            for (std::int64_t worker = 0; worker < workers_; ++worker) sum += scratch[worker * sums_ / 2 + i];
            b.diff_weights[i] = static_cast<float>(sum);
        }
    }

    static void add(const Runs& all, const float* g, double* sums) {
        for (std::size_t r = 0; r < all.runs().size(); ++r) {
            double* const to = sums + all.runs()[r].first;
            for (std::int64_t i = 0; i < all.length(); ++i) to[i] += g[static_cast<std::int64_t>(r) * all.length() + i];
        }
    }

    void move_back(const Buffers& b, const Runs& all, std::int64_t n, const float* g) const {
        for (std::size_t k = 0; k < sizes_.size(); ++k)
            if (!b.diff_src[k].empty()) std::fill_n(b.diff_src[k].data() + n * sizes_[k], sizes_[k], 0.0F);
        for (std::size_t r = 0; r < all.runs().size(); ++r) {
            const Source& source = all.runs()[r];
            if (source.tensor < 0 || b.diff_src[at(source.tensor)].empty()) continue;
            float* const to = b.diff_src[at(source.tensor)].data() + n * sizes_[at(source.tensor)] + source.first;
            std::copy_n(g + static_cast<std::int64_t>(r) * all.length(), all.length(), to);
        }
    }

    void sum_back(const Buffers& b, const Runs& all, std::int64_t n, const float* g, double* sums) const {
        std::vector<double*> own;
        double* next = sums;
        for (const std::int64_t size : sizes_) {
            own.push_back(next);
            std::fill_n(next, size, 0.0);
            next += size;
        }
        for (std::size_t r = 0; r < all.runs().size(); ++r) {
            const Source& source = all.runs()[r];
            if (source.tensor < 0) continue;
            double* const to = own[at(source.tensor)] + source.first;
            for (std::int64_t i = 0; i < all.length(); ++i) to[i] += g[static_cast<std::int64_t>(r) * all.length() + i];
        }
        for (std::size_t k = 0; k < sizes_.size(); ++k) {
            for (std::int64_t i = 0; !b.diff_src[k].empty() && i < sizes_[k]; ++i)
                b.diff_src[k][n * sizes_[k] + i] = static_cast<float>(own[k][i]);
        }
    }

    Op op_;
    Pass pass_;
    std::int64_t batch_, count_, weights_ = 0, sums_ = 0;
    std::vector<std::int64_t> sizes_;
    float fill_ = 0;
    std::optional<Runs> runs_, picked_;
    const std::int32_t* told_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_movement(const Problem& problem) { return std::make_unique<Movement>(problem); }

}  // namespace rehearse::kernels::cpu
