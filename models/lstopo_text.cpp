// SPDX-License-Identifier: Apache-2.0
#include "models/lstopo_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/quoting.hpp"

namespace rehearse::models::lstopo {

namespace {

constexpr std::string_view blanks = " \t\r\n";
// hwloc_obj_osdev_type_t of hwloc 1 and 2.
constexpr std::string_view open_fabrics = "3", coprocessor = "5";

struct Tag {
    std::string_view name;
    std::vector<std::pair<std::string_view, std::string_view>> attributes;
    bool opens = false, closes = false;  // <a/> does both
    std::size_t at = 0;

    std::string_view text(std::string_view attribute) const {
        const auto found = std::ranges::find(attributes, attribute, [](const auto& each) { return each.first; });
        return found == attributes.end() ? std::string_view{} : found->second;
    }
};

/// What stands between < and >, one after the other; texts between tags are of no interest.
class Tags {
public:
    Tags(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

    [[noreturn]] void refuse(std::size_t at, std::string_view what) const {
        const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
        throw InputError(
            fmt::format("{}:{}: {}: right would be the XML that `lstopo node.xml` writes", origin_, line, what));
    }

    /// false: there is no further one.
    bool next(Tag& tag) {
        for (;;) {
            at_ = std::min(text_.find('<', at_), text_.size());
            if (at_ == text_.size()) return false;
            if (!skipped("<?", "?>") && !skipped("<!--", "-->") && !skipped("<!", ">")) break;
        }
        tag = {.name = {}, .attributes = {}, .at = at_++};
        tag.closes = is("/");
        if (tag.closes) ++at_;
        tag.opens = !tag.closes;
        tag.name = word();
        if (tag.name.empty()) refuse(tag.at, "no name behind <");
        for (;;) {
            at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
            if (is(">")) break;
            if (is("/>")) {
                tag.closes = true;
                ++at_;
                break;
            }
            tag.attributes.push_back(attribute(tag));
        }
        ++at_;
        return true;
    }

private:
    bool is(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

    bool skipped(std::string_view begin, std::string_view end) {
        if (!is(begin)) return false;
        const std::size_t found = text_.find(end, at_ + begin.size());
        if (found == std::string_view::npos) refuse(at_, fmt::format("{} without {}", begin, end));
        at_ = found + end.size();
        return true;
    }

    std::string_view word() {
        const std::size_t begin = at_;
        at_ = std::min(text_.find_first_of(" \t\r\n=/<>\"'", at_), text_.size());
        return text_.substr(begin, at_ - begin);
    }

    std::pair<std::string_view, std::string_view> attribute(const Tag& tag) {
        const std::string_view name = word();
        const char quote = is("=\"") ? '"' : '\'';
        if (name.empty() || (!is("=\"") && !is("='")))
            refuse(tag.at, fmt::format("<{}> has an attribute without a value", printable(tag.name)));
        const std::size_t begin = at_ + 2, end = text_.find(quote, begin);
        if (end == std::string_view::npos) refuse(tag.at, fmt::format("<{}> has no end", printable(tag.name)));
        at_ = end + 1;
        return {name, text_.substr(begin, end - begin)};
    }

    std::string_view text_;
    const std::string& origin_;
    std::size_t at_ = 0;
};

struct Element {
    std::string_view name;
    std::size_t object = 0;    // the nearest object that it is in, or is, by number
    std::int64_t package = 0;  // likewise
};

class NodeReader {
public:
    NodeReader(std::string_view text, const std::string& origin) : tags_(text, origin) {}

    Node read() {
        for (Tag tag; tags_.next(tag);) {
            if (tag.opens) open(tag);
            if (!tag.closes) continue;
            if (open_.empty() || open_.back().name != tag.name)
                tags_.refuse(tag.at, fmt::format("</{}> closes what is not open", printable(tag.name)));
            open_.pop_back();
        }
        if (!open_.empty()) tags_.refuse(0, fmt::format("<{}> is not closed", printable(open_.back().name)));
        if (objects_ == 0) tags_.refuse(0, "no object of hwloc");
        return std::move(node_);
    }

private:
    void open(const Tag& tag) {
        if (open_.empty() && (tag.name != "topology" || objects_ > 0)) tags_.refuse(tag.at, "no topology of hwloc");
        const std::string_view version = tag.text("version");
        if (open_.empty() && !version.empty() && !version.starts_with("1.") && !version.starts_with("2."))
            tags_.refuse(tag.at, fmt::format("version {} of the file is not read here, 1 and 2 are (lstopo "
                                             "--export-xml-flags v2)",
                                             printable(version)));
        Element element = open_.empty() ? Element{} : open_.back();
        const std::size_t around = element.object;
        element.name = tag.name;
        if (tag.name == "object") {
            element.object = ++objects_;
            const std::string_view type = tag.text("type");
            if (type == "Package" || type == "Socket") element.package = node_.packages++;
            // A card has an object for each library that drives it: one counts.
            const std::string_view kind = type == "OSDev" ? tag.text("osdev_type") : std::string_view{};
            if (kind == coprocessor && cards_.insert(around).second) node_.cards.push_back(element.package);
            if (kind == open_fabrics && ports_.insert(around).second) node_.ports.push_back(element.package);
        }
        open_.push_back(element);
    }

    Tags tags_;
    Node node_;
    std::vector<Element> open_;
    std::size_t objects_ = 0;
    std::set<std::size_t> cards_, ports_;  // the objects (of PCI) that those seen are in
};

}  // namespace

Node parse(std::string_view text, const std::string& origin) { return NodeReader{text, origin}.read(); }

}  // namespace rehearse::models::lstopo
