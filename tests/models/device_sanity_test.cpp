// SPDX-License-Identifier: Apache-2.0
// Prices of every device of the catalog, in every type that it has, are what hardware can do, whether somebody measured
// it or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "models/models.hpp"
#include "models/reader/machine_files.hpp"
#include "prices/chip_kernels.hpp"
#include "prices/interval.hpp"
#include "prices/prices.hpp"

namespace rehearse::models {
namespace {

std::vector<DeviceClass> catalog() {
    std::vector<DeviceClass> devices;
    const std::string text{device_catalog()};
    const std::regex name{"\\[\\[device\\]\\]\\nname = \"([^\"]+)\""};
    for (std::sregex_iterator it{text.begin(), text.end(), name}, end; it != end; ++it) {
        const std::string machine = "name = \"m\"\n[[device]]\nname = \"gpu\"\nlike = \"" + (*it)[1].str() +
                                    "\"\n[[node]]\nname = \"n\"\n"
                                    "devices = [{ class = \"gpu\", name = \"gpu\" }]\n";
        devices.push_back(parse_machine(machine, "m.toml").classes[0]);
    }
    return devices;
}

// A kernel, the operations and bytes in 4-byte numbers that nobody does without, and how often as long it may take.
struct Kernel {
    std::string name;
    Problem problem;
    double flops, values;
    double most;
    double saved = 1;  // share of the multiplications that the fastest transform leaves
};

// Winograd's F(4x4, 3x3) multiplies 36 numbers for 16 results of 9 taps (Lavin and Gray 2015).
constexpr double winograd = 36.0 / (16 * 9);

std::vector<Kernel> of_images(DataType type) {
    const Window three{3, 3, 1, 1, 1, 1, 1, 1};
    const double pixels = 64.0 * 56 * 56;
    const double saved = type == DataType::f32 ? winograd : 1;
    std::vector<Kernel> kernels;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        kernels.push_back({"3x3",
                           {Conv{256, 56, 56, 256, three}, pass, 64, type},
                           2 * pixels * 256 * 256 * 9,
                           pixels * 512,
                           4,
                           saved});
        kernels.push_back(
            {"1x1", {Conv{512, 56, 56, 512, Window{}}, pass, 64, type}, 2 * pixels * 512 * 512, pixels * 1024, 4});
        kernels.push_back(
            {"depthwise", {Conv{256, 56, 56, 256, three, 256}, pass, 64, type}, 2 * pixels * 256 * 9, pixels * 512, 7});
    }
    const Shape image{256, 56, 56};
    kernels.push_back({"relu", {Activation{Nonlinearity::relu, image}, Pass::forward, 64, type}, 0, pixels * 512, 2});
    kernels.push_back({"add", {Add{image}, Pass::forward, 64, type}, 0, pixels * 768, 2});
    return kernels;
}

std::vector<Kernel> of_tokens(DataType type) {
    std::vector<Kernel> kernels;
    const auto product = [](double m, double n, double k) { return 2 * m * n * k; };
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        kernels.push_back({"large product",
                           {MatMul{4096, 4096, 4096, false}, pass, 4, type},
                           product(16384, 4096, 4096),
                           16384 * 8192.0,
                           4});
        kernels.push_back({"skinny product",
                           {MatMul{1, 4096, 4096, false}, pass, 16, type},
                           product(16, 4096, 4096),
                           4096.0 * 4096,
                           10});
    }
    const Attention attention{.heads = 16, .queries = 2048, .keys = 2048, .head_size = 64};
    const double rows = 8 * 16.0 * 2048;
    kernels.push_back({"attention", {attention, Pass::forward, 8, type}, 2 * product(rows, 2048, 64), rows * 256, 60});
    kernels.push_back(
        {"its gradient", {attention, Pass::backward_data, 8, type}, 4 * product(rows, 2048, 64), rows * 448, 60});
    const double values = 32 * 2048.0 * 4096;
    kernels.push_back({"norm", {LayerNorm{2048, 4096}, Pass::forward, 32, type}, 0, 2 * values, 3});
    kernels.push_back({"its gradient", {LayerNorm{2048, 4096}, Pass::backward_data, 32, type}, 0, 3 * values, 3});
    kernels.push_back(
        {"loss", {SoftmaxLoss{.classes = 2048, .rows = 2048}, Pass::forward, 64, type}, 0, 64 * 2048.0 * 2048, 16});
    return kernels;
}

// Schedules update in f32, whatever products compute in (update_type of schedule/).
std::vector<Kernel> of_updates() {
    constexpr std::int64_t count = 100'000'000;
    return {{"sgd", {SgdUpdate{count}, Pass::update, 1, DataType::f32}, 0, 5.0 * count, 2},
            {"adam", {AdamUpdate{count}, Pass::update, 1, DataType::f32}, 0, 7.0 * count, 2}};
}

std::vector<Kernel> kernels(DataType type) {
    std::vector<Kernel> all = of_tokens(type);
    if (type != DataType::fp8) std::ranges::copy(of_images(type), std::back_inserter(all));  // bf16 there
    if (type == DataType::f32) std::ranges::copy(of_updates(), std::back_inserter(all));
    return all;
}

