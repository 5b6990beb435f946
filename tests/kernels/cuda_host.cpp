// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/cuda_host.hpp"

#include <complex>
#include <cstring>
#include <numbers>
#include <variant>
#include <vector>

#include "kernels/cuda/flash_tasks.hpp"
#include "kernels/cuda/points.hpp"
#include "tests/kernels/cuda_host_team.hpp"

namespace rehearse::kernels::cuda {

namespace {

using Complex = std::complex<double>;

// Roots of unity: roots[k] is the k-th.
struct Roots {
    std::vector<Complex> roots;
    explicit Roots(std::int64_t count) {
        const double step = 2 * std::numbers::pi / static_cast<double>(count);
        for (std::int64_t k = 0; k < count; ++k) roots.push_back(std::polar(1.0, step * static_cast<double>(k)));
    }
    const Complex& operator()(std::int64_t k) const { return roots[static_cast<std::size_t>(k) % roots.size()]; }
};

// As the transform is defined, rows and then columns.
void transform_now(const Engine::PlaneBatch& b, const float* planes, float* spectra) {
    const std::int64_t half = b.width / 2 + 1;
    const Roots across(b.width), down(b.height);
    for (std::int64_t plane = 0; plane < b.count; ++plane, planes += b.height * b.width) {
        std::vector<Complex> rows(static_cast<std::size_t>(b.height * half));
        for (std::int64_t i = 0; i < b.height * half; ++i) {
            for (std::int64_t x = 0; x < b.width; ++x) {
                rows[i] += static_cast<double>(planes[i / half * b.width + x]) * std::conj(across(i % half * x));
            }
        }
        for (std::int64_t i = 0; i < b.height * half; ++i, spectra += 2) {
            Complex sum = 0;
            for (std::int64_t y = 0; y < b.height; ++y) {
                sum += rows[y * half + i % half] * std::conj(down(i / half * y));
            }
            spectra[0] = static_cast<float>(sum.real()), spectra[1] = static_cast<float>(sum.imag());
        }
    }
}

void transform_back_now(const Engine::PlaneBatch& b, float* spectra, float* planes) {
    const std::int64_t half = b.width / 2 + 1;
    const Roots across(b.width), down(b.height);
    for (std::int64_t plane = 0; plane < b.count; ++plane, planes += b.height * b.width) {
        std::vector<Complex> columns(static_cast<std::size_t>(b.height * half));
        for (std::int64_t i = 0; i < b.height * half; ++i) {
            for (std::int64_t v = 0; v < b.height; ++v) {
                const float* const from = spectra + 2 * (v * half + i % half);
                columns[i] += Complex{from[0], from[1]} * down(i / half * v);
            }
        }
        for (std::int64_t i = 0; i < b.height * b.width; ++i) {
            double sum = 0;  // the other half of the frequencies are these, conjugated
            for (std::int64_t u = 0; u < half; ++u) {
                const bool alone = u == 0 || 2 * u == b.width;
                sum += (alone ? 1 : 2) * (columns[i / b.width * half + u] * across(u * (i % b.width))).real();
            }
            planes[i] = static_cast<float>(sum);
        }
        std::memset(spectra, 0xFF,
                    static_cast<std::size_t>(2 * b.height * half) * sizeof(float));  // it is of no more use
        spectra += 2 * b.height * half;
    }
}

template <typename Task>
void run_blocks(const Task& task) {
    const Blocks blocks = task.blocks();
    HostTeam<Task> team;
    for (std::int64_t z = 0; z < blocks.z; ++z) {
        for (std::int64_t y = 0; y < blocks.y; ++y) {
            for (std::int64_t x = 0; x < blocks.x; ++x) {
                team.reset();
                task.run(team, Block{x, y, z});
            }
        }
    }
}

void run_any(const auto& any) {
    std::visit([](const auto& task) { run_blocks(task); }, any);
}

}  // namespace

void HostEngine::run(const ImplicitGemmTask& task) {
    start([task] { run_any(task); });
}
void HostEngine::run(const WeightsTask& task) {
    start([task] { run_any(task); });
}
void HostEngine::run(const LoopTask& task) {
    start([task] { run_any(task); });
}
void HostEngine::run(const WinogradTask& task) {
    start([task] { run_any(task); });
}
void HostEngine::run(const PackedTask& task) {
    start([task] { run_any(task); });
}
void HostEngine::run(const PointTask& task) {
    start([task] { run_any(static_cast<const AnyPoint&>(task)); });
}
void HostEngine::run(const FlashTask& task) {
    start([task] { run_any(static_cast<const AnyFlash&>(task)); });
}
void HostEngine::transform(const PlaneBatch& batch, const float* planes, float* spectra) {
    start([=] { transform_now(batch, planes, spectra); });
}
void HostEngine::transform_back(const PlaneBatch& batch, float* spectra, float* planes) {
    start([=] { transform_back_now(batch, spectra, planes); });
}

}  // namespace rehearse::kernels::cuda
