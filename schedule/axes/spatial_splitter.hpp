// SPDX-License-Identifier: Apache-2.0
// How an output lies on the ranks of a grid, and the rule of each operator: what it takes, what it leaves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule.hpp"
#include "schedule/axes/part_maker.hpp"
#include "schedule/axes/spatial.hpp"

namespace rehearse::schedule {

/// Large: one `split` an operator, all on the same few lists.
class SpatialSplitter {
public:
    SpatialSplitter(const Network& network, std::span<const SpatialAxis> axes, std::string grid, Edges edges);
    Part run();

private:
    /// An output as the ranks hold it. `cut` has a bit an axis along which each has its block; along the others all
    /// have the same. `at` says which layer of the part gives it as it is, or gathered or sliced for a reader, by such
    /// bits.
    struct Held {
        unsigned cut = 0;
        std::map<unsigned, int> at;
    };

    const Layer& layer() const { return network_.layers[index_]; }
    Held& source(std::size_t input) { return held_[static_cast<std::size_t>(layer().inputs[input])]; }
    std::int64_t parts(unsigned cut) const;
    std::vector<std::size_t> axes_of(unsigned cut) const;
    /// The first axes without a gap: sums go along axes that stand next to each other.
    static unsigned outer(unsigned cut);
    Shape block_of(Shape shape, unsigned cut) const;
    Origin origin(unsigned cut, std::vector<Cut> cuts) const;
    /// How a sample that begins with images' dimension `first_dim` is cut.
    std::vector<Cut> cuts_of_sample(unsigned cut, int first_dim) const;

    int append(Label label, Op op, std::vector<int> inputs, Origin origin);
    int communicate(Label label, Communication op, int from);
    int moved(Movement movement, std::size_t axis, int from);
    /// The layer that gives it cut like this.
    int lying(Held& held, unsigned cut);
    /// A sum or copy among all ranks that share a block's image.
    int over_grid(Movement movement, unsigned cut, int from);

    Held made(Op op, std::vector<int> inputs, unsigned cut, std::vector<Cut> cuts = {});
    /// Every rank computes the layer as it is.
    Held on_all();
    unsigned common_cut();
    std::vector<int> inputs_lying(unsigned cut);

    Held split(const Input& op);
    Held split(const Conv& op) { return split_windows(op); }
    Held split(const ConvTranspose& op) { return split_windows(op); }
    Held split(const Pool& op);
    Held split(const BatchNorm& op);
    Held split(const SoftmaxLoss& op);
    Held split(const Resize& op);
    Held split(const Activation& op) { return split_shaped(op); }
    Held split(const Add& op) { return split_shaped(op); }
    Held split(const Dropout& op);
    Held split(const Concat& op) { return split_pixels(op); }
    Held split(const ChannelPad& op) { return split_pixels(op); }
    Held split(const Lrn& op) { return split_pixels(op); }
    Held split(const auto&) { return on_all(); }
    template <typename Windows>
    Held split_windows(const Windows& op, bool lowest = false, unsigned refused = 0);
    template <typename Shaped>
    Held split_shaped(Shaped op);
    template <typename Pixels>
    Held split_pixels(Pixels op);
    Held split_mean(Pool op);
    /// Of a block's output along a dimension: `begin` to before `end` need no other rank's input.
    struct Inner {
        std::int64_t begin = 0, end = 0;
    };
    static Inner inner_rows(Conv op, std::int64_t dim, const Halo& halo);
    /// A convolution without padding along a dimension, of the block `own` and of what `exchanged`, its halo, makes
    /// of it: the inner rows, those at both edges, all joined.
    Held split_edges(const Conv& op, int own, int exchanged, unsigned cut, Inner inner);
    /// Rows `begin` to before `end` along `dim` of what `from` gives; `from` itself where these are all.
    int rows_of(int from, std::int64_t dim, std::int64_t begin, std::int64_t end, const Label& label);

    const Network& network_;
    std::span<const SpatialAxis> axes_;
    std::string grid_;
    Edges edges_;
    unsigned all_;
    std::vector<bool> needed_;
    std::vector<Held> held_;  // by layer of the whole
    Part part_;
    std::size_t index_ = 0;
};

}  // namespace rehearse::schedule