Seconds least(const Kernel& kernel, const DeviceClass& device) {
    const DataType type = kernel.problem.type;
    const bool operands = std::holds_alternative<MatMul>(kernel.problem.op);
    const Bytes bytes = kernel.values * size_of(type == DataType::fp8 && !operands ? DataType::bf16 : type);
    return std::max(Flops{kernel.flops * kernel.saved} / device.peak.at(type).value,
                    bytes / device.memory_bandwidth.value);
}

// The same where a library may run what it has for f32, which transforms: where matrix units are little faster than
// lanes, or there are none, that is less.
Seconds least_of_any(const Kernel& kernel, const DeviceClass& device) {
    if (kernel.name != "3x3" || !device.peak.contains(DataType::f32)) return least(kernel, device);
    Kernel in_f32 = kernel;
    in_f32.problem.type = DataType::f32;
    in_f32.saved = winograd;
    return std::min(least(kernel, device), least(in_f32, device));
}

// Two f16 at once on lanes: frameworks run f32's kernels, which read twice the bytes.
double bytes_beyond(DataType type, const DeviceClass& device) {
    return type == DataType::f16 && !device.host && !has_matrix_units(device, type) ? 2 : 1;
}

std::string told(const Kernel& kernel, const DeviceClass& device) {
    return kernel.name + " on " + device.like + ": " + to_string(kernel.problem) + ", " +
           price(kernel.problem, device).source;
}

// cuBLAS 7.5 on a Titan X of Maxwell, by which a K80 is priced, takes 76 to 93 us for 512 x 16 x 512 (DeepBench).
Seconds most_of_small(const DeviceClass& device) {
    const bool old_library = device.like == "titanx-maxwell" || device.like == "k80";
    return Seconds{old_library ? 1.2e-4 : 1e-4};
}

TEST(EveryDevice, TakesWhatItsSheetAllowsAndNoMoreThanASaneMultiple) {
    for (const DeviceClass& device : catalog()) {
        for (const auto& [type, peak] : device.peak) {
            for (const Kernel& kernel : kernels(type)) {
                const Price answer = price(kernel.problem, device);
                const Seconds bound = least(kernel, device);
                EXPECT_GE(answer.time / least_of_any(kernel, device), 0.98) << told(kernel, device);
                const double most = kernel.most / kernel.saved * bytes_beyond(type, device);
                EXPECT_LE(answer.time / bound, most) << told(kernel, device);
                EXPECT_GE(answer.error, 0.005) << told(kernel, device);
                EXPECT_LE(answer.error, 1) << told(kernel, device);
            }
            const Problem small{MatMul{128, 128, 128, false}, Pass::forward, 1, type};
            EXPECT_LE(price(small, device).time, most_of_small(device)) << to_string(small) << " on " << device.like;
        }
    }
}

enum class Vendor { nvidia, amd, other };
Vendor vendor(const DeviceClass& device) {
    if (device.host || device.like.starts_with("max")) return Vendor::other;
    return device.like.starts_with("mi") ? Vendor::amd : Vendor::nvidia;
}

// What one device has more of than another of its vendor makes none of its large kernels much slower. Left out: few
// rows of a product, which boards that were measured do better than those that were not, and one card whose library
// was an old one.
TEST(EveryDevice, IsNoSlowerThanOneOfItsVendorThatHasLess) {
    const std::vector<DeviceClass> devices = catalog();
    int pairs = 0;
    for (const DeviceClass& more : devices) {
        if (vendor(more) == Vendor::other || more.like == "titanx-maxwell") continue;
        for (const DeviceClass& less : devices) {
            if (vendor(less) != vendor(more) || less.like == more.like) continue;
            if (less.memory_bandwidth.value > more.memory_bandwidth.value) continue;
            for (const auto& [type, peak] : less.peak) {
                if (!more.peak.contains(type) || peak.value > more.peak.at(type).value) continue;
                ++pairs;
                for (const Kernel& kernel : kernels(type)) {
                    if (kernel.name == "skinny product") continue;
                    EXPECT_LE(price(kernel.problem, more).time / price(kernel.problem, less).time, 1.45)
                        << told(kernel, more) << "; " << told(kernel, less);
                }
            }
        }
    }
    EXPECT_GT(pairs, 500);
}

// Of two devices of a vendor that follow each other in the catalog, as boards of a chip and chips of a generation do:
// nine in ten of their shares of the bound differ by no more than their bands reach.
TEST(EveryDevice, HasTheNextOnesShareInItsBand) {
    const std::vector<DeviceClass> devices = catalog();
    int pairs = 0, inside = 0;
    for (std::size_t i = 0; i + 1 < devices.size(); ++i) {
        const DeviceClass &one = devices[i], &next = devices[i + 1];
        if (vendor(one) == Vendor::other || vendor(one) != vendor(next)) continue;
        for (const auto& [type, peak] : one.peak) {
            if (!next.peak.contains(type)) continue;
            for (const Kernel& kernel : kernels(type)) {
                if (std::holds_alternative<Attention>(kernel.problem.op)) continue;  // software decides about its bytes
                const Price a = price(kernel.problem, one), b = price(kernel.problem, next);
                const double ratio = (a.time / least(kernel, one)) / (b.time / least(kernel, next));
                ++pairs;
                if (std::exp(std::abs(std::log(ratio))) <= prices::log_reach(std::hypot(a.error, b.error))) ++inside;
            }
        }
    }
    EXPECT_GT(pairs, 1000);
    EXPECT_GE(inside, 0.9 * pairs);
}

}  // namespace
}  // namespace rehearse::models
