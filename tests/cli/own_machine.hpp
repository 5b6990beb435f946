// SPDX-License-Identifier: Apache-2.0
// Machine files of a user's own, whose nodes may be unlike.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace rehearse {

/// Nodes of two devices or more, each with so much memory.
struct OwnNodes {
    std::int64_t count = 1, devices = 2;
    std::string memory = "16GB";
};

/// The text of a machine file, each kind of nodes with a device class of its own; `peak` of all devices in f32.
inline std::string own_machine(const std::string& name, const std::vector<OwnNodes>& kinds,
                               const std::string& peak = "15TFLOPS") {
    std::string text = fmt::format("name = \"{}\"\nsummary = \"of a test\"\n", name), nodes;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        text += fmt::format(
            "[[device]]\nname = \"card{}\"\nsource = \"assumed\"\nmemory = \"{}\"\nmemory_bandwidth = \"900GBps\"\n"
            "launch = {{ value = \"4us\", source = \"assumed\" }}\n[device.peak]\nf32 = \"{}\"\n[[device.efficiency]]\n"
            "kind = \"*\"\nfraction = 0.6\nerror = 0.3\nsource = \"assumed\"\n",
            i, kinds[i].memory, peak);
        std::string gpus;
        for (std::int64_t d = 0; d < kinds[i].devices; ++d) gpus += fmt::format("\"gpu{}\", ", d);
        nodes += fmt::format(
            "[[node]]\nname = \"kind{0}\"\ncount = {1}\ndevices = [{{ class = \"card{0}\", name = \"gpu\", count = {2} "
            "}}]\nnics = [{{ name = \"nic\" }}]\nbridges = [{{ name = \"cpu\", kind = \"processor\" }}]\n"
            "[[node.link]]\nfrom = [{3}\"nic\"]\nto = \"cpu\"\nbandwidth = {{ value = \"15.75GBps\", source = "
            "\"assumed\" }}\n",
            i, kinds[i].count, kinds[i].devices, gpus);
    }
    text += nodes + "[fabric]\nsource = \"assumed\"\nlink = \"100Gbps\"\nlatency = \"1us\"\n[fabric.star]\n";
    for (const char* where : {"inside", "across"}) {
        text += fmt::format(
            "[messaging.{}]\noverhead = {{ value = \"8us\", source = \"assumed\" }}\nfraction = {{ value = 0.9, source "
            "= \"assumed\" }}\nreduce = {{ value = \"250GBps\", source = \"assumed\" }}\nerror = 0.2\n",
            where);
    }
    return text +
           "[[storage]]\nname = \"fs\"\nread = { value = \"10GBps\", source = \"assumed\" }\nwrite = { value = "
           "\"5GBps\", source = \"assumed\" }\n";
}

}  // namespace rehearse
