// SPDX-License-Identifier: Apache-2.0
// placeholder while the figures are looked at
#include <gtest/gtest.h>
#include <fmt/format.h>
#include "core/prices.hpp"
#include "models/models.hpp"
namespace rehearse::models {
TEST(Look, Rates) {
    for (const char* name : {"summit", "cori-knl", "titanx-server", "adam-commodity"}) {
        const Machine m = load_machine(name);
        for (const char* net : {"resnet50", "vgg16", "alexnet", "googlenet"})
        for (DataType t : {DataType::f32, DataType::f16}) {
            if (!m.classes[0].peak.contains(t)) continue;
            const std::int64_t batch = 64;
            const Network n = load_network(net);
            const auto grad = needs_input_gradient(n);
            double by[4] = {0, 0, 0, 0}, conv = 0;
            for (std::size_t i = 0; i < n.layers.size(); ++i)
                for (Pass p : {Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update}) {
                    if (p == Pass::backward_data && !grad[i]) continue;
                    const double s = price({n.layers[i].op, p, batch, t}, m.classes[0]).time.value;
                    by[int(p)] += s;
                    if (kind_of(n.layers[i].op) == "conv2d" && p != Pass::update) conv += s;
                }
            const double total = by[0] + by[1] + by[2] + by[3];
            fmt::print("{:15} {:10} {} {:8.1f}/s  fwd {:.1f} bd {:.1f} bw {:.1f} up {:.1f} ms conv {:.1f}\n", name, net, to_string(t), batch / total, by[0]*1e3, by[1]*1e3, by[2]*1e3, by[3]*1e3, conv*1e3);
        }
    }
}
}
