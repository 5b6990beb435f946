// SPDX-License-Identifier: Apache-2.0
// Mutations of protobuf's wire format as such (protobuf.dev/programming-guides/encoding): a field is removed, repeated,
// moved, given another's content, or changed in itself, and the lengths of all that holds it are right again. Bytes
// that are changed as bytes seldom leave a file that protobuf reads. No schema is asked for: what is delimited and can
// be read as fields is taken for a message.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t limit);

namespace {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };
constexpr std::uint64_t highest_field = 1 << 14;
constexpr int deepest = 12;

struct Field {
    std::uint64_t number = 0;
    Wire wire = Wire::varint;
    std::uint64_t value = 0;    // of a varint
    std::string_view bytes{};   // of what is no varint and no message
    std::vector<Field> fields;  // of a message
};

std::optional<std::uint64_t> varint(std::string_view& rest) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
        const auto byte = static_cast<std::uint8_t>(rest.front());
        rest.remove_prefix(1);
        value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
    return std::nullopt;
}

std::optional<std::string_view> taken(std::string_view& rest, std::uint64_t count) {
    if (count > rest.size()) return std::nullopt;
    const std::string_view bytes = rest.substr(0, count);
    rest.remove_prefix(count);
    return bytes;
}

std::optional<std::vector<Field>> message(std::string_view rest, int depth);

std::optional<Field> field(std::string_view& rest, int depth) {
    const auto tag = varint(rest);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > highest_field) return std::nullopt;
    Field field{.number = *tag >> 3, .wire = static_cast<Wire>(*tag & 7)};
    std::optional<std::uint64_t> count;
    switch (field.wire) {
        case Wire::varint:
            count = varint(rest);
            field.value = count.value_or(0);
            return count ? std::optional{field} : std::nullopt;
        case Wire::fixed64:
            count = 8;
            break;
        case Wire::fixed32:
            count = 4;
            break;
        case Wire::delimited:
            count = varint(rest);
            break;
    }
    const auto bytes = count ? taken(rest, *count) : std::nullopt;
    if (!bytes) return std::nullopt;
    if (field.wire == Wire::delimited && bytes->size() > 1) {
        if (auto inner = message(*bytes, depth + 1)) field.fields = std::move(*inner);
    }
    if (field.fields.empty()) field.bytes = *bytes;
    return field;
}

std::optional<std::vector<Field>> message(std::string_view rest, int depth) {
    std::vector<Field> fields;
    while (!rest.empty()) {
        auto next = depth > deepest ? std::nullopt : field(rest, depth);
        if (!next) return std::nullopt;
        fields.push_back(std::move(*next));
    }
    return fields;
}

// A stream of messages, each after its length, as Chakra writes them: fields without a number.
std::optional<std::vector<Field>> stream(std::string_view rest) {
    std::vector<Field> messages;
    while (!rest.empty()) {
        const auto count = varint(rest);
        const auto bytes = count ? taken(rest, *count) : std::nullopt;
        auto inner = bytes ? message(*bytes, 0) : std::nullopt;
        if (!inner) return std::nullopt;
        messages.push_back({.wire = Wire::delimited, .fields = std::move(*inner)});
    }
    return messages;
}

void put_varint(std::string& to, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
    to += static_cast<char>(value);
}

std::string written(const std::vector<Field>& fields) {
    std::string to;
    for (const Field& field : fields) {
        if (field.number > 0) put_varint(to, field.number << 3 | static_cast<std::uint64_t>(field.wire));
        if (field.wire == Wire::varint) {
            put_varint(to, field.value);
            continue;
        }
        const std::string inner = field.fields.empty() ? std::string{} : written(field.fields);
        const std::string_view bytes = field.fields.empty() ? field.bytes : inner;
        if (field.wire == Wire::delimited) put_varint(to, bytes.size());
        to += bytes;
    }
    return to;
}

struct Place {
    std::vector<Field>* in = nullptr;
    std::size_t at = 0;
    Field& field() const { return (*in)[at]; }
};

void places(std::vector<Field>& fields, std::vector<Place>& to) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
        to.push_back({&fields, i});
        places(fields[i].fields, to);
    }
}

constexpr std::array<std::uint64_t, 12> telling{
    0, 1, 2, 127, 65536, 0x7FFFFFFF, 0xFFFFFFFF, 1ULL << 32, 0x7FFFFFFFFFFFFFFF, 1ULL << 63, ~0ULL, ~0ULL - 1};

// `made` keeps what is new.
void change_in_itself(Field& field, std::deque<std::string>& made, std::mt19937& draw) {
    if (field.wire == Wire::varint) {
        field.value = draw() % 2 ? telling[draw() % telling.size()] : field.value + draw() % 5 - 2;
        return;
    }
    if (!field.fields.empty()) return;
    const std::size_t limit = field.wire == Wire::delimited ? field.bytes.size() + 16 : field.bytes.size();
    std::string& bytes = made.emplace_back(field.bytes);
    const std::size_t before = bytes.size();
    bytes.resize(limit);
    const std::size_t after = LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), before, limit);
    bytes.resize(field.wire == Wire::delimited ? after : before);
    field.bytes = bytes;
}

void change(std::vector<Field>& fields, std::deque<std::string>& made, std::mt19937& draw) {
    std::vector<Place> all;
    places(fields, all);
    if (all.empty()) return;
    const Place place = all[draw() % all.size()];
    const Field other = all[draw() % all.size()].field();
    const auto where = place.in->begin() + static_cast<std::ptrdiff_t>(place.at);
    switch (draw() % 8) {
        case 0:
            place.in->erase(where);
            break;
        case 1:
            place.in->insert(where, Field{*where});
            break;
        case 2:
            place.in->insert(where, other);
            break;
        case 3:
            std::swap(*where, (*place.in)[draw() % place.in->size()]);
            break;
        case 4: {
            const std::uint64_t number = where->number;
            *where = other;
            where->number = number;
            break;
        }
        default:
            change_in_itself(*where, made, draw);
    }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t limit,
                                               unsigned int seed) {
    std::mt19937 draw{seed};
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    auto fields = message(text, 0);
    if (!fields) fields = stream(text);
    if (!fields || draw() % 16 == 0) return LLVMFuzzerMutate(data, size, limit);
    std::deque<std::string> made;
    for (unsigned changes = 1 + draw() % 4; changes > 0; --changes) change(*fields, made, draw);
    const std::string bytes = written(*fields);
    if (bytes.empty() || bytes.size() > limit) return LLVMFuzzerMutate(data, size, limit);
    std::copy(bytes.begin(), bytes.end(), data);
    return bytes.size();
}
