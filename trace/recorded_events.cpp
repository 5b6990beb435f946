// SPDX-License-Identifier: Apache-2.0
// Events of PyTorch's profiler: libkineto/src/output_json.cpp (github pytorch/kineto) writes the categories cpu_op,
// user_annotation, cuda_runtime, kernel, gpu_memcpy, gpu_memset, with "External id", "correlation", "Input Dims" and
// "Sequence number" as arguments; versions before 2022 write Operator, Runtime, Kernel, Memcpy. Where PyTorch is built
// without Kineto, torch/autograd/profiler_util.py writes a bare list without categories and arguments. All write
// complete events (phase X).
#include "trace/recorded_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "trace/chrome_sax.hpp"

namespace rehearse::trace {

namespace {

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
        if (text.find(word) != std::string_view::npos) return true;
    }
    return false;
}

enum class Category { host, runtime, kernel, copy, other };

Category category_of(std::string_view name) {
    if (name.empty() || name == "cpu_op" || name == "user_annotation" || name == "Operator") return Category::host;
    if (name == "kernel" || name == "Kernel") return Category::kernel;
    if (contains_any(name, {"memcpy", "Memcpy", "memset", "Memset"})) return Category::copy;
    if (contains_any(name, {"runtime", "Runtime", "_driver"})) return Category::runtime;
    return Category::other;
}

// Bytes of one element of a type as PyTorch and NCCL name it; 4 of those that are not known.
std::int64_t width_of(std::string_view type) {
    if (contains_any(type, {"Half", "half", "BFloat16", "bfloat16", "Short"})) return 2;
    if (contains_any(type, {"double", "Double", "long", "Long", "int64"})) return 8;
    if (contains_any(type, {"Byte", "Char", "Bool", "char", "bool", "Float8", "int8"})) return 1;
    return 4;
}

// Elements of all shapes in "[[4, 3], [8]]".
std::int64_t elements_in(std::string_view shapes) {
    std::int64_t sum = 0, product = 1, digits = 0;
    bool number = false, any = false;
    for (const char c : shapes) {
        if (c >= '0' && c <= '9') {
            digits = std::min<std::int64_t>(digits * 10 + (c - '0'), std::int64_t{1} << 40);
            number = true;
            continue;
        }
        if (number) {
            product =
                static_cast<std::int64_t>(std::min(static_cast<double>(product) * static_cast<double>(digits), 1e15));
            any = true;
        }
        number = false;
        digits = 0;
        if (c != ']') continue;
        if (any) sum += product;
        product = 1;
        any = false;
    }
    return sum;
}

class EventReader {
public:
    explicit EventReader(InputFile& file) : file_(file) {}

    RecordedEvents read() {
        visit_chrome(file_, {.head = [](const FlatObject&) {},
                             .element = [this](const ChromeElement& element) { take(element); },
                             .job = [this](const FlatObject& job) { take_job(job); }});
        return std::move(events_);
    }

private:
    [[noreturn]] void broken(std::string_view what) { file_.is_broken(file_.position(), what); }

    void take_job(const FlatObject& job) {
        events_.rank = job.whole("rank").value_or(0);
        events_.ranks = job.whole("world_size").value_or(1);
        if (events_.ranks < 1 || events_.rank < 0 || events_.rank >= events_.ranks) {
            broken(fmt::format("distributedInfo: rank {} of {}", events_.rank, events_.ranks));
        }
    }

    std::int64_t ns(const FlatObject& fields, std::string_view key) {
        const auto value = fields.real(key);
        if (!value) broken(fmt::format("\"{}\" of '{}' is no number", key, fields.text("name").value_or("")));
        if (!(std::abs(*value) < 9e15)) broken(fmt::format("\"{}\" is {} us", key, *value));
        return std::llround(*value * 1e3);
    }

