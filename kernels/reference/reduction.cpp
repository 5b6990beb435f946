// SPDX-License-Identifier: Apache-2.0
// One value of each of the elements along some axes, and running sums along one.
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/general/places.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// Sums along the axis so far; backward, of all that follow.
void run_sums(const Reduction& op, Pass pass, std::int64_t batch, const Buffers& b) {
    require(op.axes.size() == 1, "a running sum goes along one axis");
    const std::int64_t along = op.shape[at(op.axes.front())];
    std::int64_t inner = 1;
    for (std::size_t d = at(op.axes.front()) + 1; d < op.shape.size(); ++d) inner *= op.shape[d];
    const std::int64_t lines = batch * elements(op.shape) / along;
    for (std::int64_t line = 0; line < lines; ++line) {
        const std::int64_t first = line / inner * along * inner + line % inner;
        double sum = 0;
        for (std::int64_t step = 0; step < along; ++step) {
            const bool forward = pass == Pass::forward;
            const std::int64_t i = first + (forward ? step : along - 1 - step) * inner;
            sum += forward ? b.src[0][i] : b.diff_dst[i];
            (forward ? b.dst[i] : b.diff_src[0][i]) = static_cast<float>(sum);
        }
    }
}

struct Gathered {
    double sum = 0, absolute = 0, squares = 0, product = 1, other_product = 1, exponentials = 0;
    double most = -std::numeric_limits<double>::infinity(), least = std::numeric_limits<double>::infinity();
    double count = 0, zeros = 0, at_most = 0, at_least = 0, first_most = -1, first_least = -1;
};

double result(const std::string& function, const Gathered& of) {
    if (function == "sum") return of.sum;
    if (function == "mean") return of.sum / of.count;
    if (function == "max") return of.most;
    if (function == "min") return of.least;
    if (function == "prod") return of.product;
    if (function == "l1") return of.absolute;
    if (function == "l2") return std::sqrt(of.squares);
    if (function == "sumsquare") return of.squares;
    if (function == "logsum") return std::log(of.sum);
    if (function == "logsumexp") return of.most + std::log(of.exponentials);
    if (function == "argmax") return of.first_most;
    require(function == "argmin", "why_not refuses the rest");
    return of.first_least;
}

// d result / d x. Equal largest ones share the gradient, as PyTorch's amax has it.
double slope(const std::string& function, const Gathered& of, double x) {
    if (function == "sum") return 1;
    if (function == "mean") return 1 / of.count;
    if (function == "max") return x == of.most ? 1 / of.at_most : 0;
    if (function == "min") return x == of.least ? 1 / of.at_least : 0;
    if (function == "prod") return x != 0 ? of.product / x : of.zeros == 1 ? of.other_product : 0;
    if (function == "l1") return static_cast<double>((x > 0) - (x < 0));
    if (function == "l2") return of.squares == 0 ? 0 : x / std::sqrt(of.squares);
    if (function == "sumsquare") return 2 * x;
    if (function == "logsum") return 1 / of.sum;
    require(function == "logsumexp", "the others have no gradient");
    return std::exp(x - of.most) / of.exponentials;
}

}  // namespace

void run(const Reduction& op, Pass pass, std::int64_t batch, const Buffers& b) {
    if (op.function == "cumsum") return run_sums(op, pass, batch, b);
    const std::vector<std::int64_t> places = general::reduced_places(op);
    const std::int64_t count = elements(op.shape), made = elements(output_shape(op));
    const bool linear = op.function == "sum" || op.function == "mean";
    for (std::int64_t n = 0; n < batch; ++n) {
        const auto x = [&](std::int64_t i) -> double {
            return pass != Pass::forward && linear ? 0 : b.src[0][n * count + i];
        };
        std::vector<Gathered> all(at(made));
        for (std::int64_t i = 0; i < count; ++i) {
            Gathered& of = all[at(places[at(i)])];
            const double one = x(i);
            of.sum += one;
            of.absolute += std::abs(one);
            of.squares += one * one;
            of.product *= one;
            of.other_product *= one == 0 ? 1 : one;
            of.zeros += one == 0 ? 1 : 0;
            if (one > of.most) of.most = one, of.at_most = 0, of.first_most = of.count;
            if (one < of.least) of.least = one, of.at_least = 0, of.first_least = of.count;
            of.at_most += one == of.most ? 1 : 0;
            of.at_least += one == of.least ? 1 : 0;
            ++of.count;
        }
        for (std::int64_t i = 0; op.function == "logsumexp" && i < count; ++i) {
            Gathered& of = all[at(places[at(i)])];
            of.exponentials += std::exp(x(i) - of.most);
        }
        for (std::int64_t i = 0; pass == Pass::forward && i < made; ++i)
            b.dst[n * made + i] = static_cast<float>(result(op.function, all[at(i)]));
        for (std::int64_t i = 0; pass == Pass::backward_data && i < count; ++i) {
            const std::int64_t to = places[at(i)];
            b.diff_src[0][n * count + i] =
                static_cast<float>(slope(op.function, all[at(to)], x(i)) * b.diff_dst[n * made + to]);
        }
    }
}

}  // namespace rehearse::kernels::reference
