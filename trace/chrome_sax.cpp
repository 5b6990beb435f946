// SPDX-License-Identifier: Apache-2.0
#include "trace/chrome_sax.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace rehearse::trace {

FlatObject::Value& FlatObject::add(const std::string& key) {
    if (size_ == fields_.size()) fields_.emplace_back();
    Field& field = fields_[size_++];
    field.key = key;
    field.value.kind = Value::Kind::none;
    return field.value;
}

const FlatObject::Value* FlatObject::find(std::string_view key) const {
    for (std::size_t i = 0; i < size_; ++i) {
        if (fields_[i].key == key) return &fields_[i].value;
    }
    return nullptr;
}

std::optional<std::string_view> FlatObject::text(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr || value->kind != Value::Kind::text) return std::nullopt;
    return value->text;
}

std::optional<std::int64_t> FlatObject::whole(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr || (value->kind != Value::Kind::whole && value->kind != Value::Kind::boolean))
        return std::nullopt;
    return value->whole;
}

std::optional<double> FlatObject::real(std::string_view key) const {
    const Value* value = find(key);
    if (value == nullptr || (value->kind != Value::Kind::whole && value->kind != Value::Kind::real))
        return std::nullopt;
    return value->real;
}

namespace {

std::string text_of(const FlatObject::Value& value) {
    switch (value.kind) {
        case FlatObject::Value::Kind::none:
            return "null";
        case FlatObject::Value::Kind::boolean:
            return value.whole != 0 ? "true" : "false";
        case FlatObject::Value::Kind::whole:
            return fmt::format("{}", value.whole);
        case FlatObject::Value::Kind::real:
            return fmt::format("{}", value.real);
        case FlatObject::Value::Kind::text:
            break;
    }
    return value.text;
}

}  // namespace

std::string FlatObject::lines() const {
    std::string text;
    for (std::size_t i = 0; i < size_; ++i) {
        if (i > 0) text += '\n';
        text.append(fields_[i].key).append(": ").append(text_of(fields_[i].value));
    }
    return text;
}

namespace {

enum class Where { root, head, elements, element, args, list, elsewhere };

// nlohmann's SAX interface: its names, and every function says whether to go on.
class Sax {
public:
    Sax(InputFile& file, const ChromeVisitor& visitor) : file_(file), visitor_(visitor) {}

    bool saw_elements() const { return saw_elements_; }

    bool null() { return set(FlatObject::Value::Kind::none, 0, 0); }
    bool boolean(bool truth) { return set(FlatObject::Value::Kind::boolean, truth ? 1 : 0, 0); }
    bool number_integer(std::int64_t whole) {
        return set(FlatObject::Value::Kind::whole, whole, static_cast<double>(whole));
    }
    bool number_unsigned(std::uint64_t whole) {
        if (whole > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            return set(FlatObject::Value::Kind::real, 0, static_cast<double>(whole));
        }
        return number_integer(static_cast<std::int64_t>(whole));
    }
    bool number_float(double real, const std::string& /*as_written*/) {
        return set(FlatObject::Value::Kind::real, 0, real);
    }
    bool string(std::string& text) {
        if (in_list()) {
            list_item(text);
        } else if (FlatObject::Value* place = value()) {
            place->kind = FlatObject::Value::Kind::text;
            place->text.swap(text);
        }
        return true;
    }
    bool binary(nlohmann::json::binary_t& /*bytes*/) { return true; }  // not in text

    bool key(std::string& name) {
        key_.swap(name);
        return true;
    }

    bool start_object(std::size_t /*unknown*/) {
        Where next = Where::elsewhere;
        if (path_.empty())
            next = Where::root;
        else if (path_.back() == Where::root && (key_ == "otherData" || key_ == "distributedInfo")) {
            next = Where::head;
            head_ = key_;
        } else if (path_.back() == Where::elements) {
            next = Where::element;
            saw_elements_ = true;
        } else if (path_.back() == Where::element && key_ == "args")
            next = Where::args;
        if (next == Where::head || next == Where::element) {
            element_.fields.clear();
            element_.args.clear();
        }
        path_.push_back(next);
        return true;
    }

    bool end_object() {
        const Where ended = path_.back();
        path_.pop_back();
        if (ended == Where::head && head_ == "otherData") visitor_.head(element_.fields);
        if (ended == Where::head && head_ == "distributedInfo" && visitor_.job) visitor_.job(element_.fields);
        if (ended == Where::element) visitor_.element(element_);
        return true;
    }

    // Chrome also reads a bare array of events.
    bool start_array(std::size_t /*unknown*/) {
        const bool named = !path_.empty() && path_.back() == Where::root && key_ == "traceEvents";
        const bool bare = path_.empty();
        if (in_list()) {
            list_item("[");
            path_.push_back(Where::list);
            return true;
        }
        if (!path_.empty() && path_.back() == Where::args) {
            list_ = &element_.args.add(key_);
            list_->kind = FlatObject::Value::Kind::text;
            list_->text.assign(1, '[');  // g++ 12 warns of = "[" (its bug 105329)
            path_.push_back(Where::list);
            return true;
        }
        path_.push_back(named || bare ? Where::elements : Where::elsewhere);
        saw_elements_ = saw_elements_ || named;
        return true;
    }

    bool end_array() {
        if (in_list()) list_->text += ']';
        path_.pop_back();
        return true;
    }

    bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& error) {
        // The end of the input counts as one more character, so an error behind the last byte is a file too short.
        const auto byte = static_cast<std::int64_t>(position) - 1;
        if (const auto size = file_.text_size(); size && byte >= *size) file_.is_cut_off("its JSON does not end");
        if (!saw_elements_ && path_.empty()) file_.is_not_a_trace(fmt::format("not JSON from byte {} on", byte));
        file_.is_broken(byte, error.what());
    }

private:
    FlatObject::Value* value() {
        if (path_.empty()) return nullptr;
        if (path_.back() == Where::args) return &element_.args.add(key_);
        if (path_.back() == Where::element || path_.back() == Where::head) return &element_.fields.add(key_);
        return nullptr;
    }

    bool in_list() const { return !path_.empty() && path_.back() == Where::list; }
    void list_item(std::string_view text) {
        if (list_->text.back() != '[') list_->text += ", ";
        list_->text += text;
    }

    bool set(FlatObject::Value::Kind kind, std::int64_t whole, double real) {
        if (in_list()) {
            list_item(text_of({kind, whole, real, {}}));
            return true;
        }
        if (FlatObject::Value* place = value()) {
            place->kind = kind;
            place->whole = whole;
            place->real = real;
        }
        return true;
    }

    InputFile& file_;
    const ChromeVisitor& visitor_;
    std::vector<Where> path_;
    std::string key_, head_;
    FlatObject::Value* list_ = nullptr;  // the list in the arguments that is being read
    ChromeElement element_;
    bool saw_elements_ = false;
};

}  // namespace

void visit_chrome(InputFile& file, const ChromeVisitor& visitor) {
    Sax sax(file, visitor);
    nlohmann::json::sax_parse(file.stream(), &sax);
    if (!sax.saw_elements()) file.is_not_a_trace("JSON, but without \"traceEvents\"");
}

}  // namespace rehearse::trace
