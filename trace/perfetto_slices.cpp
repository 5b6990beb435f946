// SPDX-License-Identifier: Apache-2.0
// Fields as in perfetto.proto.
#include "trace/perfetto_slices.hpp"

#include <algorithm>
#include <cstring>

namespace rehearse::trace {

namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    return hash ^ (hash >> 32U);
}

// Eight bytes at a time: a kind is looked up for every event.
std::uint64_t hash_of(std::string_view bytes) {
    std::uint64_t hash = bytes.size(), word = 0;
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
        std::memcpy(&word, bytes.data(), 8);
        hash = mixed(hash, word);
    }
    word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return mixed(hash, word);
}

std::string_view text_of(std::string_view message) {
    while (!message.empty()) {
        if (const Field field = next(message); field.number == 2) return field.bytes;
    }
    return {};
}

}  // namespace

void OwnKeys::add(std::string_view name) {
    ++count;
    if (name == "rank") rank = count;
    if (name == "iteration") iteration = count;
    if (name == "flow") flow = count;
}

void SliceParser::parse(ParsedBlock& block, const OwnKeys& keys) {
    block.before = keys_ = keys;
    block.records.clear();
    block.packets = 0;
    block.parser = number_;
    block.irregular = false;
    try {
        for (std::string_view left = block.block.bytes(); const auto packet = next_packet(left);) {
            take(*packet, block);
            ++block.packets;
        }
    } catch (const Irregular&) {
        block.irregular = true;
    } catch (const std::exception&) {  // no memory: the reader says it
        block.irregular = true;
    }
    block.after = keys_;
}

void SliceParser::take(std::string_view packet, ParsedBlock& block) {
    SliceRecord record;
    std::string_view event, left = packet;
    bool other = false;
    while (!left.empty()) {
        const Field field = next(left);
        switch (field.number) {
            case 8:
                record.time = static_cast<std::int64_t>(field.value);
                break;
            case 10:
                if (field.value != 1) throw Irregular{};  // a second timeline
                break;
            case 11:
                event = field.bytes;
                break;
            case 12:
                other = true;
                for (std::string_view data = field.bytes; !data.empty();) {
                    if (const Field text = next(data); text.number == 3) keys_.add(text_of(text.bytes));
                }
                break;
            case 60:
                other = true;
                break;
            default:
                break;
        }
    }
    const bool slice = !event.empty() && take_event(event, record);
    if (other || (!event.empty() && !slice)) {
        SliceRecord& added = block.records.emplace_back();
        added.kind = SliceRecord::other;
        added.time = packet.data() - block.block.room.data();
        added.flow = static_cast<std::int64_t>(packet.size());
    }
    if (slice) block.records.push_back(record);
}

// False: not one that begins or ends.
bool SliceParser::take_event(std::string_view event, SliceRecord& record) {
    std::uint64_t type = 0, track = 0, name = 0, category = 0;
    bytes_.clear();
    const char* run = nullptr;  // where annotations of its kind that follow each other begin
    while (!event.empty()) {
        const char* const from = event.data();
        const Field field = next(event);
        if (field.number == 4 && !is_own(field.bytes, record)) {
            if (run == nullptr) run = from;
            continue;
        }
        if (run != nullptr) bytes_.append(run, from);
        run = nullptr;
        if (field.number == 3) category = field.value;
        if (field.number == 9) type = field.value;
        if (field.number == 10) name = field.value;
        if (field.number == 11) track = field.value;
    }
    if (type != 1 && type != 2) return false;
    if (track > 4'000'000) throw Irregular{};
    record.track = static_cast<std::uint32_t>(track);
    if (run != nullptr) bytes_.append(run, event.data());
    record.kind = type == 2 ? SliceRecord::ends : kind_of(name, category);
    return true;
}

bool SliceParser::is_own(std::string_view annotation, SliceRecord& record) const {
    const Field key = next(annotation);
    if (key.number != 1 || (key.value != keys_.rank && key.value != keys_.iteration && key.value != keys_.flow))
        return false;
    const Field number = next(annotation);
    if (number.number != 4) throw Irregular{};
    if (key.value == keys_.rank) record.rank = static_cast<std::int64_t>(number.value);
    if (key.value == keys_.iteration) record.iteration = static_cast<std::int32_t>(number.value);
    if (key.value == keys_.flow) record.flow = static_cast<std::int64_t>(number.value);
    return true;
}

