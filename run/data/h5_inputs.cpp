// SPDX-License-Identifier: Apache-2.0
// Samples of a network of several inputs: one data set of an HDF5 file for each.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "run/checkpoint/files.hpp"
#include "run/data/hdf5.hpp"
#include "run/data/labels.hpp"
#include "run/fed_inputs.hpp"
#include "run/tensors.hpp"

namespace rehearse::run {

namespace {

class H5Inputs {
public:
    H5Inputs(const std::filesystem::path& path, const Network& network, std::int64_t left_out)
        : where_(path.string()), labels_(labels_of(network)), left_out_(left_out), file_(open_file(path)) {
        std::string numbers, integers;  // the first of each kind
        for (const FedInput& input : fed_inputs(network)) {
            std::string& first = input.integers() ? integers : numbers;
            if (first.empty()) first = input.data_set;
            const std::string otherwise = input.data_set == integers                       ? "tokens"
                                          : !input.integers() && input.data_set == numbers ? "data"
                                                                                           : "";
            sets_.push_back(data_set({input.data_set, otherwise}, input.op.shape, input.places));
            sets_.back().input = input;
        }
        if (!labels_) return;
        // What follows each token is read off the tokens.
        const bool of_tokens = !integers.empty() && !labels_->places.empty();
        label_set_ = data_set({"labels", of_tokens ? "tokens" : ""}, labels_->shape, labels_->places);
    }

    std::int64_t count() const { return count_; }
    const std::string& where() const { return where_; }

    void read(std::int64_t place, std::span<float> numbers, std::span<std::int32_t> ids,
              std::span<std::int32_t> labels) const {
        const std::string where = fmt::format("{}: sample {}", where_, place);
        std::size_t number = 0, id = 0;
        for (const Set& set : sets_) {
            const std::size_t size = at(set.input.size());
            if (set.input.integers() && !ids.empty()) read_ids(set, place, ids.subspan(id, size), where);
            if (!set.input.integers() && !numbers.empty())
                read_picked(set, place, set.input.places, numbers.subspan(number, size), where);
            (set.input.integers() ? id : number) += size;
        }
        if (!labels_ || labels.empty()) return;
        read_picked(label_set_, place, labels_->places, labels, where);
        settle_labels(labels, labels_->classes, left_out_, where);
    }

private:
    struct Set {
        std::string name;
        H5 data;
        std::int64_t row = 0;  // elements of a sample
        FedInput input{};
    };

    // A sample of a data set, or the elements of it that are taken.
    template <typename Number>
    static void read_picked(const Set& set, std::int64_t place, std::span<const std::int32_t> places,
                            std::span<Number> to, const std::string& where) {
        if (places.empty()) return read_rows(set.data, place, 1, to, where);
        std::vector<Number> all(at(set.row));
        read_rows(set.data, place, 1, std::span<Number>{all}, where);
        std::ranges::transform(places, to.begin(), [&](std::int32_t from) { return all[at(from)]; });
    }

    static void read_ids(const Set& set, std::int64_t place, std::span<std::int32_t> ids, const std::string& where) {
        read_picked(set, place, set.input.places, ids, where);
        const std::int64_t vocabulary = set.input.op.vocabulary;
        const auto wrong = std::ranges::find_if(ids, [&](std::int32_t id) { return id < 0 || id >= vocabulary; });
        if (wrong == ids.end()) return;
        throw InputError(fmt::format("{}: '{}' {} is {}: the network's are 0 to {}", where, set.name,
                                     wrong - ids.begin(), *wrong, vocabulary - 1));
    }

    // Of the first of these names that there is. Sizes of 1 may be there or not.
    Set data_set(const std::vector<std::string>& names, const Shape& sample, std::span<const std::int32_t> places) {
        Set set;
        std::string asked;
        for (const std::string& name : names) {
            if (name.empty() || set.data) continue;
            asked += fmt::format("{}'{}'", asked.empty() ? "" : " or ", name);
            set.name = name;
            set.data = find(file_, name);
        }
        const std::string right =
            places.empty() ? to_string(sample) : fmt::format("more than {}", std::ranges::max(places));
        if (!set.data || !is_data_set(set.data)) {
            throw InputError(
                fmt::format("{}: has no data set {}: there must be one of {{samples, {}}}", where_, asked, right));
        }
        const Shape has = shape_of(set.data);
        if (count_ == 0 && !has.empty()) count_ = has.front();
        set.row = has.empty() ? 0 : elements(Shape(has.begin() + 1, has.end()));
        // Ids of several dimensions are one list to the network.
        const bool list = sample.size() == 1 || (!has.empty() && flat(has, 1) == flat(sample, 0));
        const bool fits = places.empty() ? set.row == elements(sample) && list : set.row > std::ranges::max(places);
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // as Shuffle numbers them
        if (count_ < 1 || count_ > most || has.empty() || has.front() != count_ || !fits) {
            throw InputError(
                fmt::format("{}: '{}' is {}: the network takes {{samples, {}}}, as many samples of each "
                            "data set",
                            where_, set.name, to_string(has), right));
        }
        return set;
    }

    // Without sizes of 1.
    static Shape flat(const Shape& shape, std::ptrdiff_t first) {
        Shape own(shape.begin() + first, shape.end());
        std::erase(own, 1);
        return own;
    }

    std::string where_;
    std::optional<Labels> labels_;
    std::int64_t left_out_, count_ = 0;
    H5 file_;
    Set label_set_;
    std::vector<Set> sets_;
};

}  // namespace

InputFile open_inputs(const std::filesystem::path& file, const Network& network, std::int64_t left_out) {
    const auto samples =
        reading(file.string(), [&] { return std::make_shared<const H5Inputs>(file, network, left_out); });
    return {samples->count(), [samples](std::int64_t place, std::span<float> numbers, std::span<std::int32_t> ids,
                                        std::span<std::int32_t> labels) {
                reading(samples->where(), [&] { samples->read(place, numbers, ids, labels); });
            }};
}

}  // namespace rehearse::run
