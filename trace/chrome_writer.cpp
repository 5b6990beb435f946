// SPDX-License-Identifier: Apache-2.0
// One event a line; metadata events of our own ("rehearse_...") carry what the format has no place for, and viewers
// pass over them.
#include <cmath>
#include <string>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "trace/formats.hpp"
#include "trace/layout.hpp"

namespace rehearse::trace {

namespace {

// JSON strings, each text quoted once. Bytes that are not UTF-8 become U+FFFD.
class Quoted {
public:
    const std::string& operator()(const std::string& text) {
        const auto [entry, is_new] = quoted_.try_emplace(text);
        if (is_new) {
            entry->second = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        }
        return entry->second;
    }

private:
    std::unordered_map<std::string, std::string> quoted_;
};

class ChromeWriter {
public:
    ChromeWriter(std::span<const Timeline> timelines, OutputFile& out)
        : labels_(labels_of(timelines)), shift_(shift_of(timelines)), out_(out) {}

    void head() {
        out_.append(fmt::format(
            R"({{"displayTimeUnit":"ns","otherData":{{"schema":"{}","shift_ns":{}}},"traceEvents":[)", schema, shift_));
    }

    void add(std::size_t number, const Timeline& timeline) {
        const Layout layout = lay_out(timeline);
        line(fmt::format(R"("ph":"M","pid":{},"name":"rehearse_timeline","args":{{"timeline":{},"title":{},)"
                         R"("measured":{},"ranks":{}}})",
                         process_ + 1, number, quoted_(timeline.title), timeline.measured, timeline.ranks));
        const std::vector<std::string> places = add_tracks(number, layout);
        for (const std::size_t i : layout.order) add_slice(timeline.events[i], places[layout.lane_of[i]]);
        add_arrows(number, timeline, layout, places);
        if (!timeline.counters.empty() || !timeline.links.empty()) add_process(number, "counters");
        for (std::size_t i = 0; i < timeline.counters.size(); ++i) add_counter(i, timeline.counters[i]);
        for (const LinkUse& use : timeline.links) add_link(use);
    }

    void tail() { out_.append("\n]}"); }

private:
    void line(std::string_view fields) {
        out_.append(is_first_ ? "\n{" : ",\n{");
        out_.append(fields);
        out_.append("}");
        is_first_ = false;
    }

    std::string micros(std::int64_t ns) const { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

    void add_process(std::size_t number, const std::string& what) {
        ++process_;
        line(fmt::format(R"("ph":"M","pid":{},"name":"process_name","args":{{"name":{},"timeline":{}}})", process_,
                         quoted_(process_name(labels_, number, what)), number));
        line(fmt::format(R"("ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}})", process_,
                         process_));
    }

    // "pid":1,"tid":2 of all lanes, in their order.
    std::vector<std::string> add_tracks(std::size_t number, const Layout& layout) {
        std::vector<std::string> places;
        std::size_t next = 0;
        for (const RankIndex rank : layout.ranks) {
            add_process(number, fmt::format("rank {}", rank));
            for (int thread = 1; next < layout.lanes.size() && layout.lanes[next].rank == rank; ++next, ++thread) {
                const Lane& lane = layout.lanes[next];
                const std::string lane_number = lane.number == 0 ? "" : fmt::format(" {}", lane.number + 1);
                places.push_back(fmt::format(R"("pid":{},"tid":{})", process_, thread));
                line(fmt::format(R"("ph":"M",{},"name":"thread_name","args":{{"name":"{}{}"}})", places.back(),
                                 to_string(lane.stream), lane_number));
            }
        }
        return places;
    }

    void add_slice(const Event& event, const std::string& place) {
        require(std::isfinite(event.bytes.value) && std::isfinite(event.flops.value),
                "bytes and flops of an event are finite");
        const std::int64_t start = to_ns(event.start);
        std::string args = fmt::format(R"("rank":{})", event.rank);
        if (!event.layer.empty()) args += fmt::format(R"(,"layer":{})", quoted_(event.layer));
        if (!event.pass.empty()) args += fmt::format(R"(,"pass":{})", quoted_(event.pass));
        args += fmt::format(R"(,"micro_batch":{},"iteration":{})", event.micro_batch, event.iteration);
        if (event.bytes.value != 0) args += fmt::format(R"(,"bytes":{})", event.bytes.value);
        if (event.flops.value != 0) args += fmt::format(R"(,"flops":{})", event.flops.value);
        if (event.flow != 0) args += fmt::format(R"(,"flow":{})", event.flow);
        line(fmt::format(R"("ph":"X",{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{{}}})", place,
                         micros(start + shift_), micros(to_ns(event.end) - start), quoted_(event.step),
                         to_string(event.stream), args));
    }

    // From slice to slice of one flow, in the order of their starts: s, t ..., f.
    void add_arrows(std::size_t number, const Timeline& timeline, const Layout& layout,
                    const std::vector<std::string>& places) {
        std::unordered_map<std::int64_t, std::pair<std::int64_t, std::int64_t>> ends;  // events of a flow, written ones
        for (const Event& event : timeline.events) ++ends[event.flow].first;
        for (const std::size_t i : layout.order) {
            const Event& event = timeline.events[i];
            auto& [count, written] = ends[event.flow];
            if (event.flow == 0 || count == 1) continue;
            ++written;
            const char* phase = written == 1 ? "s" : written < count ? "t" : R"(f","bp":"e)";
            line(fmt::format(R"("ph":"{}",{},"ts":{},"id":"{}.{}","cat":"flow","name":"flow")", phase,
                             places[layout.lane_of[i]], micros(to_ns(event.start) + shift_), number, event.flow));
        }
    }

    void add_link(const LinkUse& use) {
        line(fmt::format(R"("ph":"M","pid":{},"name":"rehearse_link","args":{{"name":{},"kind":{},"links":{},)"
                         R"("capacity":{},"bytes":{},"most":{}}})",
                         process_, quoted_(use.name), quoted_(use.kind), use.links, use.capacity.value, use.bytes.value,
                         use.most.value));
    }

    // Our "counter" number tells counters of one name apart; viewers go by pid and name.
    void add_counter(std::size_t number, const Counter& counter) {
        line(fmt::format(R"("ph":"M","pid":{},"name":"rehearse_counter","args":{{"name":{},"unit":{}}})", process_,
                         quoted_(counter.name), quoted_(counter.unit)));
        const std::string head =
            fmt::format(R"("ph":"C","pid":{},"counter":{},"name":{})", process_, number, quoted_(counter.name));
        for (const auto& [time, value] : counter.points) {
            require(std::isfinite(value), "a counter's values are finite");
            line(fmt::format(R"({},"ts":{},"args":{{"value":{}}})", head, micros(to_ns(time) + shift_), value));
        }
    }

    std::vector<std::string> labels_;
    std::int64_t shift_;
    OutputFile& out_;
    Quoted quoted_;
    std::int64_t process_ = 0;
    bool is_first_ = true;
};

}  // namespace

void write_chrome(std::span<const Timeline> timelines, OutputFile& out) {
    ChromeWriter writer(timelines, out);
    writer.head();
    for (std::size_t i = 0; i < timelines.size(); ++i) writer.add(i, timelines[i]);
    writer.tail();
}

}  // namespace rehearse::trace
