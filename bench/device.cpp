// SPDX-License-Identifier: Apache-2.0
#include "bench/device.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "kernels/convert.hpp"

namespace rehearse::bench {

namespace {

using kernels::Device;
using kernels::View;

// Random numbers from `least` to 1, the same ones again and again: made once, as they take longer than what is timed.
const std::vector<float>& numbers(float least) {
    constexpr std::size_t count = 1000003;  // a prime: no two rows of a tensor are alike
    const auto make = [](float from) {
        std::minstd_rand random(1);
        std::uniform_real_distribution<float> uniform(from, 1);
        std::vector<float> made(count);
        for (float& value : made) value = uniform(random);
        return made;
    };
    static const std::vector<float> signed_ones = make(-1), positive = make(0);
    return least < 0 ? signed_ones : positive;
}

// Random numbers from `least` to 1, those from the `turn`-th place of them on, brought to the device.
void fill(Device& device, View tensor, float least, std::size_t turn = 0) {
    const std::vector<float>& all = numbers(least);
    const std::size_t most = std::min(all.size(), tensor.size()), each = tensor.size_bytes() / tensor.size();
    constexpr std::size_t step = 350377;  // from one operand to the next: no two of them are alike
    std::vector<float> values(most);
    for (std::size_t i = 0; i < most; ++i) values[i] = all[(i + turn * step) % all.size()];
    const Device::Memory staging = device.allocate_staging(most * each);
    const View here{staging.get(), most, tensor.type()};
    kernels::convert(kernels::ConstView(values), here);
    for (std::size_t from = 0; from < tensor.size(); from += most) {
        const View part = tensor.subspan(from, std::min(most, tensor.size() - from));
        device.copy_beside(part.bytes(), here.bytes(), part.size_bytes());
    }
}

// Seconds of one of the runs, by rounds; the first two, one run that warms up and one that says how long a run takes,
// are none of them.
std::vector<double> time_rounds(Device& device, const DeviceOptions& options, const std::function<void()>& run) {
    std::vector<double> seconds;
    Device::Event begin, end;
    int runs = 1;
    for (int round = -2; round < options.rounds; ++round) {
        device.record(begin);
        for (int i = 0; i < runs; ++i) run();
        device.record(end);
        device.wait(end);
        const double one = device.seconds(begin, end) / runs;
        if (round >= 0) seconds.push_back(one);
        if (round == -1)
            runs = static_cast<int>(std::clamp(options.round.value / std::max(one, 1e-9), 1.0, 1.0 * options.runs));
    }
    return seconds;
}

void require_present(const Device& device) {
    if (!device.refusal().empty()) throw BackendError(device.refusal());
}

template <typename Q>
calibrate::Figure<Q> rate(double amount, const std::vector<double>& seconds) {
    const double median = calibrate::median(seconds);
    return {Q{amount / median}, calibrate::robust_deviation(seconds) / median,
            static_cast<std::int64_t>(seconds.size())};
}

}  // namespace

// One set of a problem's tensors, all of them random: what a pass writes, too.
class Rotation::Set {
public:
    // Where the host computes, too, on memory that both reach.
    Set(Device& device, const Problem& problem, std::int64_t workspace, bool with_host)
        : device_(device), with_host_(with_host) {
        const DataType type = problem.type;
        const bool update = problem.pass == Pass::update;
        const std::int64_t weights =
            update ? updated(problem.op).value_or(parameters(problem.op)) : weights_read(problem.op);
        buffers.weights = tensor(weights, type);
        buffers.diff_weights = tensor(weights, type);
        if (update) {
            add_moments(problem, weights);
            return;
        }
        if (reads_integers(problem.op))
            buffers.indices = integers(problem.batch * elements(input_shapes(problem.op).front()), 1);
        for (const Shape& shape : input_shapes(problem.op)) {
            if (reads_integers(problem.op)) break;
            buffers.src.emplace_back(tensor(problem.batch * elements(shape), type));
            buffers.diff_src.push_back(tensor(problem.batch * elements(shape), type));
        }
        const std::int64_t outputs = problem.batch * elements(output_shape(problem.op));
        buffers.dst = tensor(outputs, type);
        buffers.dst_in = tensor(outputs, type);
        buffers.diff_dst = tensor(outputs, type);
        buffers.workspace = tensor(workspace, DataType::f32);
        buffers.loss_batch = problem.batch;
        if (const auto* loss = std::get_if<SoftmaxLoss>(&problem.op)) {
            buffers.labels = integers(problem.batch * loss->rows * elements(loss->image), loss->classes);
        }
        if (const auto* terms = std::get_if<SoftmaxTerms>(&problem.op)) {
            buffers.labels = integers(problem.batch * terms->rows, own_classes(*terms));
        }
    }
    kernels::Buffers buffers;

private:
    // Positive where a second moment is; weights hardly move, however long it is timed.
    void add_moments(const Problem& problem, std::int64_t weights) {
        buffers.momentum = tensor(weights, problem.type);
        buffers.learning_rate = 1e-6F;
        buffers.momentum_factor = 0.9F;
        if (!std::holds_alternative<AdamUpdate>(problem.op) && !std::holds_alternative<LambUpdate>(problem.op)) return;
        buffers.second_moment = tensor(weights, problem.type, 0);
        if (const auto* lamb = std::get_if<LambUpdate>(&problem.op)) {
            sizes_.assign(static_cast<std::size_t>(lamb->tensors), lamb->count / lamb->tensors);
            sizes_.back() += lamb->count % lamb->tensors;
            buffers.tensor_sizes = sizes_;
        }
    }
    View tensor(std::int64_t count, DataType type, float least = -1) {
        if (count == 0) return {};
        const auto size = static_cast<std::size_t>(count);
        const View made{allocate(size * static_cast<std::size_t>(size_of(type).value)), size, type};
        fill(device_, made, least, memory_.size());
        return made;
    }
    std::byte* allocate(std::size_t bytes) {
        memory_.push_back(with_host_ ? device_.allocate(bytes) : device_.allocate_own(bytes));
        return memory_.back().get();
    }
    std::span<std::int32_t> integers(std::int64_t count, std::int64_t below) {
        std::vector<std::int32_t> here(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < here.size(); ++i)
            here[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) % below);
        const std::size_t bytes = here.size() * sizeof(std::int32_t);
        const std::span made{reinterpret_cast<std::int32_t*>(allocate(bytes)), here.size()};
        device_.copy_beside(made.data(), here.data(), bytes);
        return made;
    }

