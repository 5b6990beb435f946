// SPDX-License-Identifier: Apache-2.0
// Tiles of n x n real pixels to points and back. The transform of real numbers is fixed by n x (n / 2 + 1) of its
// values, of which four are real. A complex product takes three real ones (Gauss):
//   (a + i b)(c + i d) = (k1 - k3) + i (k1 + k2) with k1 = c (a + b), k2 = a (d - c), k3 = b (c + d),
// so that the points are 4 + 3 (n^2 / 2 - 2) real numbers and the sum over channels is a real matrix product at each.
#if defined(REHEARSE_CPU_FFT_TRANSFORMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_FFT_TRANSFORMS_INL
#undef REHEARSE_CPU_FFT_TRANSFORMS_INL
#else
#define REHEARSE_CPU_FFT_TRANSFORMS_INL
#endif

#include "kernels/cpu/conv/fft_codelets_inl.hpp"
#include "kernels/cpu/conv/tiles_stages_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

/// The transform of a row: columns 1 ... n / 2 - 1 are complex, 0 and n / 2 are real and share column 0.
template <int n>
using Spectrum = Complex[n / 2][n];  // column, row

// Where the points of a column lie: the four real ones first, then threes.
template <int n>
std::int64_t complex_point(int column, int row) {
    return 4 + 3 * (column == 0 ? (n / 2 - 1) * n + row : (column - 1) * n + row);
}

/// The points of the image: a + b, a, b.
struct ImageFactor {
    static void store(const Complex& v, float* to, std::int64_t stride) {
        const Floats d;
        hn::Store(hn::Add(v.re, v.im), d, to);
        hn::Store(v.re, d, to + stride);
        hn::Store(v.im, d, to + 2 * stride);
    }
};

/// The points of the filter, conjugated since a convolution layer correlates: c, d - c, c + d with d = -im.
struct FilterFactor {
    static void store(const Complex& v, float* to, std::int64_t stride) {
        const Floats d;
        hn::Store(v.re, d, to);
        hn::Store(hn::Neg(hn::Add(v.im, v.re)), d, to + stride);
        hn::Store(hn::Sub(v.re, v.im), d, to + 2 * stride);
    }
};

HWY_INLINE Complex load_product(const float* from, std::int64_t stride) {
    const Floats d;
    const Vec k1 = hn::Load(d, from);
    return {hn::Sub(k1, hn::Load(d, from + 2 * stride)), hn::Add(k1, hn::Load(d, from + stride))};
}

// Rows y and y + dilation of the grid as one complex row; what lies outside is 0.
template <int n>
void load_rows(const float* from, const Grid& g, std::int64_t y, Complex* row) {
    const Floats d;
    for (int x = 0; x < n; ++x) row[x] = {hn::Zero(d), hn::Zero(d)};
    for (std::int64_t x = 0; x < g.w; ++x) {
        const float* at = from + y * g.row + x * g.col;
        row[x * g.dilation_w].re = hn::Load(d, at);
        if (y + 1 < g.h) row[x * g.dilation_w].im = hn::Load(d, at + g.row);
    }
}

template <int n>
void transform_rows(const float* from, const Grid& g, Spectrum<n>& s) {
    const Floats d;
    for (int column = 0; column < n / 2; ++column) {
        for (int y = 0; y < n; ++y) s[column][y] = {hn::Zero(d), hn::Zero(d)};
    }
    for (std::int64_t y = 0; y < g.h; y += 2) {
        Complex row[n], z[n];
        load_rows<n>(from, g, y, row);
        transform<n>(row, z);
        Complex unused[n / 2];
        const std::int64_t first = y * g.dilation_h, second = (y + 1) * g.dilation_h;
        const bool both = y + 1 < g.h;
        s[0][first] = {z[0].re, z[n / 2].re};
        if (both) s[0][second] = {z[0].im, z[n / 2].im};
        for (int k = 1; k < n / 2; ++k) separate(z[k], z[n - k], s[k][first], both ? s[k][second] : unused[k]);
    }
}

template <int n, class Factor>
void fft_to_points(const float* from, const Grid& grid, float* points, std::int64_t stride) {
    const Floats d;
    Spectrum<n> s;
    transform_rows<n>(from, grid, s);
    Complex z[n];
    for (int column = 1; column < n / 2; ++column) {
        transform<n>(s[column], z);
        for (int k = 0; k < n; ++k) Factor::store(z[k], points + complex_point<n>(column, k) * stride, stride);
    }
    transform<n>(s[0], z);
    hn::Store(z[0].re, d, points);
    hn::Store(z[0].im, d, points + stride);
    hn::Store(z[n / 2].re, d, points + 2 * stride);
    hn::Store(z[n / 2].im, d, points + 3 * stride);
    for (int k = 1; k < n / 2; ++k) {
        Complex first, last;
        separate(z[k], z[n - k], first, last);
        Factor::store(first, points + complex_point<n>(0, k - 1) * stride, stride);
        Factor::store(last, points + complex_point<n>(0, n / 2 + k - 2) * stride, stride);
    }
}

template <int n>
void columns_back(const float* points, std::int64_t stride, Spectrum<n>& s) {
    const Floats d;
    Complex z[n];
    for (int column = 1; column < n / 2; ++column) {
        for (int k = 0; k < n; ++k) z[k] = load_product(points + complex_point<n>(column, k) * stride, stride);
        transform_back<n>(z, s[column]);
    }
    z[0] = {hn::Load(d, points), hn::Load(d, points + stride)};
    z[n / 2] = {hn::Load(d, points + 2 * stride), hn::Load(d, points + 3 * stride)};
    for (int k = 1; k < n / 2; ++k) {
        unite(load_product(points + complex_point<n>(0, k - 1) * stride, stride),
              load_product(points + complex_point<n>(0, n / 2 + k - 2) * stride, stride), z[k], z[n - k]);
    }
    transform_back<n>(z, s[0]);
}

template <int n>
void fft_from_points(const float* points, std::int64_t stride, float* to, const Grid& g) {
    const Floats d;
    const Vec scale = hn::Set(d, 1.0F / (n * n));
    Spectrum<n> s;
    columns_back<n>(points, stride, s);
    for (std::int64_t y = 0; y < g.h; y += 2) {
        const bool both = y + 1 < g.h;
        const std::int64_t first = y * g.dilation_h, second = both ? (y + 1) * g.dilation_h : first;
        Complex z[n], row[n];
        z[0] = {s[0][first].re, s[0][second].re};
        z[n / 2] = {s[0][first].im, s[0][second].im};
        for (int k = 1; k < n / 2; ++k) unite(s[k][first], s[k][second], z[k], z[n - k]);
        transform_back<n>(z, row);
        for (std::int64_t x = 0; x < g.w; ++x) {
            float* at = to + y * g.row + x * g.col;
            hn::Store(hn::Mul(scale, row[x * g.dilation_w].re), d, at);
            if (both) hn::Store(hn::Mul(scale, row[x * g.dilation_w].im), d, at + g.row);
        }
    }
}

/// The gradient of a filter correlates as the output does, with the roles of filter and output exchanged.
template <int n>
Transforms fft_transforms(const TileShape& tile) {
    return {.tile = tile,
            .input = fft_to_points<n, ImageFactor>,
            .filter = fft_to_points<n, FilterFactor>,
            .output = fft_from_points<n>,
            .diff_output = fft_to_points<n, FilterFactor>,
            .diff_filter = fft_from_points<n>};
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
