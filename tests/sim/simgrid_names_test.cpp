// SPDX-License-Identifier: Apache-2.0
// The names of SimGrid 4 are taken where a type has them, those of SimGrid 3 elsewhere. The types here have the
// signatures of simgrid/kernel/routing/NetZoneImpl.hpp, s4u/Host.hpp, s4u/Engine.hpp and s4u/Actor.hpp of these
// versions.
#include "sim/network/simgrid_names.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace rehearse::sim {
namespace {

struct Made {
    std::string by;
    std::vector<double> rates;
};

struct Zone3 {
    Made made;
    Made* create_host(const std::string&, const std::vector<double>& speeds) { return &(made = {"create", speeds}); }
    Made* create_link(const std::string&, const std::vector<double>& rates) { return &(made = {"create", rates}); }
};

// Between 4.0 and 4.2 both are there, the old ones deprecated.
struct Zone4 : Zone3 {
    Made* add_host(const std::string&, const std::vector<double>& speeds) { return &(made = {"add", speeds}); }
    Made* add_link(const std::string&, const std::vector<double>& rates) { return &(made = {"add", rates}); }
};

struct Host3 {};
struct Host4 {
    std::string started;
    void add_actor(const std::string& name, const std::function<void()>& code) {
        started = name;
        code();
    }
};
struct Actor3 {
    static void create(const std::string&, Host3*, const std::function<void()>& code) { code(); }
};
struct NoActor {};
struct Engine3 {};
struct Engine4 {
    static void add_actor(const std::string&, Host3*, const std::function<void()>& code) { code(); }
};

TEST(SimGridNames, AreThoseOfTheVersion) {
    Zone3 old_zone;
    Zone4 new_zone;
    EXPECT_EQ(host_in(old_zone, "device", 2)->by, "create");
    EXPECT_EQ(host_in(new_zone, "device", 2)->by, "add");
    EXPECT_EQ(link_in(old_zone, "link", 3)->by, "create");
    EXPECT_EQ(link_in(new_zone, "link", 3)->by, "add");
    EXPECT_EQ(new_zone.made.rates, std::vector<double>{3});
}

TEST(SimGridNames, StartActorsWhereTheVersionStartsThem) {
    int ran = 0;
    const std::function<void()> code = [&] { ++ran; };
    Host3 old_host;
    Host4 new_host;
    start_on<Engine3, Actor3>(&old_host, "rank", code);
    start_on<Engine4, NoActor>(&old_host, "rank", code);
    start_on<Engine3, NoActor>(&new_host, "rank", code);
    EXPECT_EQ(ran, 3);
    EXPECT_EQ(new_host.started, "rank");
}

}  // namespace
}  // namespace rehearse::sim
