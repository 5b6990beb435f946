// SPDX-License-Identifier: Apache-2.0
#include "run/data/hdf5.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/output_file.hpp"

namespace rehearse::run {

namespace {

// What HDF5 says of an error goes into ours, not to stderr. Of a file that could not be closed it keeps a piece, over
// which its own end at the process's would fall; all files are closed by then.
void begin() {
    static const herr_t once = H5dont_atexit();
    static_cast<void>(once);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::recursive_mutex one_thread;  // NOLINT: the library's own state is one for all
using Lock = std::lock_guard<std::recursive_mutex>;

hid_t check(hid_t id, const char* what) {
    if (id < 0) throw BackendError(fmt::format("HDF5: {} failed", what));
    return id;
}
void check_done(herr_t status, const std::string& what) {
    if (status < 0) throw BackendError(fmt::format("HDF5: {} failed", what));
}

template <typename Value>
void write_scalar(const H5& parent, const std::string& name, hid_t type, Value value) {
    const H5 space{check(H5Screate(H5S_SCALAR), "a space"), H5Sclose};
    const H5 attribute{
        check(H5Acreate2(parent.id(), name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT), "making an attribute"),
        H5Aclose};
    check_done(H5Awrite(attribute.id(), type, value), "writing an attribute");
}

H5 open_attribute(const H5& parent, const std::string& name, const std::string& where) {
    if (H5Aexists(parent.id(), name.c_str()) <= 0) {
        throw InputError(fmt::format("{}: has no attribute '{}'", where, name));
    }
    H5 attribute{check(H5Aopen(parent.id(), name.c_str(), H5P_DEFAULT), "opening an attribute"), H5Aclose};
    const H5 space{check(H5Aget_space(attribute.id()), "an attribute's space"), H5Sclose};
    if (H5Sget_simple_extent_type(space.id()) != H5S_SCALAR) {
        throw InputError(fmt::format("{}: attribute '{}' has several values, it should have one", where, name));
    }
    return attribute;
}

// Two trainings that do the same write the same bytes: objects have no times.
H5 without_times(hid_t kind) {
    H5 properties{check(H5Pcreate(kind), "properties of an object"), H5Pclose};
    check_done(H5Pset_obj_track_times(properties.id(), false), "properties of an object");
    return properties;
}

// Chunks of about 4 MiB, whole rows, with checksums; a smaller data set is one chunk.
H5 in_checked_chunks(const std::vector<hsize_t>& sizes) {
    H5 properties = without_times(H5P_DATASET_CREATE);
    hsize_t row = 1;
    for (std::size_t i = 1; i < sizes.size(); ++i) row *= sizes[i];
    std::vector<hsize_t> chunk = sizes;
    if (row == 0 || chunk.front() == 0) return properties;
    chunk.front() = std::min<hsize_t>(chunk.front(), std::max<hsize_t>(1, (hsize_t{1} << 20U) / row));
    check_done(H5Pset_chunk(properties.id(), static_cast<int>(chunk.size()), chunk.data()), "properties of a data set");
    check_done(H5Pset_fletcher32(properties.id()), "properties of a data set");
    return properties;
}

void require_in_file(const H5& data_set, std::int64_t count, const std::string& where) {
    const H5 type{check(H5Dget_type(data_set.id()), "a type"), H5Tclose};
    const H5 properties{check(H5Dget_create_plist(data_set.id()), "properties of a data set"), H5Pclose};
    const bool packed = H5Pget_nfilters(properties.id()) > 1;  // one is the checksum
    const auto bytes = static_cast<double>(count) * static_cast<double>(H5Tget_size(type.id()));
    const auto stored = static_cast<double>(H5Dget_storage_size(data_set.id()));
    constexpr double most_packed = 2000;  // times smaller; deflate makes zeros 1,030 times smaller
    if (bytes > (packed ? most_packed * stored : stored)) {
        throw InputError(fmt::format("{}: claims {} numbers, but has {} bytes for them", where, count, stored));
    }
}

template <typename Value>
Value scalar(const H5& parent, const std::string& name, const std::string& where, hid_t type) {
    const H5 attribute = open_attribute(parent, name, where);
    Value value{};
    if (H5Aread(attribute.id(), type, &value) < 0) {
        throw InputError(fmt::format("{}: attribute '{}' is not a number", where, name));
    }
    return value;
}

template <typename Value>
void block(const H5& data_set, const Shape& first, const Shape& sizes, std::span<Value> to, const std::string& where,
           hid_t type) {
    const std::vector<hsize_t> start(first.begin(), first.end()), size(sizes.begin(), sizes.end());
    const H5 file{check(H5Dget_space(data_set.id()), "a data set's space"), H5Sclose};
    check_done(H5Sselect_hyperslab(file.id(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr),
               "a selection");
    const H5 memory{check(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), "a space"), H5Sclose};
    const auto elements = static_cast<std::size_t>(H5Sget_simple_extent_npoints(memory.id()));
    require(elements == to.size(), "room for the rows");
    if (H5Dread(data_set.id(), type, memory.id(), file.id(), H5P_DEFAULT, to.data()) < 0) {
        throw InputError(fmt::format("{}: cannot be read as numbers", where));
    }
}

template <typename Value>
void rows(const H5& data_set, std::int64_t first, std::int64_t count, std::span<Value> to, const std::string& where,
          hid_t type) {
    Shape size = shape_of(data_set), start(size.size());
    start.at(0) = first;
    size.at(0) = count;
    block(data_set, start, size, to, where, type);
}

void write_set(const H5& parent, const std::string& name, std::span<const float> values, const Shape& shape,
               const H5& properties) {
    require(elements(shape) == static_cast<std::int64_t>(values.size()), "sizes are those of the values");
    const std::vector<hsize_t> sizes(shape.begin(), shape.end());
    const H5 space{check(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr), "a space"), H5Sclose};
    H5 data{check(H5Dcreate2(parent.id(), name.c_str(), H5T_IEEE_F32LE, space.id(), H5P_DEFAULT, properties.id(),
                             H5P_DEFAULT),
                  "making a data set"),
            H5Dclose};
    check_done(H5Dwrite(data.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
               fmt::format("writing '{}' (is the disk full?)", name));
    // What its cache of chunks still holds is written as it is closed.
    check_done(H5Dclose(data.release()), "writing a data set");
}

H5 make_file(const std::string& path) {
    const Lock lock{one_thread};
    begin();
    const H5 root = without_times(H5P_FILE_CREATE);
    const H5 properties{check(H5Pcreate(H5P_FILE_ACCESS), "properties of a file"), H5Pclose};
    check_done(H5Pset_libver_bounds(properties.id(), H5F_LIBVER_V110, H5F_LIBVER_V110), "properties of a file");
    return {check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, root.id(), properties.id()), "making a file"), H5Fclose};
}

// HDF5 writes much of a file only now, and the destructor of H5 could not say that the disk was full.
void close(H5 file) {
    const Lock lock{one_thread};
    const hid_t id = file.release();
    const bool flushed = H5Fflush(id, H5F_SCOPE_GLOBAL) >= 0;
    if (H5Fclose(id) < 0 || !flushed) throw BackendError("HDF5: its end cannot be written: is the disk full?");
}

/// What is in a file, or in a folder's list of files, is on the disk.
void flush(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool done = file >= 0 && ::fsync(file) == 0;
    const int error = errno;
    if (file >= 0) ::close(file);
    if (!done) throw BackendError("cannot be flushed to the disk: " + std::generic_category().message(error));
}

}  // namespace