std::uint32_t SliceParser::kind_of(std::uint64_t name, std::uint64_t category) {
    bytes_.append(reinterpret_cast<const char*>(&name), sizeof(name));
    bytes_.append(reinterpret_cast<const char*>(&category), sizeof(category));
    const std::uint64_t hash = hash_of(bytes_);
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = hash & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
        const std::uint32_t kind = slots_[slot] - 1;
        if (hashes_[kind] == hash && kinds_[kind] == bytes_) return kind;
    }
    const auto kind = static_cast<std::uint32_t>(hashes_.size());
    if (kind >= SliceRecord::other) throw Irregular{};
    {
        const std::lock_guard lock(mutex_);
        kinds_.push_back(bytes_);
    }
    hashes_.push_back(hash);
    slots_[slot] = kind + 1;
    if (2 * hashes_.size() > slots_.size()) {  // room again: all to their places in a larger table
        slots_.assign(2 * slots_.size(), 0);
        for (std::uint32_t k = 0; k < hashes_.size(); ++k) {
            std::size_t place = hashes_[k] & (slots_.size() - 1);
            while (slots_[place] != 0) place = (place + 1) & (slots_.size() - 1);
            slots_[place] = k + 1;
        }
    }
    return kind;
}

KindBytes SliceParser::kind(std::uint32_t number) const {
    const std::lock_guard lock(mutex_);
    const std::string& bytes = kinds_[number];
    KindBytes kind;
    kind.annotations = bytes.substr(0, bytes.size() - 2 * sizeof(std::uint64_t));
    std::memcpy(&kind.name, bytes.data() + kind.annotations.size(), sizeof(kind.name));
    std::memcpy(&kind.category, bytes.data() + kind.annotations.size() + sizeof(kind.name), sizeof(kind.category));
    return kind;
}

SliceBlocks::SliceBlocks(Packets& file) : file_(file) { parsers_.push_back(std::make_unique<SliceParser>(0)); }

SliceBlocks::~SliceBlocks() {
    {
        const std::lock_guard lock(mutex_);
        stops_ = true;
    }
    work_.notify_all();
}

const ParsedBlock* SliceBlocks::next() {
    fill();
    if (ahead_.empty()) return nullptr;
    std::unique_lock lock(mutex_);
    ParsedBlock& first = *ahead_.front();
    while (first.state != ParsedBlock::State::done) {
        ParsedBlock* const block = claim();
        if (block == nullptr) {
            done_.wait(lock);
            continue;
        }
        const OwnKeys keys = keys_;
        lock.unlock();
        parsers_[0]->parse(*block, keys);
        lock.lock();
        block->state = ParsedBlock::State::done;
    }
    given_ = std::move(ahead_.front());
    ahead_.pop_front();
    if (!(given_->before == keys_)) {
        lock.unlock();
        parsers_[0]->parse(*given_, keys_);
        lock.lock();
    }
    keys_ = given_->after;
    began_ = true;
    return given_.get();
}

// Only the first block, which tells the keys, until it is parsed; then as many as all cores are busy with, and more.
void SliceBlocks::fill() {
    const std::size_t others = std::clamp(std::thread::hardware_concurrency(), 1U, 8U) - 1;
    const std::size_t most = began_ ? 2 * (others + 1) : 1;
    while (!at_end_ && ahead_.size() < most) {
        std::unique_ptr<ParsedBlock> block = given_ ? std::move(given_) : std::make_unique<ParsedBlock>();
        if (!file_.next_block(block->block)) {
            at_end_ = true;
            return;
        }
        block->state = ParsedBlock::State::waits;
        {
            const std::lock_guard lock(mutex_);
            ahead_.push_back(std::move(block));
        }
        work_.notify_one();
        while (began_ && threads_.size() < others) {
            SliceParser& parser =
                *parsers_.emplace_back(std::make_unique<SliceParser>(static_cast<int>(parsers_.size())));
            threads_.emplace_back([this, &parser] { work(parser); });
        }
    }
}

ParsedBlock* SliceBlocks::claim() {
    for (const auto& block : ahead_) {
        if (block->state != ParsedBlock::State::waits) continue;
        block->state = ParsedBlock::State::is_parsed;
        return block.get();
    }
    return nullptr;
}

void SliceBlocks::work(SliceParser& parser) {
    std::unique_lock lock(mutex_);
    while (!stops_) {
        ParsedBlock* const block = claim();
        if (block == nullptr) {
            work_.wait(lock);
            continue;
        }
        const OwnKeys keys = keys_;
        lock.unlock();
        parser.parse(*block, keys);
        lock.lock();
        block->state = ParsedBlock::State::done;
        done_.notify_one();
    }
}

}  // namespace rehearse::trace
