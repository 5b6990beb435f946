// SPDX-License-Identifier: Apache-2.0
// gloo's allreduce.cc and transport/tcp (BSD; facts of the source): chunks of 1/n of the data go round the ring twice,
// cut in two pieces at least and of 1 MiB at most; a piece is sent by the calling thread as far as the socket takes it,
// the rest and all that arrives by a thread that waits on both sockets.
#include "bench/socket_ring.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.hpp"

namespace rehearse::bench {

namespace {

constexpr std::size_t most_of_piece = (1 << 20) / sizeof(float);  // gloo: kMaxSegmentSize
constexpr int patience = 10;                                      // seconds

[[noreturn]] void fail(const std::string& what) {
    throw BackendError(fmt::format("sockets: {}: {}", what, std::strerror(errno)));
}

class Socket {
public:
    explicit Socket(int fd, const char* what) : fd_(fd) {
        if (fd_ < 0) fail(what);
    }
    ~Socket() {
        if (fd_ >= 0) close(fd_);
    }
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&&) = delete;
    int fd() const { return fd_; }

private:
    int fd_;
};

sockaddr_in own_address() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::array<char, 256> name{};
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET;
    if (gethostname(name.data(), name.size() - 1) == 0 && getaddrinfo(name.data(), nullptr, &hints, &found) == 0) {
        std::memcpy(&address, found->ai_addr, sizeof address);
        address.sin_port = 0;
        freeaddrinfo(found);
    }
    return address;
}

const sockaddr* generic(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
}

// Listens where the host's name leads, or on the loopback where that is no address of this host.
Socket listening(sockaddr_in& address) {
    Socket socket{::socket(AF_INET, SOCK_STREAM, 0), "socket"};
    address = own_address();
    if (bind(socket.fd(), generic(address), sizeof address) != 0) {
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(socket.fd(), generic(address), sizeof address) != 0) fail("bind");
    }
    if (listen(socket.fd(), 4) != 0) fail("listen");
    socklen_t size = sizeof address;
    auto* into = reinterpret_cast<sockaddr*>(&address);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
    if (getsockname(socket.fd(), into, &size) != 0) fail("getsockname");
    const timeval wait{.tv_sec = patience, .tv_usec = 0};
    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return socket;
}

Socket connected(std::uint32_t host, std::uint16_t port) {
    Socket socket{::socket(AF_INET, SOCK_STREAM, 0), "socket"};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = host;
    address.sin_port = port;
    const timeval wait{.tv_sec = patience, .tv_usec = 0};
    setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (connect(socket.fd(), generic(address), sizeof address) != 0) fail("connect to the next rank");
    return socket;
}

void prepare(int fd) {
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const timeval none{};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
}

}  // namespace