H5::~H5() {
    if (id_ < 0) return;
    const Lock lock{one_thread};
    close_(id_);
}

H5 open_file(const std::filesystem::path& path) {
    const Lock lock{one_thread};
    begin();
    if (!std::filesystem::is_regular_file(path)) throw InputError(fmt::format("{}: no such file", path.string()));
    H5 file{H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
    if (!file) throw InputError(fmt::format("{}: not an HDF5 file, or not a whole one", path.string()));
    return file;
}

void write_file(const std::filesystem::path& path, const std::function<void(const H5&)>& fill) {
    OutputFile output{path.string()};
    if (output.unfinished_path().empty())
        throw InputError(fmt::format("{}: HDF5 is written to files alone: give a file's name", path.string()));
    try {
        H5 file = make_file(output.unfinished_path());
        fill(file);
        close(std::move(file));
        flush(output.unfinished_path());
    } catch (const BackendError& error) {
        throw BackendError(fmt::format("{}: {}", path.string(), error.what()));
    }
    output.commit();
    flush(path.has_parent_path() ? path.parent_path() : ".");
}

H5 make_group(const H5& parent, const std::string& name) {
    const Lock lock{one_thread};
    const H5 properties = without_times(H5P_GROUP_CREATE);
    return {check(H5Gcreate2(parent.id(), name.c_str(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), "making a group"),
            H5Gclose};
}

H5 find(const H5& parent, const std::string& name) {
    const Lock lock{one_thread};
    if (H5Lexists(parent.id(), name.c_str(), H5P_DEFAULT) <= 0) return {};
    return {check(H5Oopen(parent.id(), name.c_str(), H5P_DEFAULT), "opening an object"), H5Oclose};
}

void write(const H5& parent, const std::string& name, std::span<const float> values) {
    write(parent, name, values, {static_cast<std::int64_t>(values.size())});
}

void write(const H5& parent, const std::string& name, std::span<const float> values, const Shape& shape) {
    const Lock lock{one_thread};
    write_set(parent, name, values, shape, in_checked_chunks({shape.begin(), shape.end()}));
}

void write_plain(const H5& parent, const std::string& name, std::span<const float> values, const Shape& shape) {
    const Lock lock{one_thread};
    write_set(parent, name, values, shape, without_times(H5P_DATASET_CREATE));
}

bool has_attribute(const H5& parent, const std::string& name) {
    const Lock lock{one_thread};
    return H5Aexists(parent.id(), name.c_str()) > 0;
}

void write_attribute(const H5& parent, const std::string& name, const std::string& text) {
    const Lock lock{one_thread};
    const H5 type{check(H5Tcopy(H5T_C_S1), "a type"), H5Tclose};
    check_done(H5Tset_size(type.id(), text.size() + 1), "a type");
    write_scalar(parent, name, type.id(), text.c_str());
}
void write_attribute(const H5& parent, const std::string& name, double value) {
    const Lock lock{one_thread};
    write_scalar(parent, name, H5T_NATIVE_DOUBLE, &value);
}
void write_attribute(const H5& parent, const std::string& name, std::int64_t value) {
    const Lock lock{one_thread};
    write_scalar(parent, name, H5T_NATIVE_INT64, &value);
}

std::string text_attribute(const H5& parent, const std::string& name, const std::string& where) {
    const Lock lock{one_thread};
    const H5 attribute = open_attribute(parent, name, where);
    const H5 stored{check(H5Aget_type(attribute.id()), "a type"), H5Tclose};
    if (H5Tget_class(stored.id()) != H5T_STRING || H5Tis_variable_str(stored.id()) > 0) {
        throw InputError(fmt::format("{}: attribute '{}' is not a text", where, name));
    }
    std::string text(H5Tget_size(stored.id()), '\0');
    check_done(H5Aread(attribute.id(), stored.id(), text.data()), "reading an attribute");
    return text.c_str();
}
double number_attribute(const H5& parent, const std::string& name, const std::string& where) {
    const Lock lock{one_thread};
    return scalar<double>(parent, name, where, H5T_NATIVE_DOUBLE);
}
std::int64_t integer_attribute(const H5& parent, const std::string& name, const std::string& where) {
    const Lock lock{one_thread};
    return scalar<std::int64_t>(parent, name, where, H5T_NATIVE_INT64);
}

bool is_data_set(const H5& object) {
    const Lock lock{one_thread};
    return H5Iget_type(object.id()) == H5I_DATASET;
}

Shape shape_of(const H5& data_set) {
    const Lock lock{one_thread};
    const H5 space{check(H5Dget_space(data_set.id()), "a data set's space"), H5Sclose};
    std::vector<hsize_t> sizes(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id()))));
    H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr);
    return {sizes.begin(), sizes.end()};
}

