// SPDX-License-Identifier: Apache-2.0
#include "trace/gzip_stream.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "core/error.hpp"

namespace rehearse::trace {

struct GzipBuffer::Inflater {
    z_stream stream{};
};

namespace {
constexpr std::size_t block = std::size_t{1} << 18U;
constexpr int gzip_only = 16 + 15;  // a gzip header and the largest window (zlib.h, inflateInit2)
}  // namespace

GzipBuffer::GzipBuffer(std::istream& compressed, Failures failures)
    : compressed_(compressed),
      failures_(std::move(failures)),
      inflater_(std::make_unique<Inflater>()),
      in_(block),
      out_(block * 4) {
    require(inflateInit2(&inflater_->stream, gzip_only) == Z_OK, "zlib has memory for one stream");
}

GzipBuffer::~GzipBuffer() { inflateEnd(&inflater_->stream); }

std::int64_t GzipBuffer::compressed_position() const {
    return taken_ - static_cast<std::int64_t>(inflater_->stream.avail_in);
}

bool GzipBuffer::refill() {
    z_stream& stream = inflater_->stream;
    if (stream.avail_in > 0) return true;
    compressed_.read(in_.data(), static_cast<std::streamsize>(in_.size()));
    stream.avail_in = static_cast<uInt>(compressed_.gcount());
    stream.next_in = reinterpret_cast<Bytef*>(in_.data());
    taken_ += compressed_.gcount();
    return stream.avail_in > 0;
}

// Behind a member: another one, padding with zeros, or the end.
void GzipBuffer::next_member() {
    z_stream& stream = inflater_->stream;
    while (refill() && *stream.next_in == 0) {
        ++stream.next_in;
        --stream.avail_in;
    }
    if (!refill()) {
        ended_ = true;
        return;
    }
    inflateReset(&stream);
}

GzipBuffer::int_type GzipBuffer::underflow() {
    z_stream& stream = inflater_->stream;
    setg(nullptr, nullptr, nullptr);
    while (!ended_) {
        if (!refill()) failures_.cut_off("its gzip stream does not end");
        stream.next_out = reinterpret_cast<Bytef*>(out_.data());
        stream.avail_out = static_cast<uInt>(out_.size());
        const int status = inflate(&stream, Z_NO_FLUSH);
        const std::size_t made = out_.size() - stream.avail_out;
        inflated_ += static_cast<std::int64_t>(made);
        if (status == Z_STREAM_END) {
            next_member();
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            failures_.broken(compressed_position(),
                             fmt::format("gzip: {}", stream.msg != nullptr ? stream.msg : "no valid block"));
        }
        if (made == 0) continue;
        setg(out_.data(), out_.data(), out_.data() + made);
        return traits_type::to_int_type(out_.front());
    }
    return traits_type::eof();
}

}  // namespace rehearse::trace
