// SPDX-License-Identifier: Apache-2.0
#include "models/lstopo_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <set>

#include "core/error.hpp"
#include "core/quoting.hpp"

namespace rehearse::models::lstopo {

namespace {

// hwloc_obj_osdev_type_t of hwloc 1 and 2.
constexpr std::string_view open_fabrics = "3", coprocessor = "5";

// One element after the other, in the order of the file.
class Counting : public pugi::xml_tree_walker {
public:
    Node node{};
    bool objects = false;

    bool for_each(pugi::xml_node& element) override {
        const std::string_view type = element.attribute("type").value();
        const bool object = std::string_view{element.name()} == "object";
        packages_.resize(static_cast<std::size_t>(depth()));
        const std::int64_t around = packages_.empty() ? 0 : packages_.back();
        packages_.push_back(object && (type == "Package" || type == "Socket") ? node.packages++ : around);
        objects = objects || object;
        if (!object) return true;
        // A card has an object for each library that drives it: one counts.
        const std::string_view kind = type == "OSDev" ? element.attribute("osdev_type").value() : "";
        if (kind == coprocessor && cards_.insert(element.parent()).second) node.cards.push_back(packages_.back());
        if (kind == open_fabrics && ports_.insert(element.parent()).second) node.ports.push_back(packages_.back());
        return true;
    }

private:
    std::vector<std::int64_t> packages_{};        // that the elements around are at, by their depth
    std::set<pugi::xml_node> cards_{}, ports_{};  // what those seen are in
};

}  // namespace

Node parse(std::string_view text, const std::string& origin) {
    const auto refuse = [&](std::ptrdiff_t at, std::string_view what) {
        const auto line = 1 + std::count(text.begin(), text.begin() + std::min(at, std::ssize(text)), '\n');
        throw InputError(
            fmt::format("{}:{}: {}: right would be the XML that `lstopo node.xml` writes", origin, line, what));
    };
    pugi::xml_document document;
    const pugi::xml_parse_result read = document.load_buffer(text.data(), text.size());
    if (!read) refuse(read.offset, read.description());
    pugi::xml_node topology = document.document_element(), further = topology.next_sibling();
    if (std::string_view{topology.name()} != "topology" || further)
        refuse((further ? further : topology).offset_debug(), "no topology of hwloc");
    const std::string_view version = topology.attribute("version").value();
    if (!version.empty() && !version.starts_with("1.") && !version.starts_with("2."))
        refuse(topology.offset_debug(),
               fmt::format("version {} of the file is not read here, 1 and 2 are (lstopo --export-xml-flags v2)",
                           printable(version)));
    Counting counting;
    topology.traverse(counting);
    if (!counting.objects) refuse(0, "no object of hwloc");
    return counting.node;
}

}  // namespace rehearse::models::lstopo
