// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format read by hand: https://protobuf.dev/programming-guides/encoding; fields as in perfetto.proto.
#include "trace/perfetto_scan.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/layout.hpp"

namespace rehearse::trace {

namespace {

struct Irregular {};  // left to the reader that can say what is wrong

class Mapped {
public:
    explicit Mapped(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        struct stat status {};
        if (file_ < 0 || fstat(file_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
            throw Irregular{};
        size_ = static_cast<std::size_t>(status.st_size);
        data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_, 0);
        if (data_ == MAP_FAILED) throw Irregular{};
        madvise(data_, size_, MADV_SEQUENTIAL);
    }
    ~Mapped() {
        if (data_ != MAP_FAILED && data_ != nullptr) munmap(data_, size_);
        if (file_ >= 0) close(file_);
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;
    std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

private:
    int file_;
    void* data_ = nullptr;
    std::size_t size_ = 0;
};

struct Field {
    std::uint32_t number = 0;
    std::uint64_t value = 0;  // of varint and fixed
    std::string_view bytes;   // of a length
};

std::uint64_t varint(std::string_view& in) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
        const auto byte = static_cast<std::uint8_t>(in.front());
        in.remove_prefix(1);
        value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
        if (byte < 0x80) return value;
    }
    throw Irregular{};
}

Field next(std::string_view& in) {
    const std::uint64_t tag = varint(in);
    Field field{static_cast<std::uint32_t>(tag >> 3U), 0, {}};
    const unsigned kind = tag & 7U;
    const auto take = [&](std::size_t length) {
        if (length > in.size()) throw Irregular{};
        const std::string_view bytes = in.substr(0, length);
        in.remove_prefix(length);
        return bytes;
    };
    if (kind == 0) {
        field.value = varint(in);
    } else if (kind == 1) {
        std::memcpy(&field.value, take(8).data(), 8);
    } else if (kind == 2) {
        field.bytes = take(varint(in));
    } else if (kind == 5) {
        take(4);
    } else {
        throw Irregular{};
    }
    return field;
}

std::string_view text_field(std::string_view message, std::uint32_t number) {
    while (!message.empty()) {
        if (const Field field = next(message); field.number == number) return field.bytes;
    }
    return {};
}

// What a slice says besides when: equal bytes of name, category and annotations say the same, so each text of bytes is
// decoded once. Rank and iteration, which differ between equal kinds, are read every time.
class Scanner {
public:
    Scanner(std::string_view file, const ScanVisitor& visitor) : file_(file), visitor_(visitor) {}

    void scan() {
        std::string_view left = file_;
        std::int64_t packets = 0;
        while (!left.empty()) {
            const Field packet = next(left);
            if (packet.number != 1) throw Irregular{};
            take(packet.bytes);
            if (++packets % 1048576 == 0 && visitor_.progress) {
                const double done = 1 - static_cast<double>(left.size()) / static_cast<double>(file_.size());
                if (!visitor_.progress(done)) throw Irregular{};
            }
        }
        if (!has_head_ || packets != packets_) throw Irregular{};
        for (const bool open : is_open_) {
            if (open) throw Irregular{};
        }
        for (Counter& counter : counters_) visitor_.counter(std::move(counter));
    }

private:
    struct Annotation {
        std::uint64_t key = 0, text = 0;
        std::int64_t whole = 0;
        double real = 0;
        bool is_real = false;
        std::string_view name, string;
    };

    static Annotation annotation_of(std::string_view bytes) {
        Annotation a;
        while (!bytes.empty()) {
            const Field field = next(bytes);
            if (field.number == 1) a.key = field.value;
            if (field.number == 2 || field.number == 4) a.whole = static_cast<std::int64_t>(field.value);
            if (field.number == 5) a.real = std::bit_cast<double>(field.value), a.is_real = true;
            if (field.number == 6) a.string = field.bytes;
            if (field.number == 10) a.name = field.bytes;
            if (field.number == 17) a.text = field.value;
        }
        return a;
    }

