// SPDX-License-Identifier: Apache-2.0
// Times problems on a device, whose own clock it is: buffers lie in its memory and rotate through more than its cache.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/problems.hpp"
#include "calibrate/samples.hpp"
#include "kernels/choices.hpp"

namespace rehearse::bench {

struct DeviceOptions {
    std::string backend{}, algorithm{};  // as run takes them; empty: the best of each operator
    Bytes scratch_limit = kernels::default_scratch_limit;
    Bytes rotating{256.0 * 1048576};  // buffers take turns over so much: an H200's cache has 50 MB
    /// A sample is the median of rounds; a round starts so many kernels, one after the other, or as many as take
    /// `round`, but one at least.
    int rounds = 7, runs = 10;
    Seconds round{5e-3};
    std::int64_t square = 8192;  // rows of the matrices of the peak's products
    Bytes copied{1024.0 * 1048576};
};

/// A problem's tensors in the device's memory, so many sets of them that they take turns over `rotating`; labels and
/// ids, too. For implementations that keep at most `workspace` floats from forward to backward.
class Rotation {
public:
    Rotation(kernels::Device& device, const Problem& problem, std::int64_t workspace, const DeviceOptions& options);
    ~Rotation();
    /// On one implementation: the device's own, whose tensors lie in memory of the device alone, or one of the host's.
    calibrate::Sample time(const kernels::Backend& backend, const DeviceOptions& options);

private:
    class Set;
    kernels::Device& device_;
    Problem problem_;
    const std::vector<std::unique_ptr<Set>>& sets(bool with_host);

    int count_ = 0;
    std::int64_t workspace_ = 0;
    std::vector<std::unique_ptr<Set>> sets_, shared_sets_;
};

/// The same of one implementation only.
calibrate::Sample time_on(kernels::Device& device, const Problem& problem, const kernels::Backend& backend,
                          const DeviceOptions& options);

/// What the device does at the most: the rate of large products (f32), of a copy in its memory (read and written
/// bytes), and the time that it takes to start a kernel, one after the other.
calibrate::HostFigures measure_figures(kernels::Device& device, const DeviceOptions& options);
/// The rate of a large product in this type.
calibrate::Figure<FlopRate> measure_peak(kernels::Device& device, DataType type, const DeviceOptions& options);

/// The rate of products of 8-bit factors, without what rounds them first: that grows as the square of a matrix's rows,
/// the products as their cube, so two sizes tell them apart. Nothing where the device has no such products.
std::optional<calibrate::Figure<FlopRate>> measure_fp8_peak(kernels::Device& device, const DeviceOptions& options);

/// Of pinned memory of the host from the device's, as `run` takes gradients to MPI; by the host's clock.
calibrate::Figure<Bandwidth> measure_host_link(kernels::Device& device, const DeviceOptions& options);

/// Each problem as `run` would compute it there. InputError when one has no implementation, BackendError where there is
/// no such device.
std::vector<calibrate::Sample> measure(kernels::Device& device, const std::vector<calibrate::Needed>& needed,
                                       const DeviceOptions& options);

}  // namespace rehearse::bench
