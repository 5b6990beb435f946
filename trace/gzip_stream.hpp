// SPDX-License-Identifier: Apache-2.0
// The text inside a gzip file (RFC 1952) as a stream, inflated block by block, so that a file of any size takes little
// memory.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <streambuf>
#include <string_view>
#include <vector>

namespace rehearse::trace {

/// Members that follow each other are one text, as gunzip has them. What is wrong is told by `cut_off` and `broken`,
/// which throw; `broken` gets the byte of the compressed file.
class GzipBuffer : public std::streambuf {
public:
    struct Failures {
        std::function<void(std::string_view)> cut_off;
        std::function<void(std::int64_t, std::string_view)> broken;
    };
    GzipBuffer(std::istream& compressed, Failures failures);
    ~GzipBuffer() override;
    GzipBuffer(const GzipBuffer&) = delete;
    GzipBuffer& operator=(const GzipBuffer&) = delete;

    /// Bytes of text that were read, and whether that was all of it.
    std::int64_t text_position() const { return inflated_ - (egptr() - gptr()); }
    std::int64_t compressed_position() const;
    /// Text that was inflated and not yet read.
    std::string_view buffered() const { return {gptr(), static_cast<std::size_t>(egptr() - gptr())}; }
    bool ended() const { return ended_; }

protected:
    int_type underflow() override;

private:
    struct Inflater;
    bool refill();
    void next_member();

    std::istream& compressed_;
    Failures failures_;
    std::unique_ptr<Inflater> inflater_;
    std::vector<char> in_, out_;
    std::int64_t taken_ = 0, inflated_ = 0;  // bytes of the file, bytes of the text
    bool ended_ = false;
};

}  // namespace rehearse::trace
