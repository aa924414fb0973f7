"""Two Gaussians on Poisson samples in forty digits, for engines that compose few of them."""

import mpmath


def twice(noise, rate, epsilon):
    """delta of two samples in forty digits: E_P of what the second has at epsilon - l(z)."""
    a, g = 1 / mpmath.mpf(noise), mpmath.mpf(rate)

    def once(grown):
        inner = grown - 1 + g
        if inner <= 0:
            return 1 - grown
        z = mpmath.log(inner / g) / a + a / 2
        return (1 - g) * mpmath.ncdf(-z) + g * mpmath.ncdf(a - z) - grown * mpmath.ncdf(-z)

    def integrand(z):
        ratio = 1 - g + g * mpmath.exp(a * z - a * a / 2)
        return mpmath.npdf(z) * ratio * once(mpmath.exp(epsilon) / ratio)

    # Where the second sample need do nothing, the integrand bends.
    bend = mpmath.log((mpmath.exp(epsilon) / (1 - g) - 1 + g) / g) / a + a / 2
    around = [bend + step for step in (-2, -0.5, 0, 0.5, 2, 9)]
    return mpmath.quad(integrand, sorted([-14, -6, -2, 2, 5, *around]))
