// SPDX-License-Identifier: Apache-2.0
#include "kernels/comm/communicator.hpp"

#include <exception>
#include <limits>

#include "core/error.hpp"
#include "kernels/comm/mpi.hpp"

namespace rehearse::kernels {

namespace {

constexpr int tag = 0;

int message_size(std::size_t count) {
    require(count <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "a message that MPI can count");
    return static_cast<int>(count);
}

enum class GiveUp { withdraw, abandon };  // MPI does not take back a collective call, only messages

// Waits for all requests. When `idle` throws, messages are withdrawn: their buffers may go away after that.
void wait(std::span<MPI_Request> requests, const Idle& idle, GiveUp give_up) {
    const int count = message_size(requests.size());
    if (!idle) return check(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    try {
        for (int done = 0;;) {
            check(MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
            if (done != 0) return;
            idle();
        }
    } catch (...) {
        for (MPI_Request& request : requests) {
            if (request == MPI_REQUEST_NULL || give_up == GiveUp::abandon) continue;
            MPI_Cancel(&request);
            MPI_Request_free(&request);
        }
        throw;
    }
}

}  // namespace

struct Communicator::Impl {
    explicit Impl(MPI_Comm taken) : comm(taken) {
        check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        int value = 0;
        check(MPI_Comm_rank(comm, &value), "MPI_Comm_rank");
        rank = value;
        check(MPI_Comm_size(comm, &value), "MPI_Comm_size");
        size = value;
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() {
        int finalized = 0;
        MPI_Finalized(&finalized);
        // A collective call: after a failure the other ranks would not come, and the job ends anyway.
        if (finalized == 0 && !broken && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm);
    }

    void reserve(const AllReduceProgram& program) {
        if (static_cast<std::int64_t>(scratch.size()) < program.scratch) {
            scratch.resize(static_cast<std::size_t>(program.scratch));
        }
        requests.reserve(static_cast<std::size_t>(program.messages));
    }

    MPI_Request& only_request() {
        requests.assign(1, MPI_REQUEST_NULL);
        return requests.front();
    }

    // Receives first, so that what arrives finds its place.
    void post(const AllReduceProgram::Round& round, std::span<float> data) {
        requests.clear();
        float* next = scratch.data();
        for (const auto& part : round.sums) {
            receive(next, part);
            next += part.count;
        }
        for (const auto& part : round.copies) receive(data.data() + part.begin, part);
        for (const auto& part : round.sends) {
            check(MPI_Isend(data.data() + part.begin, static_cast<int>(part.count), MPI_FLOAT,
                            static_cast<int>(part.peer), tag, comm, &requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Isend");
        }
    }

    void receive(float* where, const AllReduceProgram::Part& part) {
        check(MPI_Irecv(where, static_cast<int>(part.count), MPI_FLOAT, static_cast<int>(part.peer), tag, comm,
                        &requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Irecv");
    }

    void add(const AllReduceProgram::Round& round, std::span<float> data) const {
        const float* arrived = scratch.data();
        for (const auto& part : round.sums) {
            float* sum = data.data() + part.begin;
            for (std::int64_t i = 0; i < part.count; ++i) sum[i] += arrived[i];
            arrived += part.count;
        }
    }

    static std::unique_ptr<Impl> copy_of(MPI_Comm original) {
        MPI_Comm copy = MPI_COMM_NULL;
        check(MPI_Comm_dup(original, &copy), "MPI_Comm_dup");
        return std::make_unique<Impl>(copy);
    }

    MPI_Comm comm;
    std::int64_t rank = 0, size = 1;
    bool broken = false;                // a collective call was left half done
    std::vector<MPI_Request> requests;  // of the round in flight
    std::vector<float> scratch;
};

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Communicator Communicator::world() { return Communicator{Impl::copy_of(MPI_COMM_WORLD)}; }
Communicator Communicator::self() { return Communicator{Impl::copy_of(MPI_COMM_SELF)}; }

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
    MPI_Request& request = impl_->only_request();
    check(MPI_Ibarrier(impl_->comm, &request), "MPI_Ibarrier");
    wait(impl_->requests, idle, GiveUp::abandon);
}

void Communicator::send(std::span<const std::byte> bytes, std::int64_t to) const {
    check(MPI_Send(bytes.data(), message_size(bytes.size()), MPI_BYTE, static_cast<int>(to), tag, impl_->comm),
          "MPI_Send");
}

void Communicator::receive(std::span<std::byte> bytes, std::int64_t from) const {
    check(MPI_Recv(bytes.data(), message_size(bytes.size()), MPI_BYTE, static_cast<int>(from), tag, impl_->comm,
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
}

void Communicator::broadcast(std::span<std::byte> bytes, std::int64_t root, const Idle& idle) const {
    MPI_Request& request = impl_->only_request();
    check(MPI_Ibcast(bytes.data(), message_size(bytes.size()), MPI_BYTE, static_cast<int>(root), impl_->comm, &request),
          "MPI_Ibcast");
    wait(impl_->requests, idle, GiveUp::abandon);
}

std::vector<double> Communicator::all_gather(std::span<const double> values) const {
    std::vector<double> all(values.size() * static_cast<std::size_t>(impl_->size));
    const int count = message_size(values.size());
    check(MPI_Allgather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, impl_->comm), "MPI_Allgather");
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

void Communicator::all_reduce(const AllReduceProgram& program, std::span<float> data, const Idle& idle) {
    require(program.ranks == impl_->size, "a program for as many ranks as there are");
    require(static_cast<std::int64_t>(data.size()) >= program.elements, "a buffer as long as the program's");
    impl_->reserve(program);
    impl_->broken = true;
    for (const AllReduceProgram::Round& round : program.rounds) {
        impl_->post(round, data);
        wait(impl_->requests, idle, GiveUp::withdraw);
        impl_->add(round, data);
    }
    impl_->broken = false;
}

}  // namespace rehearse::kernels
