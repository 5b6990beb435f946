// SPDX-License-Identifier: Apache-2.0
// K-FAC written out for one rank: factors by plain sums over all rows, equations solved by elimination.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "run/program.hpp"
#include "run/random.hpp"

namespace rehearse::run {

class WrittenOutCurvature {
public:
    using Square = std::vector<std::vector<double>>;
    /// Rows and columns of a layer's matrix that a rank has: its piece has factors of its own.
    using Piece = std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>;
    /// Of one layer: sums, and what they are divided by to be means.
    struct Factors {
        Square inputs, errors;
        double of_inputs = 0, of_errors = 0;
    };

    /// By how much of itself a sum of so many terms, each rounded to f32, may be off (check_part): at random, or 0.
    class Rounding {
    public:
        explicit Rounding(int perturbation);
        double factor(double terms);

    private:
        Uniform random_;
        bool on_;
    };

    /// Sums are rounded at random where `perturbation` (of check_part) is above 0.
    WrittenOutCurvature(const Schedule& schedule, int perturbation);

    /// Forgets all rows.
    void begin() { factors_.clear(); }
    /// Adds the rows of which `program`, one rank's, has just made gradients.
    void add(Program& program);
    /// Multiplies the gradients of `program` with the inverses.
    void precondition(Program& program);

private:
    double damping_;
    Rounding rounding_;
    std::map<int, std::set<Piece>> pieces_;  // by layer
    std::map<int, Factors> factors_;         // by layer
};

/// Gradients that are sent in 16 bits: each rank's is rounded once, and so is each sum of the others' with it, which is
/// no larger than the sum of their magnitudes. Of a training from changed weights, gradients are changed by as much;
/// behind the inverses nothing else bounds what becomes of it.
class RoundedOnTheWire {
public:
    RoundedOnTheWire(const Schedule& schedule, int perturbation);
    /// Of one rank's samples.
    void round(std::span<float> gradients);

private:
    Uniform random_;
    double relative_ = 0, absolute_ = 0;  // of f16, below its smallest normal number
};

}  // namespace rehearse::run