    Device& device_;
    bool with_host_;
    std::vector<Device::Memory> memory_;
    std::vector<std::int64_t> sizes_;
};

Rotation::Rotation(Device& device, const Problem& problem, std::int64_t workspace, const DeviceOptions& options)
    : device_(device), problem_(problem) {
    require_present(device);
    const double bytes = bytes_moved(problem.op, problem.pass, problem.type, problem.batch).value;
    const auto count = static_cast<int>(std::clamp(options.rotating.value / std::max(bytes, 1.0) + 1, 2.0, 64.0));
    count_ = count, workspace_ = workspace;
}

// Made when they are first needed: those of the device alone, or those for what the host computes for it.
const std::vector<std::unique_ptr<Rotation::Set>>& Rotation::sets(bool with_host) {
    auto& sets = with_host ? shared_sets_ : sets_;
    while (static_cast<int>(sets.size()) < count_) {
        sets.push_back(std::make_unique<Set>(device_, problem_, workspace_, with_host));
    }
    return sets;
}

Rotation::~Rotation() = default;

calibrate::Sample Rotation::time(const kernels::Backend& backend, const DeviceOptions& options) {
    const Problem& problem = problem_;
    const auto workspace = static_cast<std::size_t>(backend.workspace(problem.op, problem.batch));
    const auto kernel = backend.prepare_within(problem, options.scratch_limit);
    const bool backward = problem.pass == Pass::backward_data || problem.pass == Pass::backward_weights;
    std::vector<kernels::Buffers> buffers;
    for (const auto& set : sets(!device_.owns(backend))) {
        buffers.push_back(set->buffers);
        buffers.back().workspace = buffers.back().workspace.first(workspace);
        // What forward keeps is what backward finds.
        if (!backward || workspace == 0) continue;
        const auto forward =
            backend.prepare_within({problem.op, Pass::forward, problem.batch, problem.type}, options.scratch_limit);
        forward->run(buffers.back());
    }
    // What memory of both holds comes to the device now, not in the rounds of whoever is timed first.
    for (const kernels::Buffers& set : buffers) kernel->run(set);
    device_.finish();
    std::size_t next = 0;
    const std::vector<double> seconds =
        time_rounds(device_, options, [&] { kernel->run(buffers[next++ % buffers.size()]); });
    const double median = calibrate::median(seconds);
    return {problem,
            std::string{backend.name()},
            std::string{backend.algorithm()},
            Seconds{median},
            calibrate::robust_deviation(seconds) / median,
            static_cast<std::int64_t>(seconds.size())};
}

