// SPDX-License-Identifier: Apache-2.0
// HDF5 files, as much of them as is needed: groups, attributes, whole data sets and rows of them.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/op.hpp"

namespace rehearse::run {

/// An open file, group, data set, space or attribute; closed at the end of its life. The library is of one thread: what
/// is here waits for each other, so that samples may be read beside a checkpoint.
class H5 {
public:
    H5() = default;
    H5(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
    H5(H5&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
    H5& operator=(H5&& other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    ~H5();
    hid_t id() const { return id_; }
    hid_t release() { return std::exchange(id_, -1); }
    explicit operator bool() const { return id_ >= 0; }

private:
    hid_t id_ = -1;
    herr_t (*close_)(hid_t) = nullptr;
};

/// InputError when there is no such file, or it is not HDF5.
H5 open_file(const std::filesystem::path& path);
/// Makes a file whose headers, links and attributes carry checksums (HDF5's format since 1.10), and lets `fill` write
/// into it. It appears under its name when it is whole and on the disk; what was there before stays until then.
/// InputError or BackendError that names it where it cannot be made, or the system took less than all of it.
void write_file(const std::filesystem::path& path, const std::function<void(const H5&)>& fill);
H5 make_group(const H5& parent, const std::string& name);
/// Nothing where it is absent.
H5 find(const H5& parent, const std::string& name);

/// One data set, in chunks with checksums (Fletcher's, of 32 bits): reading it finds what has changed on the disk.
void write(const H5& parent, const std::string& name, std::span<const float> values);
/// The same with sizes; `shape` has as many elements.
void write(const H5& parent, const std::string& name, std::span<const float> values, const Shape& shape);
/// The same in one stretch, without checksums: any block of it can be read without the rest.
void write_plain(const H5& parent, const std::string& name, std::span<const float> values, const Shape& shape);
void write_attribute(const H5& parent, const std::string& name, const std::string& text);
void write_attribute(const H5& parent, const std::string& name, double value);
void write_attribute(const H5& parent, const std::string& name, std::int64_t value);

/// InputError that names `where` when it is absent, or no single value of that kind.
bool has_attribute(const H5& parent, const std::string& name);
std::string text_attribute(const H5& parent, const std::string& name, const std::string& where);
double number_attribute(const H5& parent, const std::string& name, const std::string& where);
std::int64_t integer_attribute(const H5& parent, const std::string& name, const std::string& where);

bool is_data_set(const H5& object);
/// Sizes of a data set.
Shape shape_of(const H5& data_set);
/// All of it; numbers of any type are converted. InputError where it claims more than the file has bytes for.
std::vector<float> floats_in(const H5& data_set, const std::string& where);
/// Rows [first, first + count) of the first dimension, into as many elements. InputError where integers are asked for
/// and a number is not whole.
void read_rows(const H5& data_set, std::int64_t first, std::int64_t count, std::span<float> to,
               const std::string& where);
void read_rows(const H5& data_set, std::int64_t first, std::int64_t count, std::span<std::int32_t> to,
               const std::string& where);
/// A block of it, from `first` on and `size` in each dimension: no more of the file than the chunks that it meets.
void read_block(const H5& data_set, const Shape& first, const Shape& size, std::span<float> to,
                const std::string& where);

/// What `read` returns. What HDF5 could not do with a file is the file's fault here, an InputError: it is not whole, or
/// not as it was written.
template <typename Read>
auto reading(const std::string& where, const Read& read) {
    try {
        return read();
    } catch (const BackendError& error) {
        throw InputError(where + ": is damaged (" + error.what() + ")");
    }
}

}  // namespace rehearse::run
