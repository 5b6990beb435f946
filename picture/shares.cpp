// SPDX-License-Identifier: Apache-2.0
#include "picture/shares.hpp"

#include <cmath>

namespace rehearse::picture {

namespace {

// A cell while events pass through it: what it has, and what still has room in it. Both stay in registers.
class Cell {
public:
    explicit Cell(std::span<Shares> cells) : cells_(cells) { enter(0); }
    ~Cell() { cells_[at_] = shares_; }
    Cell(const Cell&) = delete;
    Cell& operator=(const Cell&) = delete;

    std::size_t at() const { return at_; }
    void move_to(std::size_t cell) {
        cells_[at_] = shares_;
        enter(cell);
    }
    void take(unsigned activity, unsigned more) {
        more = std::min(more, room_);
        room_ -= more;
        shares_ += static_cast<Shares>(more) << (8 * activity);
    }

private:
    void enter(std::size_t cell) {
        at_ = cell;
        shares_ = cells_[cell];
        room_ = 255 - sum_of(shares_);
    }
    std::span<Shares> cells_;
    std::size_t at_ = 0;
    Shares shares_ = 0;
    unsigned room_ = 255;
};

}  // namespace

// Places are counted in 1/256 of a cell, so that the shares of events that follow each other add up whatever their
// length.
void add_events(const Lane& lane, double from, double per_cell, std::span<Shares> cells) {
    const auto end = static_cast<double>(cells.size() * 256);
    const double scale = 256 / per_cell;
    const auto base = static_cast<std::int64_t>(std::floor(from));  // times since 1970 have no more digits in a double
    const double offset = (from - std::floor(from)) * scale;
    const auto place = [&](std::int64_t ns) {
        return static_cast<std::int64_t>(std::min(std::max(static_cast<double>(ns - base) * scale - offset, 0.0), end));
    };
    const double until = from + per_cell * static_cast<double>(cells.size());
    const auto last_place = static_cast<std::int64_t>(end) - 1;
    Cell cell(cells);
    for (std::size_t i = lane.first_after(base); i < lane.size(); ++i) {
        if (static_cast<double>(lane.start(i)) >= until) break;
        const std::int64_t left = std::min(place(lane.start(i)), last_place);
        const std::int64_t right = std::max(place(lane.end(i)), left + 1);
        const auto activity = static_cast<unsigned>(lane.activity(i));
        const auto first = static_cast<std::size_t>(left >> 8), last = static_cast<std::size_t>((right - 1) >> 8);
        if (first != cell.at()) cell.move_to(first);
        if (first == last) {
            cell.take(activity, static_cast<unsigned>(right - left));
            continue;
        }
        cell.take(activity, 256 - static_cast<unsigned>(left & 255));
        for (std::size_t c = first + 1; c < last; ++c) {
            cell.move_to(c);
            cell.take(activity, 255);
        }
        cell.move_to(last);
        cell.take(activity, static_cast<unsigned>(right - (static_cast<std::int64_t>(last) << 8)));
    }
}

}  // namespace rehearse::picture