    void take(const ChromeElement& element) {
        const auto phase = element.fields.text("ph");
        if (!phase || (*phase != "X" && *phase != "B")) return;
        const std::string_view cat = element.fields.text("cat").value_or("");
        const Category category = category_of(cat);
        if (category == Category::other) return;
        if (*phase == "B") broken("an event of phase B, which begins only: those that are complete (X) are read");
        if (cat == "cpu_op") require_one_process(element.fields);
        const std::int64_t start = ns(element.fields, "ts"), duration = ns(element.fields, "dur");
        const std::string_view name = element.fields.text("name").value_or("");
        const bool annotates = cat == "user_annotation";
        if (duration < 0) broken(fmt::format("\"dur\" of '{}' is negative: {} us", name, duration / 1e3));
        switch (category) {
            case Category::host:
                return take_host(element, name, annotates, start, start + duration);
            case Category::runtime:
                events_.launches.push_back({element.args.whole("correlation").value_or(0), start, thread(element)});
                return;
            default:
                return take_kernel(element, name, start, start + duration, category);
        }
    }

    // Workers that load samples and the tracks of kernels have processes of their own, but no operators.
    void require_one_process(const FlatObject& fields) {
        const auto process = fields.whole("pid");
        if (!process) return;
        if (!process_) process_ = process;
        if (*process != *process_) {
            broken(fmt::format("operators of process {} beside those of process {}, as of several ranks in one file",
                               *process, *process_));
        }
    }

    std::uint32_t thread(const ChromeElement& element) {
        if (const auto number = element.fields.whole("tid")) {
            if (number == last_tid_) return last_thread_;
            last_tid_ = number;
            return last_thread_ = events_.texts.number(fmt::format("{}", *number));
        }
        return events_.texts.number(element.fields.text("tid").value_or(""));
    }

    void take_host(const ChromeElement& element, std::string_view name, bool annotates, std::int64_t start,
                   std::int64_t end) {
        const FlatObject& args = element.args;
        const std::string_view shapes = args.text("Input Dims").value_or(args.text("Input dims").value_or(""));
        if (name.starts_with("gloo:") || name.starts_with("mpi:")) {
            const std::string_view type = args.text("Input type").value_or("");
            events_.collectives.push_back(
                {start, end, elements_in(shapes) * width_of(type), events_.texts.number(collective_named(name))});
            return;
        }
        const Role role = role_of(name, annotates);
        events_.host.push_back({start, end, args.whole("Sequence number").value_or(-1),
                                args.whole("External id").value_or(args.whole("external id").value_or(0)),
                                events_.texts.number(name), events_.texts.number(shapes), thread(element), role});
    }

    void take_kernel(const ChromeElement& element, std::string_view name, std::int64_t start, std::int64_t end,
                     Category category) {
        const FlatObject& args = element.args;
        Kernel kernel{.start = start,
                      .end = end,
                      .correlation = args.whole("correlation").value_or(0),
                      .external = args.whole("External id").value_or(args.whole("external id").value_or(0)),
                      .name = events_.texts.number(name)};
        if (category == Category::copy) {
            kernel.kind = Kernel::Kind::copy;
            kernel.bytes = args.whole("bytes").value_or(0);
        } else if (name.starts_with("nccl") || name.starts_with("rccl")) {
            kernel.kind = Kernel::Kind::collective;
            take_sizes(kernel, name, args);
        }
        events_.kernels.push_back(kernel);
    }

    // "In msg nelems" and its kin are written from PyTorch 2.2 on (ParamCommsUtils.hpp).
    void take_sizes(Kernel& kernel, std::string_view name, const FlatObject& args) {
        const std::string_view given = collective_named(args.text("Collective name").value_or(""));
        const std::string_view kind = given.empty() ? collective_named(name) : given;
        kernel.collective = events_.texts.number(kind);
        kernel.ranks = args.whole("Group size").value_or(0);
        kernel.members = events_.texts.number(args.text("Process Group Ranks").value_or(""));
        const std::int64_t in = args.whole("In msg nelems").value_or(0), out = args.whole("Out msg nelems").value_or(0);
        kernel.bytes = std::max(in, out) * width_of(args.text("dtype").value_or(""));
    }