calibrate::Sample time_on(Device& device, const Problem& problem, const kernels::Backend& backend,
                          const DeviceOptions& options) {
    return Rotation{device, problem, backend.workspace(problem.op, problem.batch), options}.time(backend, options);
}

calibrate::Figure<FlopRate> measure_peak(Device& device, DataType type, const DeviceOptions& options) {
    const Op op = MatMul{options.square, options.square, options.square, false};
    kernels::KernelSelection selection{options.backend, options.algorithm, options.scratch_limit};
    selection.device = &device;
    const kernels::PassChoices choices = kernels::choose_passes(op, 1, type, selection);
    const Problem problem{op, Pass::forward, 1, type};
    const calibrate::Sample sample = time_on(device, problem, *of(choices, Pass::forward).backend, options);
    return {flops(op, Pass::forward, 1) / sample.median, sample.error, sample.count};
}

std::optional<calibrate::Figure<FlopRate>> measure_fp8_peak(Device& device, const DeviceOptions& options) {
    const auto product = [&](std::int64_t rows) {
        return Problem{MatMul{rows, rows, rows, false}, Pass::forward, 1, DataType::f16};
    };
    const auto all = device.backends();
    const auto found = std::ranges::find_if(all, [&](const kernels::Backend* backend) {
        return device.owns(*backend) && backend->algorithm() == "fp8-fast" &&
               supports_within(*backend, product(options.square), options.scratch_limit).yes;
    });
    if (found == all.end()) return std::nullopt;
    const calibrate::Sample one = time_on(device, product(options.square), **found, options);
    const calibrate::Sample twice = time_on(device, product(2 * options.square), **found, options);
    // a + b = one, 4 a + 8 b = twice.
    const Seconds alone = (twice.median - one.median * 4) / 4;
    const Flops work = flops(product(options.square).op, Pass::forward, 1);
    if (alone.value <= 0) return calibrate::Figure<FlopRate>{work * 8 / twice.median, twice.error, twice.count};
    const double spread = std::hypot(twice.error * twice.median.value, 4 * one.error * one.median.value);
    return calibrate::Figure<FlopRate>{work / alone, spread / 4 / alone.value, std::min(one.count, twice.count)};
}

calibrate::HostFigures measure_figures(Device& device, const DeviceOptions& options) {
    require_present(device);
    calibrate::HostFigures figures;
    figures.peak = measure_peak(device, DataType::f32, options);
    const auto count = static_cast<std::size_t>(options.copied.value / sizeof(float));
    const Device::Memory from = device.allocate_own(count * sizeof(float));
    const Device::Memory to = device.allocate_own(count * sizeof(float));
    const View source{from.get(), count, DataType::f32}, target{to.get(), count, DataType::f32};
    fill(device, source, -1);
    figures.memory_bandwidth =
        rate<Bandwidth>(2 * options.copied.value, time_rounds(device, options, [&] { device.copy(source, target); }));
    const std::vector<double> launches =
        time_rounds(device, options, [&] { device.copy(source.first(1), target.first(1)); });
    const double launch = calibrate::median(launches);
    figures.launch = {Seconds{launch}, calibrate::robust_deviation(launches) / launch,
                      static_cast<std::int64_t>(launches.size())};
    return figures;
}

calibrate::Figure<Bandwidth> measure_host_link(Device& device, const DeviceOptions& options) {
    require_present(device);
    using Clock = std::chrono::steady_clock;
    const auto bytes = static_cast<std::size_t>(options.copied.value / 8);
    const Device::Memory there = device.allocate_own(bytes), here = device.allocate_staging(bytes);
    std::vector<double> seconds;
    for (int round = 0; round <= options.rounds; ++round) {
        const auto begin = Clock::now();
        device.copy_beside(here.get(), there.get(), bytes);
        if (round > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return rate<Bandwidth>(static_cast<double>(bytes), seconds);
}

std::vector<calibrate::Sample> measure(Device& device, const std::vector<calibrate::Needed>& needed,
                                       const DeviceOptions& options) {
    require_present(device);
    kernels::KernelSelection selection{options.backend, options.algorithm, options.scratch_limit};
    selection.device = &device;
    std::vector<calibrate::Sample> samples;
    for (const auto& [problem, footprint] : needed) {
        const kernels::PassChoices choices = kernels::choose_passes(problem.op, problem.batch, problem.type, selection);
        samples.push_back(time_on(device, problem, *of(choices, problem.pass).backend, options));
    }
    return samples;
}

}  // namespace rehearse::bench
