// SPDX-License-Identifier: Apache-2.0
// bench files: samples read from the drive below a folder, as one predicts it from other reads of the same drive.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "bench/files.hpp"
#include "cli/bench.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "run/checkpoint/files.hpp"
#include "run/data/sample_volumes.hpp"

namespace rehearse::cli {

namespace {

constexpr std::int64_t mib = 1024 * 1024;

// What is predicted from the drive's figures, and how it is read.
struct Form {
    std::string name;
    ReadPattern pattern;
    bench::ColdCase cold;
};

Form of_files(std::string name, const bench::SampleFiles& files) {
    const ReadPattern pattern{.sample = Bytes{static_cast<double>(files.sample)},
                              .files = files.a_file == 1 ? 1.0 : 0.0};
    return {std::move(name), pattern, {files.paths, [files](int round) {
                                           return bench::read_cold(files, static_cast<std::uint64_t>(round) + 100);
                                       }}};
}

// Whole samples of an HDF5 file, or the upper half of each: what one of two ranks reads of volumes that both share.
// Half a volume lies in a stretch for each of four channels.
Form of_volumes(const std::filesystem::path& folder, bool halves) {
    const Shape sample{4, 64, 64, 64};  // 4 MiB of f32
    constexpr std::int64_t count = 12;
    const std::filesystem::path path = folder / (halves ? "halves.h5" : "volumes.h5");
    run::write_volumes(path, sample, count);
    const Shape size = halves ? Shape{4, 32, 64, 64} : sample;
    const Bytes bytes{4.0 * static_cast<double>(elements(size))};
    const auto read = [=](int round) {
        std::vector<float> to(static_cast<std::size_t>(elements(size)));
        std::vector<std::int32_t> label(1);
        const run::LabelledFile file = run::open_h5(path, sample, SoftmaxLoss{.classes = 10}, -1);
        std::vector<std::int64_t> order(count);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::shuffle(order, std::mt19937_64{static_cast<std::uint64_t>(round)});
        const auto start = std::chrono::steady_clock::now();
        for (const std::int64_t place : order) {
            if (halves) {
                file.read_block(place, {{0, 0, 0, 0}, size}, to, label);
            } else {
                file.read(place, to, label);
            }
        }
        return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count};
    };
    return {halves ? "HDF5, half of each volume" : "HDF5, whole volumes",
            {.sample = bytes, .files = 0, .request = halves ? bytes / 4.0 : bytes},
            {{path}, read}};
}

Json row_of(const Form& form, const FileSystem& drive, Seconds measured) {
    const ReadPattern& pattern = form.pattern;
    const Seconds predicted = reading_time(drive, pattern, 1);
    return {{"form", form.name},
            {"sample_bytes", pattern.sample.value},
            {"requests", pattern.request > Bytes{} ? std::ceil(pattern.sample / pattern.request) : 1.0},
            {"predicted_s", predicted.value},
            {"measured_s", measured.value},
            {"error", predicted / measured - 1}};
}

}  // namespace

int bench_files(const BenchOptions& options) {
    if (options.arguments.size() != 1 || !options.suite.empty())
        throw InputError("bench files FOLDER: the folder on the drive that is measured, and nothing else");
    if (!options.out.empty()) throw InputError("--out: not of bench files; --format json gives its rows");
    const bench::ScratchFolder folder{options.arguments.front()};
    const std::vector<Form> forms{
        of_files("a file a sample, 110 kB", bench::write_samples(folder.path(), "images", 256, 110'000, 1)),
        of_files("a file a sample, 1 MiB", bench::write_samples(folder.path(), "maps", 48, mib, 1)),
        of_files("tar of samples, 600 kB", bench::write_samples(folder.path(), "shard", 96, 600'000, 96, 512)),
        of_volumes(folder.path(), false), of_volumes(folder.path(), true)};
    std::vector<bench::ColdCase> cases = bench::drive_cases(folder.path());
    const std::size_t first = cases.size();
    for (const Form& form : forms) cases.push_back(form.cold);
    const std::vector<Seconds> medians = bench::cold_medians(cases, options.rounds);
    const FileSystem drive = bench::drive_of(medians);
    Report report{document("bench-files", {{"folder", options.arguments.front()}, {"rounds", options.rounds}}), {}, ""};
    report.document["drive"] = {{"operation_s", drive.operation.value.value},
                                {"request_s", drive.request.value.value},
                                {"stream_bytes_per_s", drive.stream.value.value}};
    Json& rows = report.document["rows"] = Json::array();
    for (std::size_t f = 0; f < forms.size(); ++f) rows.push_back(row_of(forms[f], drive, medians[first + f]));
    report.tables = {{"rows",
                      "",
                      {{"form", "samples"},
                       {"sample_bytes", "bytes", Show::bytes},
                       {"requests", "reads", Show::count},
                       {"predicted_s", "predicted", Show::seconds},
                       {"measured_s", "measured", Show::seconds},
                       {"error", "error", Show::percent}}}};
    report.footer = fmt::format(
        "the drive: {} a file opened and closed, {} a read, {} (from files of 16 KiB, reads of 64 KiB and of 4 MiB);\n"
        "medians of {} rounds, nothing in the page cache (posix_fadvise); names of files stay cached",
        to_string(drive.operation.value), to_string(drive.request.value), to_string(drive.stream.value),
        options.rounds);
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