    InputFile& file_;
    RecordedEvents events_;
    std::optional<std::int64_t> process_, last_tid_;
    std::uint32_t last_thread_ = 0;
};

}  // namespace

std::uint32_t Texts::number(std::string_view text) {
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) return found->second;
    texts_.emplace_back(text);
    const auto number = static_cast<std::uint32_t>(texts_.size() - 1);
    numbers_.emplace(texts_.back(), number);
    return number;
}

std::vector<std::string> Texts::taken() {
    numbers_.clear();
    return {std::make_move_iterator(texts_.begin()), std::make_move_iterator(texts_.end())};
}

Role role_of(std::string_view name, bool annotates) {
    if (name.starts_with("ProfilerStep")) return Role::marker;
    if (name.find("DataLoader") != std::string_view::npos) return Role::loader;
    if (name.starts_with("Optimizer.")) return Role::update;
    if (annotates || name.starts_with("FSDP::")) return Role::annotation;
    if (name.starts_with("autograd::engine::evaluate_function")) return Role::node;
    if (name.find("::") != std::string_view::npos && !name.starts_with("torch::autograd")) return Role::call;
    return Role::wrapper;
}

std::string_view collective_named(std::string_view name) {
    struct Spelling {
        std::string_view part, kind;
    };
    static constexpr std::array spellings{Spelling{"educe_scatter", "reduce_scatter"},
                                          Spelling{"educeScatter", "reduce_scatter"},
                                          Spelling{"ll_reduce", "all_reduce"},
                                          Spelling{"llReduce", "all_reduce"},
                                          Spelling{"llreduce", "all_reduce"},
                                          Spelling{"ll_gather", "all_gather"},
                                          Spelling{"llGather", "all_gather"},
                                          Spelling{"llgather", "all_gather"},
                                          Spelling{"ll_to_all", "all_to_all"},
                                          Spelling{"lltoall", "all_to_all"},
                                          Spelling{"llToAll", "all_to_all"},
                                          Spelling{"roadcast", "broadcast"},
                                          Spelling{"SendRecv", "send_recv"},
                                          Spelling{"send", "send_recv"},
                                          Spelling{"recv", "send_recv"}};
    for (const Spelling& spelling : spellings) {
        if (name.find(spelling.part) != std::string_view::npos) return spelling.kind;
    }
    return {};
}

std::vector<std::int64_t> ranks_in(std::string_view list) {
    std::vector<std::int64_t> ranks;
    bool number = false;
    for (const char c : list) {
        if (c == '.') return {};
        const bool digit = c >= '0' && c <= '9';
        if (digit && !number) ranks.push_back(0);
        if (digit) ranks.back() = std::min<std::int64_t>(ranks.back() * 10 + (c - '0'), std::int64_t{1} << 40);
        number = digit;
    }
    return ranks;
}

std::string_view direction_of(std::string_view name) {
    struct Spelling {
        std::string_view part, direction;
    };
    static constexpr std::array spellings{
        Spelling{"emset", "memset"},      Spelling{"HtoD", "HtoD"},         Spelling{"DtoH", "DtoH"},
        Spelling{"DtoD", "DtoD"},         Spelling{"HtoH", "HtoH"},         Spelling{"PtoP", "PtoP"},
        Spelling{"HostToDevice", "HtoD"}, Spelling{"DeviceToHost", "DtoH"}, Spelling{"DeviceToDevice", "DtoD"},
        Spelling{"HostToHost", "HtoH"},   Spelling{"PeerToPeer", "PtoP"},   Spelling{"FillBuffer", "memset"}};
    for (const Spelling& spelling : spellings) {
        if (name.find(spelling.part) != std::string_view::npos) return spelling.direction;
    }
    return "copy";
}

RecordedEvents read_events(InputFile& file) { return EventReader(file).read(); }

}  // namespace rehearse::trace
