// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/communicator.hpp"

#include <algorithm>
#include <exception>
#include <limits>

#include "core/error.hpp"
#include "kernels/comm/communicator_impl.hpp"

namespace rehearse::kernels {

namespace {

constexpr int tag = 0;

// MPI counts the bytes of a message in an int; larger ones go in parts of this size.
constexpr std::size_t largest_message = std::size_t{1} << 30U;

int message_size(std::size_t count) {
    require(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "a message that MPI can count");
    return static_cast<int>(count);
}

// Calls `transfer` with one part after the other; once where there are no bytes, since the other side waits for it.
template <typename Byte, typename Transfer>
void in_parts(std::span<Byte> bytes, const Transfer& transfer) {
    do {
        const std::span<Byte> part = bytes.first(std::min(bytes.size(), largest_message));
        transfer(part.data(), message_size(part.size()));
        bytes = bytes.subspan(part.size());
    } while (!bytes.empty());
}

// Of a collective call of MPI's, which it does not take back when `idle` throws.
void wait(MPI_Request request, const Idle& idle) {
    if (!idle) return check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    for (int done = 0;;) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done != 0) return;
        idle();
    }
}

MPI_Comm copy_of(MPI_Comm original) {
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(original, &copy), "MPI_Comm_dup");
    return copy;
}

}  // namespace

Communicator::Impl::Impl(MPI_Comm taken) : comm(taken) {
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int value = 0;
    check(MPI_Comm_rank(comm, &value), "MPI_Comm_rank");
    rank = value;
    check(MPI_Comm_size(comm, &value), "MPI_Comm_size");
    size = value;
}

Communicator::Impl::~Impl() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    // A collective call: after a failure the other ranks would not come, and the job ends anyway.
    if (finalized == 0 && !broken && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm);
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Communicator Communicator::world() { return Communicator{std::make_unique<Impl>(copy_of(MPI_COMM_WORLD))}; }
Communicator Communicator::self() { return Communicator{std::make_unique<Impl>(copy_of(MPI_COMM_SELF))}; }

std::int64_t Communicator::rank() const { return impl_->rank; }
std::int64_t Communicator::size() const { return impl_->size; }

Communicator Communicator::split(std::int64_t color, std::int64_t key) const {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(impl_->comm, static_cast<int>(color), static_cast<int>(key), &part), "MPI_Comm_split");
    return Communicator{std::make_unique<Impl>(part)};
}

Communicator Communicator::node() const {
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split_type(impl_->comm, MPI_COMM_TYPE_SHARED, static_cast<int>(impl_->rank), MPI_INFO_NULL, &part),
          "MPI_Comm_split_type");
    return Communicator{std::make_unique<Impl>(part)};
}

void Communicator::barrier(const Idle& idle) const {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(impl_->comm, &request), "MPI_Ibarrier");
    wait(request, idle);
}

void Communicator::send(std::span<const std::byte> bytes, std::int64_t to) const {
    in_parts(bytes, [&](const std::byte* part, int size) {
        check(MPI_Send(part, size, MPI_BYTE, static_cast<int>(to), tag, impl_->comm), "MPI_Send");
    });
}

void Communicator::receive(std::span<std::byte> bytes, std::int64_t from) const {
    in_parts(bytes, [&](std::byte* part, int size) {
        check(MPI_Recv(part, size, MPI_BYTE, static_cast<int>(from), tag, impl_->comm, MPI_STATUS_IGNORE), "MPI_Recv");
    });
}

bool Communicator::has_sent(std::int64_t from) const {
    int waits = 0;
    check(MPI_Iprobe(static_cast<int>(from), tag, impl_->comm, &waits, MPI_STATUS_IGNORE), "MPI_Iprobe");
    return waits != 0;
}

Communicator Communicator::among(std::span<const std::int64_t> ranks) const {
    const std::vector<int> members(ranks.begin(), ranks.end());
    MPI_Group all = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    check(MPI_Comm_group(impl_->comm, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group), "MPI_Group_incl");
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_create_group(impl_->comm, group, tag, &part), "MPI_Comm_create_group");
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    return Communicator{std::make_unique<Impl>(part)};
}

void Communicator::broadcast(std::span<std::byte> bytes, std::int64_t root, const Idle& idle) const {
    in_parts(bytes, [&](std::byte* part, int size) {
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Ibcast(part, size, MPI_BYTE, static_cast<int>(root), impl_->comm, &request), "MPI_Ibcast");
        wait(request, idle);
    });
}

std::vector<double> Communicator::all_gather(std::span<const double> values) const {
    std::vector<double> all(values.size() * static_cast<std::size_t>(impl_->size));
    const int count = message_size(values.size());
    check(MPI_Allgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, impl_->comm), "MPI_Allgather");
    return all;
}

std::vector<std::string> Communicator::all_gather(const std::string& text) const {
    const auto own = static_cast<double>(text.size());
    std::vector<std::string> all;
    for (const double size : all_gather({&own, 1})) all.emplace_back(static_cast<std::size_t>(size), ' ');
    all[static_cast<std::size_t>(impl_->rank)] = text;
    for (std::int64_t from = 0; from < impl_->size; ++from) {
        broadcast(std::as_writable_bytes(std::span{all[static_cast<std::size_t>(from)]}), from);
    }
    return all;
}

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> bytes) const {
    const auto own = static_cast<double>(bytes.size());
    const std::vector<double> sizes = all_gather({&own, 1});
    std::vector<std::vector<std::byte>> all;
    if (impl_->rank != 0) {
        send(bytes, 0);
        return all;
    }
    all.emplace_back(bytes.begin(), bytes.end());
    for (std::int64_t from = 1; from < impl_->size; ++from) {
        all.emplace_back(static_cast<std::size_t>(sizes[static_cast<std::size_t>(from)]));
        receive(all.back(), from);
    }
    return all;
}

void Communicator::connect(const std::function<std::int64_t(std::int64_t)>& part) {
    if (impl_->size > 1) impl_->rings = std::make_unique<Rings>(impl_->comm, part ? part(impl_->rank) : 0);
}

void Communicator::run(const RankProgram& program, const Operand& operand, const Idle& idle) {
    Operation{*this, program, operand}.wait(idle);
}

}  // namespace rehearse::kernels
