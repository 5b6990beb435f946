// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/nvml.hpp"

#include <fmt/format.h>

#include <array>

#include "kernels/cuda/library.hpp"

namespace rehearse::kernels::cuda {
namespace {

// As nvml.h declares them, which toolkits do not always bring; the functions' versions are in their names.
using Status = int;  // 0: success
using Handle = void*;
constexpr int processors_clock = 1, memory_clock = 2;  // NVML_CLOCK_SM, NVML_CLOCK_MEM
constexpr int of_the_chip = 0;                         // NVML_TEMPERATURE_GPU

struct Nvml {
    Library library{"libnvidia-ml.so.1", "libnvidia-ml.so"};
    Status (*init)() = library.function<Status()>("nvmlInit_v2");
    const char* (*words)(Status) = library.function<const char*(Status)>("nvmlErrorString");
    Status (*by_address)(const char*,
                         Handle*) = library.function<Status(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
    Status (*clock)(Handle, int,
                    unsigned*) = library.function<Status(Handle, int, unsigned*)>("nvmlDeviceGetClockInfo");
    Status (*reasons)(Handle, unsigned long long*) =
        library.function<Status(Handle, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    Status (*temperature)(Handle, int,
                          unsigned*) = library.function<Status(Handle, int, unsigned*)>("nvmlDeviceGetTemperature");
    Status (*power)(Handle, unsigned*) = library.function<Status(Handle, unsigned*)>("nvmlDeviceGetPowerUsage");
    std::string refusal = library.refusal();

    Nvml() {
        if (!refusal.empty()) return;
        if (const Status status = init(); status != 0) refusal = fmt::format("NVML does not start: {}", words(status));
    }
};

const Nvml& nvml() {
    static const Nvml& only = *new Nvml;
    return only;
}

}  // namespace

std::string held_down_by(std::uint64_t reasons) {
    struct Reason {
        std::uint64_t bit;
        const char* words;
    };
    constexpr std::array known{Reason{0x2, "clocks that were set"},
                               Reason{0x4, "the power limit"},
                               Reason{0x8, "the hardware's slowdown"},
                               Reason{0x10, "other GPUs' clocks"},
                               Reason{0x20, "heat"},
                               Reason{0x40, "heat, by the hardware"},
                               Reason{0x80, "the power supply"},
                               Reason{0x100, "the display's clocks"}};
    constexpr std::uint64_t idle = 0x1;
    std::string made;
    const auto add = [&](const std::string& words) { made += (made.empty() ? "" : ", ") + words; };
    reasons &= ~idle;
    for (const Reason& reason : known) {
        if ((reasons & reason.bit) != 0) add(reason.words);
        reasons &= ~reason.bit;
    }
    if (reasons != 0) add(fmt::format("reason {:#x}", reasons));
    return made;
}

Clocks nvml_clocks(const std::string& pci_address) {
    const Nvml& library = nvml();
    if (!library.refusal.empty()) return {.refusal = library.refusal};
    Handle gpu = nullptr;
    unsigned processors = 0, memory = 0, degrees = 0, milliwatts = 0;
    unsigned long long reasons = 0;
    Status status = library.by_address((pci_address + ".0").c_str(), &gpu);
    if (status == 0) status = library.clock(gpu, processors_clock, &processors);
    if (status == 0) status = library.clock(gpu, memory_clock, &memory);
    if (status == 0) status = library.reasons(gpu, &reasons);
    if (status != 0) return {.refusal = fmt::format("NVML does not read {}: {}", pci_address, library.words(status))};
    Clocks made{.processors_hz = 1e6 * processors, .memory_hz = 1e6 * memory, .held_down_by = held_down_by(reasons)};
    // Not every board says these.
    if (library.temperature(gpu, of_the_chip, &degrees) == 0) made.celsius = degrees;
    if (library.power(gpu, &milliwatts) == 0) made.watts = 1e-3 * milliwatts;
    return made;
}

}  // namespace rehearse::kernels::cuda