    void take(std::string_view packet) {
        std::uint64_t timestamp = 0;
        std::string_view event;
        while (!packet.empty()) {
            const Field field = next(packet);
            if (field.number == 8) timestamp = field.value;
            if (field.number == 10 && field.value != 1) throw Irregular{};  // a second timeline
            if (field.number == 11) event = field.bytes;
            if (field.number == 12) intern(field.bytes);
            if (field.number == 60) describe(field.bytes);
        }
        if (!event.empty()) take_event(static_cast<std::int64_t>(timestamp), event);
    }

    void intern(std::string_view data) {
        while (!data.empty()) {
            const Field field = next(data);
            std::vector<std::string>* table = field.number == 1    ? &categories_
                                              : field.number == 2  ? &names_
                                              : field.number == 3  ? &keys_
                                              : field.number == 29 ? &texts_
                                                                   : nullptr;
            if (table != nullptr) table->emplace_back(text_field(field.bytes, 2));
            if (table == &keys_ && keys_.back() == "rank") rank_key_ = keys_.size();
            if (table == &keys_ && keys_.back() == "iteration") iteration_key_ = keys_.size();
        }
    }

    void describe(std::string_view track) {
        std::uint64_t uuid = 0;
        std::string_view name, counter;
        bool counts = false;
        while (!track.empty()) {
            const Field field = next(track);
            if (field.number == 1) uuid = field.value;
            if (field.number == 2) name = field.bytes;
            if (field.number == 8) counter = field.bytes, counts = true;
        }
        if (uuid == 0 || uuid > 4'000'000) throw Irregular{};
        if (starts_.size() <= uuid) starts_.resize(uuid + 1), is_open_.resize(uuid + 1);
        if (!counts) return;
        counter_of_[uuid] = counters_.size();
        Counter& made = counters_.emplace_back();
        made.name = name;
        made.unit = text_field(counter, 6);
        while (!counter.empty()) {
            if (const Field field = next(counter); field.number == 3 && field.value == 3) made.unit = "bytes";
        }
    }

    void take_event(std::int64_t timestamp, std::string_view event) {
        const std::string_view whole = event;
        std::uint64_t type = 0, track = 0, name = 0, category = 0;
        double value = 0;
        std::string_view text;
        kind_.clear();
        ScannedEvent found;
        while (!event.empty()) {
            const Field field = next(event);
            switch (field.number) {
                case 3:
                    category = field.value;
                    break;
                case 4:
                    note(field.bytes, found);
                    break;
                case 9:
                    type = field.value;
                    break;
                case 10:
                    name = field.value;
                    break;
                case 11:
                    track = field.value;
                    break;
                case 23:
                    text = field.bytes;
                    break;
                case 44:
                    value = std::bit_cast<double>(field.value);
                    break;
                default:
                    break;
            }
        }
        if (type == 3 && text == schema) return take_head(whole);
        if (!has_head_ || track >= starts_.size()) throw Irregular{};
        const std::int64_t time = timestamp - shift_;
        if (type == 1) begin(found, time, track, name, category);
        if (type == 2) end(time, track);
        if (type == 4) counters_[counter_of_.at(track)].points.emplace_back(from_ns(time), value);
    }

    // Rank and iteration are each event's own; the rest of the annotations belongs to its kind.
    void note(std::string_view annotation, ScannedEvent& event) {
        std::string_view rest = annotation;
        const Field key = next(rest);
        if (key.number == 1 && (key.value == rank_key_ || key.value == iteration_key_)) {
            const Field number = next(rest);
            if (number.number != 4) throw Irregular{};
            if (key.value == rank_key_) event.rank = static_cast<std::int64_t>(number.value);
            if (key.value == iteration_key_) event.iteration = static_cast<int>(number.value);
            return;
        }
        if (annotation.size() > 127) throw Irregular{};
        kind_.push_back(static_cast<char>(annotation.size()));  // apart from each other; lengths are below 128
        kind_.append(annotation);
    }

