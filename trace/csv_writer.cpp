// SPDX-License-Identifier: Apache-2.0
// One row an event, quoted as in RFC 4180; counters have no place in it.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/quoting.hpp"
#include "trace/formats.hpp"
#include "trace/layout.hpp"

namespace rehearse::trace {

void write_csv(std::span<const Timeline> timelines, OutputFile& out) {
    const std::vector<std::string> labels = labels_of(timelines);
    out.append(
        "timeline,title,iteration,rank,stream,step,layer,pass,micro_batch,start_ns,duration_ns,bytes,flop,flow\n");
    for (std::size_t i = 0; i < timelines.size(); ++i) {
        const std::string head = fmt::format("{},{}", labels[i], csv_field(timelines[i].title));
        for (const Event& e : timelines[i].events) {
            const std::int64_t start = to_ns(e.start);
            out.append(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", head, e.iteration, e.rank,
                                   to_string(e.stream), csv_field(e.step), csv_field(e.layer), csv_field(e.pass),
                                   e.micro_batch, start, to_ns(e.end) - start, e.bytes.value, e.flops.value, e.flow));
        }
    }
}

void write_links_csv(std::span<const Timeline> timelines, OutputFile& out) {
    const std::vector<std::string> labels = labels_of(timelines);
    out.append("timeline,title,link,kind,links,capacity_bytes_per_s,bytes,most_bytes,utilisation\n");
    for (std::size_t i = 0; i < timelines.size(); ++i) {
        const Seconds whole = length(timelines[i]);
        for (const LinkUse& use : timelines[i].links) {
            out.append(fmt::format("{},{},{},{},{},{},{},{},{:.6g}\n", labels[i], csv_field(timelines[i].title),
                                   csv_field(use.name), csv_field(use.kind), use.links, use.capacity.value,
                                   use.bytes.value, use.most.value, utilisation(use, whole)));
        }
    }
}

}  // namespace rehearse::trace
