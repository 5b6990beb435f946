// SPDX-License-Identifier: Apache-2.0
// What a collective of NCCL takes: chosen by NCCL's own estimates, priced by what its steps, the threads of its network
// cards and the machine's links take.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/libraries/pieces.hpp"
#include "sim/collective/libraries/tuner.hpp"

namespace rehearse::sim {

struct LibraryPrice {
    Seconds time;
    double error = 0;  // relative, one standard deviation
    LibraryAlgorithm algorithm = LibraryAlgorithm::ring;
    LibraryProtocol protocol = LibraryProtocol::simple;
    std::int64_t channels = 0;
    std::int64_t blocks = 0;  // thread blocks of its kernel, each on a processor of the device
    bool chosen = true;       // false: an all-to-all, which has neither
};

/// The library of one communicator: so many nodes of a kind, the same devices on each.
class LibraryTimes {
public:
    /// `devices`: numbers in a node of this kind; a job may leave some out. `crowding`: how many times as long a byte
    /// takes between nodes as on a network card of its own, because other communicators or a tapered fabric share its
    /// way. `most`: what leaves a node by these devices' cards at most, where the machine says so; 0: it does not.
    /// InputError where the library knows no such device, or nodes have no network cards.
    LibraryTimes(const Machine& machine, const CollectiveSoftware& software, std::size_t kind, std::int64_t nodes,
                 std::span<const int> devices, double crowding = 1, Bandwidth most = {});

    /// Of `bytes` as nccl-tests counts them: what each rank has before an all-reduce, reduce-scatter or all-to-all, or
    /// after an all-gather. Empty words leave the choice to the library; InputError where they are impossible.
    LibraryPrice price(CollectiveKind kind, Bytes bytes, const std::string& algorithm = "",
                       const std::string& protocol = "") const;
    /// From one rank to another, on the other node where there are several.
    LibraryPrice send(Bytes bytes) const;
    /// What a call takes longer that is waited for, among none that follow.
    Seconds waiting() const { return Seconds{library_->synchronous * 1e-6}; }
    const Communicator& communicator() const { return communicator_; }

private:
    /// What the newest tables say of the algorithm and protocol that were chosen.
    Estimate priced(CollectiveKind kind, double bytes, const Estimate& best) const;
    double in_a_node(CollectiveKind kind, double bytes, Estimate best) const;
    double between_nodes(CollectiveKind kind, double bytes, Estimate best) const;
    double ring_time(CollectiveKind kind, double bytes, Estimate estimate, std::int64_t blocks) const;
    /// us that the thread of a network card is busy with a ring's messages.
    double ring_posted(const RingPieces& pieces, double steps, LibraryProtocol protocol, double blocks) const;
    /// us until the first chunk of a tree has gone all its way.
    double filling(double chunk, double levels, double blocks, LibraryProtocol protocol) const;
    double tree_time(double bytes, Estimate estimate, std::int64_t blocks) const;
    double nvls_time(double bytes, Estimate estimate) const;
    double once_across(double bytes, Estimate estimate) const;
    double exchange_time(double bytes) const;
    double wire() const;  // GB/s that leave a node over all its rails
    /// ... of rings of so many steps, which go on from device to device inside it.
    double ring_carried(double steps, LibraryProtocol protocol) const;
    /// Share of the library's figure that rings reach inside a node.
    double ring_reached(double steps, LibraryProtocol protocol) const;
    double through_switch() const;  // us that a step over GPU-to-GPU links takes longer
    /// us that a step between nodes takes longer than the table says, whichever protocol: what LL's would be longer.
    double on_the_way(bool tree) const;
    double rendezvous(double message) const;
    double passing_on(double bytes, LibraryProtocol protocol) const;  // us of one thread block's lines by LL
    /// ... and of a step between nodes, before which the host's thread looks at the flags of each line
    /// (src/transport/net.cc, sendProxyProgress).
    double passing_across(double bytes, LibraryProtocol protocol) const;
    double gap(double message, LibraryProtocol protocol) const;
    double tree_gap(double message) const;

    std::shared_ptr<const CollectiveLibrary> library_;
    Communicator communicator_;  // by whose tables the library chooses
    /// The same by the tables of the newest version, whose steps and bases come nearest to what they take: wires and
    /// devices are as fast whichever version chooses among them.
    Communicator priced_;
    const LibraryTransport* transport_;
    double crowding_, most_;   // ; GB/s
    double sums_ = 0;          // GB/s of a card that switches between nodes sum; 0: not said
    double sums_latency_ = 0;  // us of a whole sum there
    std::int64_t since_ = 0;   // the version whose rules count
};

/// Of the groups of a schedule's collectives. Keeps a reference to the wiring.
class LibraryCalls {
public:
    /// `class_of`: of a rank; groups of one class make a call at the same time. Empty: all groups do.
    explicit LibraryCalls(const Wiring& wiring, std::function<int(RankIndex)> class_of = {})
        : wiring_(wiring), class_of_(std::move(class_of)) {}
    /// Of the slowest of the groups that make the call together with this rank's; where there are no classes, of all.
    /// At the wiring's z-score, and never faster than its links and network cards at that z-score.
    /// InputError where the ranks of one of these groups are not spread evenly over their nodes.
    LibraryPrice price(const Call& call, const Mesh& mesh, RankIndex rank = RankIndex{0});

private:
    /// Groups that lie on as many nodes and the same devices of them.
    struct Placed {
        LibraryTimes times;
        Bandwidth out_of_device;  // of the slowest of them at most
        Bandwidth out_of_node;    // of a group at most; 0: it is on one
    };
    const std::vector<Placed>& placed(const Call& call, const Mesh& mesh, RankIndex rank);
    std::vector<Placed> place(const Call& call, const Mesh& mesh, RankIndex rank) const;
    LibraryPrice price_at(const Placed& at, const Call& call, const Mesh& mesh) const;

    const Wiring& wiring_;
    std::function<int(RankIndex)> class_of_;
    std::map<std::pair<int, int>, std::vector<Placed>> placed_;  // by axis and class
};

/// What each rank sends, as ring and trees do.
Bytes library_sent(const Call& call, const Mesh& mesh);

}  // namespace rehearse::sim
