// SPDX-License-Identifier: Apache-2.0
// How far prices are from measured kernels that they were not fitted on, and steps from published ones.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "calibrate/learn.hpp"
#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/validate_neusight.hpp"
#if REHEARSE_HAS_SIM
#include "cli/published_pictures.hpp"
#include "cli/validate_llm.hpp"
#include "cli/validate_megatron.hpp"
#include "cli/validate_nccl.hpp"
#include "cli/validate_published.hpp"
#endif
#include "cli/validation_report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "match/pattern.hpp"
#include "models/another_device.hpp"
#include "models/kernel_samples.hpp"
#include "models/price_models.hpp"

namespace rehearse::cli {

namespace {

using calibrate::Judged;
using calibrate::Leave;
using models::ShippedKernels;

std::string_view word_of(Leave leave) {
    if (leave == Leave::problem) return "problem";
    if (leave == Leave::device) return "device";
    return leave == Leave::shape ? "shape" : "family";
}

struct Options {
    Common common;
    std::string set = "deepbench";
    Leave leave = Leave::shape;
    std::string samples, filter, fail_over, learn, rules, plot, machine;
    bool rows = false;
    int pilots = 1;
};

JudgedRow row_of(const ShippedKernels& shipped, const Judged& judged) {
    const Problem& problem = judged.problem;
    const bool product = std::holds_alternative<MatMul>(problem.op);
    return {shipped.model,
            std::string{to_string(problem.type)},
            std::string{kind_of(problem.op)},
            product ? "all" : std::string{to_string(problem.pass)},
            judged,
            false,
            shipped.kernels.source};
}

Validation cross_validated(const Options& options, const Progress& progress) {
    Validation result;
    const std::vector<ShippedKernels> all = models::shipped_kernels();
    std::int64_t done = 0;
    for (const ShippedKernels& shipped : all) {
        if (!goes_on(progress, done++, std::ssize(all))) break;
        for (const Judged& judged : calibrate::cross_validate(shipped.kernels, options.leave)) {
            result.rows.push_back(row_of(shipped, judged));
        }
    }
    const char* unseen[] = {"the same kernel", "the same shape and batch, on any pass", "the same shape at any batch"};
    result.footer =
        fmt::format("each price from a model that has not seen {}", unseen[static_cast<int>(options.leave)]);
    return result;
}

// Each device as another one's kernels say by its data sheet.
Validation left_out(const Progress& progress) {
    Validation result;
    const std::vector<ShippedKernels> all = models::shipped_kernels();
    std::int64_t done = 0;
    for (const ShippedKernels& shipped : all) {
        if (!goes_on(progress, done++, std::ssize(all))) break;
        const std::shared_ptr<const PriceModel> model = models::by_another_device(shipped);
        if (model == nullptr) continue;
        for (const KernelSample& sample : shipped.kernels.samples) {
            const auto answer = model->answer(sample.problem);
            if (!answer) continue;  // recurrent layers of a V100 in f16: no other board's were measured
            result.rows.push_back(row_of(shipped, calibrate::judge(sample, answer->time, answer->error)));
        }
    }
    result.footer =
        "each GPU by its data sheet as if it were a V100 (a V100 as a P100, in f16 as a T4), as devices have it that "
        "nobody measured; processors are left out, of which there is one";
    return result;
}

// Steps of recurrent layers are products where only those were measured.
const ShippedKernels* shipped_for(const std::vector<ShippedKernels>& all, const models::SampleRow& sample) {
    const bool steps = std::holds_alternative<Recurrent>(sample.sample.problem.op);
    const auto fits = [&](const ShippedKernels& s) {
        return s.device == sample.device && s.precision == sample.precision && s.snapshot == sample.snapshot &&
               (s.kernels.kind == kind_of(sample.sample.problem.op) || (steps && s.kernels.kind == "matmul"));
    };
    const auto found = std::ranges::find_if(all, fits);
    return found == all.end() ? nullptr : &*found;
}

bool knows(const PriceModel& model, const Problem& problem) {
    const auto answer = model.answer(problem);
    return answer && answer->sampled;
}

// Prices the rows of a file with the shipped models.
Validation priced(const Options& options) {
    const std::vector<models::SampleRow> samples = models::read_samples(read_file(options.samples), options.samples);
    const std::vector<ShippedKernels> all = models::shipped_kernels();
    std::map<const ShippedKernels*, calibrate::KnownPrices> known;
    std::map<const ShippedKernels*, DeviceClass> devices;  // of recurrent layers
    Validation result;
    std::size_t fitted_on = 0;
    for (const models::SampleRow& sample : samples) {
        const ShippedKernels* shipped = sample.training ? shipped_for(all, sample) : nullptr;
        if (shipped == nullptr) {
            const std::string why = sample.training ? fmt::format("no price model of {} {} {}", sample.device,
                                                                  sample.precision, sample.snapshot)
                                                    : "a row of the inference sheets";
            ++result.reasons[why];
            result.skipped.push_back({{"id", to_string(sample.sample.problem)}, {"skipped", why}});
            continue;
        }
        if (std::holds_alternative<Recurrent>(sample.sample.problem.op)) {
            const auto [device, unseen] = devices.try_emplace(shipped);
            if (unseen) {
                device->second = models::device_of(*shipped);
                fitted_on += shipped->kernels.samples.size();
            }
            result.rows.push_back(
                row_of(*shipped, calibrate::judge_steps(sample.sample, sample.pass == "backward", device->second)));
            result.rows.back().pass = sample.pass;
            result.rows.back().fitted =
                knows(*device->second.model, sample.sample.problem) && sample.pass != "backward";
            continue;
        }
        const auto [entry, fresh] = known.try_emplace(shipped, shipped->kernels);
        if (fresh) fitted_on += shipped->kernels.samples.size();
        const std::vector<Judged> judged = calibrate::judge(entry->second.prices, {&sample.sample, 1});
        result.rows.push_back(row_of(*shipped, judged.at(0)));
        result.rows.back().fitted = entry->second.problems.contains(to_string(sample.sample.problem));
    }
    result.footer = fmt::format("models fitted on {} kernels of DeepBench; {} of these {} rows were among them",
                                fitted_on, std::ranges::count_if(result.rows, &JudgedRow::fitted), result.rows.size());
    for (const auto& [why, count] : result.reasons) result.footer += fmt::format("\n{} rows skipped: {}", count, why);
    return result;
}

void keep_matching(std::vector<JudgedRow>& rows, const Options& options) {
    if (options.filter.empty()) return;
    const match::Pattern pattern{options.filter, "--filter"};
    std::erase_if(rows, [&](const JudgedRow& row) { return !pattern.is_in(row.group()); });
}

Json configuration(const Options& options) {
    return {{"set", "deepbench"},
            {"samples", options.samples},
            {"leave", word_of(options.leave)},
            {"filter", options.filter}};
}

// Learns every family's covariance anew and writes the table that is built in.
int learn(const Options& options) {
    check_writable(options.learn, options.common);
    std::vector<ShippedKernels> shipped = models::shipped_kernels();
    std::vector<calibrate::FamilyMember> members;
    for (const ShippedKernels& s : shipped) members.push_back({s.family, s.teaches, s.kernels});
    calibrate::learn_all(members);
    for (std::size_t i = 0; i < shipped.size(); ++i) shipped[i].kernels = members[i].kernels;
    replace_file(options.learn, models::covariance_table(shipped));
    talk(options.common, fmt::format("learned anew: {}", options.learn));
    return good;
}

int verdict(const Options& options, double median, double allowed) {
    if (median <= allowed) return good;
    talk(options.common, fmt::format("median error {:.1f} % is over {:.1f} %", 100 * median, 100 * allowed));
    return check_failed;
}

int boards(const Options& options, double allowed) {
    if (options.leave == Leave::problem)
        throw InputError("--leave problem is of --set deepbench: boards have one pass");
    if (!options.learn.empty()) {
        check_writable(options.learn, options.common);
        learn_neusight(options.learn);
        talk(options.common, fmt::format("learned anew: {}", options.learn));
        return good;
    }
    const LongWork work{options.common};
    double median = 0;
    Report report = validate_neusight({options.samples, options.filter, std::string{word_of(options.leave)}},
                                      work.part("boards"), median);
    work.mark(report);
    print(report, options.common);
    return work.interrupted() ? work.exit_code(good) : verdict(options, median, allowed);
}

/// Of steps, not of kernels.
int simulated(const Options& options, [[maybe_unused]] double allowed) {
#if REHEARSE_HAS_SIM
    if (!options.plot.empty()) check_charts(options.plot, options.common.force);
    double median = 0;
    const LongWork work{options.common};
    const Progress progress = work.part("rows");
    const std::string file = options.set == "published" ? "" : options.set;
    Report report =
        options.set == "nccl"
            ? validate_nccl({options.samples, options.filter, options.rows}, work.part("machines"), median)
        : options.set == "llm" ? validate_llm({options.samples, options.filter, options.rows}, median)
        : options.set == "megatron"
            ? validate_megatron({options.samples, options.machine, options.filter}, progress, median)
            : validate_published({file, options.filter, options.rules, options.plot, options.rows, options.pilots},
                                 progress, median);
    work.mark(report);
    print(report, options.common);
    return work.interrupted() ? work.exit_code(good) : verdict(options, median, allowed);
#else
    throw BackendError("validate --set " + options.set + ": this build has no SimGrid (REHEARSE_SIM=ON)");
#endif
}

void check_set(const Options& options) {
    const std::string& set = options.set;
    const bool replays = set == "published" || set.ends_with(".csv");
    if (!replays && set != "deepbench" && set != "neusight" && set != "megatron" && set != "nccl" && set != "llm") {
        constexpr std::string_view sets[] = {"deepbench", "neusight", "published", "megatron", "nccl", "llm"};
        throw InputError(
            fmt::format("--set '{}': choose one of {}, or give a .csv file with the columns of published "
                        "figures{}",
                        set, join(sets), did_you_mean(set, sets)));
    }
    if (replays && !(options.samples.empty() && options.learn.empty())) {
        throw InputError(
            "--samples is of --set deepbench, neusight, megatron, nccl and llm, --learn of deepbench and neusight");
    }
    if (options.leave == Leave::device && (!options.samples.empty() || set != "deepbench") && set != "neusight")
        throw InputError("--leave device is of --set neusight, and of --set deepbench without --samples");
    if (options.pilots < 1 || options.pilots > 2) throw InputError(fmt::format("--pilots {}: 1 or 2", options.pilots));
    if (!replays && !options.rules.empty()) throw InputError("--rules is of --set published");
}

int validate(const Options& options) {
    check_set(options);
    const double allowed = share_or_infinity("--fail-over", options.fail_over);
    if (options.set == "neusight") return boards(options, allowed);
    if (options.set != "deepbench") return simulated(options, allowed);
    if (!options.learn.empty()) return learn(options);
    const LongWork work{options.common};
    Validation result = !options.samples.empty()         ? priced(options)
                        : options.leave == Leave::device ? left_out(work.part("kernels"))
                                                         : cross_validated(options, work.part("kernels"));
    keep_matching(result.rows, options);
    if (result.rows.empty() && !work.interrupted()) {
        std::string why;
        for (const auto& [reason, count] : result.reasons) why += fmt::format("; {} rows: {}", count, reason);
        throw InputError(options.filter.empty() ? fmt::format("{}: no row can be priced{}", options.samples, why)
                                                : fmt::format("--filter '{}' matches no row", options.filter));
    }
    Report report = report_of(result, configuration(options));
    work.mark(report);
    print(report, options.common);
    if (work.interrupted()) return work.exit_code(good);
    std::vector<Judged> cold = judged(result.rows, [](const JudgedRow& row) { return !row.fitted; });
    if (cold.empty()) cold = judged(result.rows, [](const JudgedRow&) { return true; });
    return verdict(options, calibrate::summarize(cold).median, allowed);
}

}  // namespace

Run add_validate(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option(
           "--set", options->set,
           "deepbench: prices of kernels, by cross-validation or of --samples; neusight: prices of convolutions, "
           "products and rows on boards, with the library's choice of algorithm; megatron: iteration times of "
           "transformers on "
           "A100s, vTrain's or of --samples; published: training runs and collectives that others measured; "
           "nccl: tables of NCCL's collectives; llm: time and memory of transformers by plan; or a file of published "
           "rows")
        ->option_text("deepbench|neusight|megatron|published|nccl|llm|FILE.csv")
        ->capture_default_str();
    app.add_option(
           "--samples", options->samples,
           "the rows of this file (columns of DeepBench's conv, gemm or rnn, of vTrain's tables, of NCCL's, or of "
           "calibrate/llm's)")
        ->option_text("FILE.csv");
    add_choice<Leave>(
        app, "--leave", options->leave,
        {{"shape", Leave::shape}, {"family", Leave::family}, {"problem", Leave::problem}, {"device", Leave::device}},
        "what cross-validation holds out together: all passes of a shape, of a shape at every batch (neusight: of a "
        "side of images), one kernel alone, or a device");
    app.add_option("--machine", options->machine, "of --set megatron; default: those that the tables are from")
        ->option_text("NAME|FILE.toml");
    app.add_option("--filter", options->filter, "only groups \"device type kind pass\", or published rows, that match")
        ->option_text("REGEX");
    app.add_option("--fail-over", options->fail_over, "exit 1 when the median error of unseen rows is larger")
        ->option_text("15%");
    app.add_option("--rules", options->rules, "more rules that map published rows to what is simulated")
        ->option_text("FILE.toml");
    app.add_option("--plot", options->plot, "charts of published rows and their predictions, as SVG in this folder")
        ->option_text("FOLDER");
    app.add_option("--pilots", options->pilots,
                   "that published rows are anchored on, from 1 (on one node) to 2 (what one on more nodes gains)")
        ->option_text("N")
        ->capture_default_str();
    app.add_flag("--rows", options->rows, "every published row with its predictions, not groups alone");
    app.add_option("--learn", options->learn, "learn the covariances anew and write them (a minute)")
        ->option_text("FILE.csv");
    add_common(app, options->common);
    return [options] { return validate(*options); };
}

}  // namespace rehearse::cli