    void begin(ScannedEvent& event, std::int64_t time, std::uint64_t track, std::uint64_t name,
               std::uint64_t category) {
        if (is_open_[track]) throw Irregular{};
        kind_.append(reinterpret_cast<const char*>(&name), sizeof(name));
        kind_.push_back(static_cast<char>(category));
        auto known = what_of_.find(kind_);
        if (known == what_of_.end()) known = add_kind(name, category);
        event.track = track;
        event.start = time;
        event.what = known->second.number;
        event.stream = known->second.stream;
        starts_[track] = event;
        is_open_[track] = true;
    }

    void end(std::int64_t time, std::uint64_t track) {
        ScannedEvent& event = starts_[track];
        if (!is_open_[track] || time < event.start) throw Irregular{};
        event.end = time;
        is_open_[track] = false;
        visitor_.event(event);
    }

    struct Kind {
        std::uint32_t number = 0;
        Stream stream = Stream::compute;
    };
    using Kinds = std::unordered_map<std::string, Kind>;

    Kinds::iterator add_kind(std::uint64_t name, std::uint64_t category) {
        const auto stream = stream_named(text(categories_, category));
        if (!stream) throw Irregular{};
        Event event;
        event.stream = *stream;
        event.step = text(names_, name);
        std::string_view left(kind_.data(), kind_.size() - sizeof(name) - 1);
        while (!left.empty()) {
            const auto length = static_cast<std::size_t>(left.front());
            const Annotation a = annotation_of(left.substr(1, length));
            left.remove_prefix(1 + length);
            const std::string& key = text(keys_, a.key);
            const double number = a.is_real ? a.real : static_cast<double>(a.whole);
            if (key == "layer") event.layer = text(texts_, a.text);
            if (key == "pass") event.pass = text(texts_, a.text);
            if (key == "micro_batch") event.micro_batch = static_cast<int>(a.whole);
            if (key == "bytes") event.bytes = Bytes{number};
            if (key == "flops") event.flops = Flops{number};
        }
        visitor_.what(event);
        return what_of_.emplace(kind_, Kind{static_cast<std::uint32_t>(what_of_.size()), *stream}).first;
    }

    static const std::string& text(const std::vector<std::string>& table, std::uint64_t id) {
        if (id == 0 || id > table.size()) throw Irregular{};
        return table[id - 1];
    }

    void take_head(std::string_view event) {
        Timeline head;
        std::int64_t timelines = 0;
        while (!event.empty()) {
            const Field field = next(event);
            if (field.number != 4) continue;
            const Annotation a = annotation_of(field.bytes);
            if (a.name == "title") head.title = a.string;
            if (a.name == "measured") head.measured = a.whole != 0;
            if (a.name == "ranks") head.ranks = a.whole;
            if (a.name == "timelines") timelines = a.whole;
            if (a.name == "packets") packets_ = a.whole;
            if (a.name == "shift_ns") shift_ = a.whole;
        }
        if (has_head_ || timelines != 1) throw Irregular{};
        has_head_ = true;
        visitor_.head(head);
    }

    std::string_view file_;
    const ScanVisitor& visitor_;
    bool has_head_ = false;
    std::int64_t packets_ = 0, shift_ = 0;
    std::vector<std::string> names_, categories_, keys_, texts_;
    std::uint64_t rank_key_ = 0, iteration_key_ = 0;
    std::vector<ScannedEvent> starts_;  // by track
    std::vector<bool> is_open_;
    std::unordered_map<std::uint64_t, std::size_t> counter_of_;
    std::vector<Counter> counters_;
    std::string kind_;
    Kinds what_of_;
};

}  // namespace

bool scan_perfetto(const std::string& path, const ScanVisitor& visitor) {
    try {
        const Mapped file(path);
        Scanner(file.bytes(), visitor).scan();
        return true;
    } catch (const Irregular&) {
        return false;
    } catch (const std::out_of_range&) {
        return false;
    }
}

}  // namespace rehearse::trace