std::vector<float> floats_in(const H5& data_set, const std::string& where) {
    const Lock lock{one_thread};
    const std::int64_t count = elements(shape_of(data_set));
    require_in_file(data_set, count, where);
    std::vector<float> values(static_cast<std::size_t>(count));
    if (H5Dread(data_set.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
        throw InputError(fmt::format("{}: cannot be read as numbers, or is damaged", where));
    }
    return values;
}

void read_rows(const H5& data_set, std::int64_t first, std::int64_t count, std::span<float> to,
               const std::string& where) {
    const Lock lock{one_thread};
    rows(data_set, first, count, to, where, H5T_NATIVE_FLOAT);
}
void read_rows(const H5& data_set, std::int64_t first, std::int64_t count, std::span<std::int32_t> to,
               const std::string& where) {
    const Lock lock{one_thread};
    const H5 type{check(H5Dget_type(data_set.id()), "a type"), H5Tclose};
    if (H5Tget_class(type.id()) != H5T_FLOAT) return rows(data_set, first, count, to, where, H5T_NATIVE_INT32);
    std::vector<double> values(to.size());
    rows(data_set, first, count, std::span{values}, where, H5T_NATIVE_DOUBLE);
    std::ranges::transform(values, to.begin(), [&](double value) {
        if (std::trunc(value) == value && value >= -0x1p31 && value < 0x1p31) return static_cast<std::int32_t>(value);
        throw InputError(fmt::format("{}: has {} where whole numbers are asked for: labels and ids", where, value));
    });
}
void read_block(const H5& data_set, const Shape& first, const Shape& size, std::span<float> to,
                const std::string& where) {
    const Lock lock{one_thread};
    block(data_set, first, size, to, where, H5T_NATIVE_FLOAT);
}

}  // namespace rehearse::run
