// SPDX-License-Identifier: Apache-2.0
#include "models/lstopo_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <pugixml.hpp>
#include <set>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/quoting.hpp"
#include "models/new_machine.hpp"

namespace rehearse::models::lstopo {

namespace {

// hwloc_obj_osdev_type_t of hwloc 1 and 2.
constexpr std::string_view gpu = "1", network = "2", open_fabrics = "3", coprocessor = "5";

std::string_view text_of(const pugi::xml_node& element, const char* attribute) {
    return element.attribute(attribute).value();
}

// The values of the element's own infos, <info name="Backend" value="NVML"/>.
std::string_view info_of(const pugi::xml_node& element, std::string_view name) {
    for (const pugi::xml_node& info : element.children("info")) {
        if (text_of(info, "name") == name) return text_of(info, "value");
    }
    return "";
}

// Whether a display controller is of NVIDIA or AMD, "0302 [10de:2330] [10de:16c1] a1", not of the board's management.
bool displays(const pugi::xml_node& element) {
    const std::string_view type = text_of(element, "pci_type");
    return type.starts_with("03") && (type.find(" [10de:") == 4 || type.find(" [1002:") == 4);
}

// One element after the other, in the order of the file.
class Counting : public pugi::xml_tree_walker {
public:
    bool objects = false;

    bool for_each(pugi::xml_node& element) override {
        const std::string_view type = text_of(element, "type");
        const bool object = std::string_view{element.name()} == "object";
        around_.resize(static_cast<std::size_t>(depth()));
        Around here = around_.empty() ? Around{} : around_.back();
        if (object && (type == "Package" || type == "Socket")) here.package = node_.packages++;
        if (object && type == "PCIDev") here.pci = element;
        around_.push_back(here);
        objects = objects || object;
        if (object && type == "PCIDev" && displays(element)) displays_.push_back(here.package);
        if (object && type == "OSDev") take(element, here);
        return true;
    }

    Node node() {
        Node node = node_;
        // What no PCI device is around cannot be told from what is: it counts alone.
        if (node.cards.empty()) {
            std::size_t most = 0;
            for (const auto& [library, count] : elsewhere_) most = std::max(most, count);
            node.cards.assign(most, 0);
        }
        node.by_class = node.cards.empty() && !displays_.empty();
        if (node.by_class) node.cards = displays_;
        return node;
    }

private:
    struct Around {
        std::int64_t package = 0;
        pugi::xml_node pci{};
    };

    // A card has an object for each library that drives it, and for its parts below these: one counts.
    void take(const pugi::xml_node& element, const Around& here) {
        const std::string_view kind = text_of(element, "osdev_type"), name = text_of(element, "name");
        const std::string_view library = name.substr(0, name.find_first_of("0123456789"));
        // Of GPUs there are objects of screens and of the kernel's drivers besides, of the board's own too.
        const bool managed = kind == gpu && (library == "nvml" || library == "rsmi");
        const bool is_card = managed || (kind == coprocessor && info_of(element, "OpenCLDeviceType") != "CPU");
        const bool is_port = kind == open_fabrics || (kind == network && library == "hsn");  // InfiniBand, Slingshot
        if (is_card && !here.pci) ++elsewhere_[library];
        if (is_card && here.pci && cards_.insert(here.pci).second) node_.cards.push_back(here.package);
        if (is_port && ports_.insert(here.pci ? here.pci : element).second) node_.ports.push_back(here.package);
    }

    Node node_{};
    std::vector<Around> around_{};                         // of the elements around, by their depth
    std::set<pugi::xml_node> cards_{}, ports_{};           // what those seen are in
    std::map<std::string_view, std::size_t> elsewhere_{};  // devices without a PCI device around, by library
    std::vector<std::int64_t> displays_{};                 // packages of PCI's display controllers
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
    return counting.node();
}

}  // namespace rehearse::models::lstopo

namespace rehearse::models {

NewMachine with_lstopo(NewMachine machine, const std::string& path) {
    lstopo::Node node = lstopo::parse(read_file(path), path);
    machine.processors = std::max<std::int64_t>(1, node.packages);
    if (!node.cards.empty()) machine.devices = {std::ssize(node.cards), "lstopo"};
    if (!node.ports.empty()) machine.nics = {std::ssize(node.ports), "lstopo"};
    if (node.by_class)
        machine.notes.push_back(
            "lstopo: display controllers of NVIDIA and AMD count as devices, as the file has none "
            "of CUDA, NVML, RSMI, Level Zero or OpenCL");
    if (node.cards.empty())
        machine.notes.push_back("lstopo: no device in the file: --devices N says how many there are");
    machine.device_at = std::move(node.cards);
    machine.nic_at = std::move(node.ports);
    return machine;
}

}  // namespace rehearse::models