/// The connections to both neighbours, which are one where there are two ranks, and the thread that waits on them.
class SocketRing::Wire {
public:
    Wire(Socket to_next, std::optional<Socket> from_before)
        : wake_(eventfd(0, EFD_NONBLOCK), "eventfd"), poll_(epoll_create1(0), "epoll") {
        pairs_.push_back({std::move(to_next)});
        if (from_before) pairs_.push_back({*std::move(from_before)});
        for (const Pair& pair : pairs_) {
            prepare(pair.socket.fd());
            watch(pair.socket, EPOLLIN, EPOLL_CTL_ADD);
        }
        watch(wake_, EPOLLIN, EPOLL_CTL_ADD);
        helper_ = std::thread{[this] { wait(); }};
    }
    ~Wire() {
        {
            const std::lock_guard lock{mutex_};
            over_ = true;
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t told = ::write(wake_.fd(), &one, sizeof one);
        helper_.join();
    }
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;

    /// Bytes that the rank before sends go there; it is told that it may.
    void receive(std::span<std::byte> into) {
        const std::lock_guard lock{mutex_};
        wanted_.push_back(into);
        post(before(), {token, {}});
    }
    /// To the next rank, once it wants them.
    void send(std::span<const std::byte> bytes) {
        const std::lock_guard lock{mutex_};
        asked_to_send_.push_back(bytes);
        send_wanted();
    }
    void await_received(std::int64_t count) { await(received_, count); }
    void await_sent(std::int64_t count) { await(sent_, count); }
    double helper_seconds() {
        clockid_t clock{};
        timespec time{};
        if (pthread_getcpuclockid(helper_.native_handle(), &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    std::int64_t received = 0, sent = 0;  // asked for so far, by the calling thread

private:
    static constexpr char token = 't', data = 'd';  // begins what goes over a connection
    struct Parcel {
        char kind = token;
        std::span<const std::byte> bytes{};
        bool begun = false;  // its kind is on the way
    };
    struct Pair {
        Socket socket;
        std::deque<Parcel> out{};
        bool full = false;     // the socket takes no more for now
        bool in_data = false;  // what comes next belongs to wanted_.front()
    };
    Pair& next() { return pairs_.front(); }
    Pair& before() { return pairs_.back(); }

    void watch(const Socket& socket, std::uint32_t events, int how) const {
        epoll_event event{};
        event.events = events;
        event.data.fd = socket.fd();
        if (epoll_ctl(poll_.fd(), how, socket.fd(), &event) != 0) fail("epoll_ctl");
    }
    void await(const std::int64_t& done, std::int64_t count) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return done >= count || !why_.empty(); });
        if (!why_.empty()) throw BackendError(why_);
    }

    // All below with the lock.
    void broken(const std::string& why) {
        if (why_.empty()) why_ = "sockets: " + why;
        over_ = true;
        changed_.notify_all();
    }
    void send_wanted() {
        while (tokens_ > 0 && !asked_to_send_.empty()) {
            --tokens_;
            const std::span<const std::byte> bytes = asked_to_send_.front();
            asked_to_send_.pop_front();
            post(next(), {data, bytes});
        }
    }
    void post(Pair& pair, const Parcel& parcel) {
        pair.out.push_back(parcel);
        push(pair);
    }
    // As much as the socket takes.
    void push(Pair& pair) {
        bool full = false;
        while (!pair.out.empty() && !full) {
            Parcel& first = pair.out.front();
            std::array<iovec, 2> parts{iovec{&first.kind, 1}, iovec{const_cast<std::byte*>(first.bytes.data()),
                                                                    first.bytes.size()}};  // NOLINT: iovec is not const
            msghdr message{};
            message.msg_iov = parts.data() + (first.begun ? 1 : 0);
            message.msg_iovlen = first.begun ? 1 : 2;
            const ssize_t went = sendmsg(pair.socket.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (went < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return broken("a neighbour is gone");
            full = went < 0;
            if (full) break;
            first.bytes = first.bytes.subspan(static_cast<std::size_t>(went) - (first.begun ? 0 : 1));
            first.begun = true;
            if (!first.bytes.empty()) continue;
            sent_ += first.kind == data ? 1 : 0;
            pair.out.pop_front();
            changed_.notify_one();
        }
        if (full == pair.full) return;
        pair.full = full;
        watch(pair.socket, full ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    }
    // All that has come.
    void take(Pair& pair, std::unique_lock<std::mutex>& lock) {
        for (;;) {
            char kind = 0;
            const std::span<std::byte> into =
                pair.in_data ? wanted_.front() : std::as_writable_bytes(std::span{&kind, 1});
            lock.unlock();  // who asks for more meanwhile adds behind it
            const ssize_t came = ::recv(pair.socket.fd(), into.data(), into.size(), MSG_DONTWAIT);
            const int why = errno;
            lock.lock();
            if (came < 0 && (why == EAGAIN || why == EWOULDBLOCK)) return;
            if (came <= 0) return broken("a neighbour is gone");
            if (pair.in_data) {
                wanted_.front() = into.subspan(static_cast<std::size_t>(came));
                if (!wanted_.front().empty()) continue;
                wanted_.pop_front();
                pair.in_data = false;
                ++received_;
                changed_.notify_one();
            } else if (kind == token) {
                ++tokens_;
                send_wanted();
            } else if (kind == data && !wanted_.empty()) {
                pair.in_data = true;
            } else {
                return broken("a neighbour sends what nobody asked for");
            }
        }
    }
    void wait() {
        std::array<epoll_event, 4> events{};
        for (;;) {
            const int count = epoll_wait(poll_.fd(), events.data(), static_cast<int>(events.size()), -1);
            std::unique_lock lock{mutex_};
            for (int i = 0; i < count && !over_; ++i) {
                const epoll_event& event = events[static_cast<std::size_t>(i)];
                for (Pair& pair : pairs_) {
                    if (event.data.fd != pair.socket.fd()) continue;
                    if ((event.events & EPOLLOUT) != 0) push(pair);
                    if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) take(pair, lock);
                }
            }
            if (over_) return;
        }
    }

    std::vector<Pair> pairs_;  // to the next rank, from the one before
    Socket wake_, poll_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::span<std::byte>> wanted_;
    std::deque<std::span<const std::byte>> asked_to_send_;
    std::int64_t tokens_ = 0, received_ = 0, sent_ = 0;
    bool over_ = false;
    std::string why_;
    std::thread helper_;
};

SocketRing::SocketRing(std::int64_t rank, std::int64_t ranks, const Exchange& exchange) : rank_(rank), ranks_(ranks) {
    require(ranks > 1, "a ring of two ranks at least");
    sockaddr_in own{};
    const Socket listener = listening(own);
    const std::vector<std::string> all =
        exchange(fmt::format("{} {}", own.sin_addr.s_addr, static_cast<unsigned>(own.sin_port)));
    const auto to_next = [&] {
        const std::string& next = all.at(static_cast<std::size_t>((rank + 1) % ranks));
        return connected(static_cast<std::uint32_t>(std::stoul(next)),
                         static_cast<std::uint16_t>(std::stoul(next.substr(next.find(' ') + 1))));
    };
    const auto from_before = [&] {
        return Socket{accept(listener.fd(), nullptr, nullptr), "the rank before does not connect"};
    };
    if (ranks == 2) {
        wire_ = std::make_unique<Wire>(rank == 0 ? to_next() : from_before(), std::nullopt);
    } else {
        Socket next = to_next();
        wire_ = std::make_unique<Wire>(std::move(next), from_before());
    }
}

SocketRing::~SocketRing() = default;

double SocketRing::helper_seconds() const { return wire_->helper_seconds(); }

void SocketRing::all_reduce(std::span<float> data) {
    phase(data, true);
    phase(data, false);
}

// n - 1 chunks out and in, of as many pieces each; piece i + 2 is on its way while piece i is added.
void SocketRing::phase(std::span<float> data, bool reduces) {
    const auto n = static_cast<std::size_t>(ranks_), rank = static_cast<std::size_t>(rank_);
    const std::size_t chunk = (data.size() + n - 1) / n;
    const std::size_t piece = std::max<std::size_t>(1, std::min((chunk + 1) / 2, most_of_piece));
    const std::size_t pieces = std::max<std::size_t>(2, (chunk + piece - 1) / piece);
    arrived_.resize(2 * piece);
    // Of chunk `c` around the ring the p-th piece; pieces behind the end are empty.
    const auto part = [&](std::size_t c, std::size_t p) {
        const std::size_t whole = std::min(data.size(), (c + 1) * chunk);
        const std::size_t begin = std::min(whole, c * chunk + p * piece), end = std::min(whole, begin + piece);
        return data.subspan(begin, end - begin);
    };
    const std::size_t first = reduces ? rank : rank + 1;  // the chunk that this rank sends first
    const auto sends = [&](std::size_t i) { return part((first + n - i / pieces) % n, i % pieces); };
    const auto takes = [&](std::size_t i) { return part((first + n - 1 - i / pieces) % n, i % pieces); };
    const std::size_t count = (n - 1) * pieces;
    std::array<std::int64_t, 2> received{}, sent{};  // to wait for, by place among the last two
    for (std::size_t i = 0; i < count + 2; ++i) {
        if (i >= 2) {
            wire_->await_received(received[i % 2]);
            const std::span<float> into = takes(i - 2);
            const float* from = arrived_.data() + (i % 2) * piece;
            for (std::size_t k = 0; reduces && k < into.size(); ++k) into[k] += from[k];
            wire_->await_sent(sent[i % 2]);
        }
        if (i >= count) continue;
        const std::span<float> into = takes(i);
        const std::span<float> place = reduces ? std::span{arrived_}.subspan((i % 2) * piece, into.size()) : into;
        if (!place.empty()) {
            wire_->receive(std::as_writable_bytes(place));
            ++wire_->received;
        }
        received[i % 2] = wire_->received;
        const std::span<float> out = sends(i);
        if (!out.empty()) {
            wire_->send(std::as_bytes(out));
            ++wire_->sent;
        }
        sent[i % 2] = wire_->sent;
    }
}

}  // namespace rehearse::bench
