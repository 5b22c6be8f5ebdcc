// The palettes: those called safe for colour-blind eyes are.
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "gui/core/theme.h"

namespace ringside::gui {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

/// What is seen instead of linear red, green and blue: with every cone, and with one kind of them missing (Machado, Oliveira and
/// Fernandes, 2009, severity 1).
constexpr std::array<Matrix, 4> kEyes = {{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                          {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
                                          {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
                                          {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}}};

/// CIE L*a*b* (D65) of a colour as such eyes see it.
Vector seen(const QColor& color, const Matrix& eyes) {
    const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    const Vector rgb = {linear(color.redF()), linear(color.greenF()), linear(color.blueF())};
    Vector v{};
    for (std::size_t r = 0; r < 3; ++r) v[r] = std::clamp(eyes[r][0] * rgb[0] + eyes[r][1] * rgb[1] + eyes[r][2] * rgb[2], 0.0, 1.0);
    const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
    const double x = f((0.4124 * v[0] + 0.3576 * v[1] + 0.1805 * v[2]) / 0.95047), y = f(0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]), z = f((0.0193 * v[0] + 0.1192 * v[1] + 0.9505 * v[2]) / 1.08883);
    return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

/// The least distance (ΔE 1976) between any two of them, in any eyes.
double leastDistance(const std::vector<QColor>& colors) {
    double least = 1e9;
    for (const Matrix& eyes : kEyes)
        for (std::size_t i = 0; i < colors.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                const Vector a = seen(colors[i], eyes), b = seen(colors[j], eyes);
                least = std::min(least, std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]));
            }
    return least;
}

TEST(Themes, SafeOnesCanBeToldApartByAnyEyes) {
    int safe = 0;
    for (const ThemeColors& theme : allThemes()) {
        if (!theme.id.startsWith("colour-blind")) continue;
        ++safe;
        // A ΔE of 2 to 3 is just seen; 12 is another colour at a glance.
        EXPECT_GT(leastDistance({theme.categories.begin(), theme.categories.end()}), 12) << theme.id.toStdString();
        EXPECT_GT(leastDistance(theme.series), 12) << theme.id.toStdString();
        EXPECT_GT(leastDistance({theme.good, theme.bad}), 60) << theme.id.toStdString();
    }
    EXPECT_EQ(safe, 2) << "light and dark";
    EXPECT_LT(leastDistance({allThemes()[0].good, allThemes()[0].bad}), 30) << "the test sees that red and green do not do";
}

TEST(Themes, TextIsReadOnWhateverItStandsOn) {
    const auto luminance = [](const QColor& c) { return std::pow((seen(c, kEyes[0])[0] + 16) / 116, 3); };
    for (const ThemeColors& theme : allThemes()) {
        const auto contrast = [&](const QColor& a, const QColor& b) { return (std::max(luminance(a), luminance(b)) + 0.05) / (std::min(luminance(a), luminance(b)) + 0.05); };
        for (const QColor& ground : {theme.window, theme.base, theme.raised}) {
            EXPECT_GT(contrast(theme.text, ground), 7) << theme.id.toStdString();
            EXPECT_GT(contrast(theme.muted, ground), 4.5) << theme.id.toStdString();
        }
        for (const QColor& category : theme.categories) EXPECT_GT(contrast(ThemeColors::textOn(category), category), 3) << theme.id.toStdString() << " " << category.name().toStdString();
    }
}

}  // namespace
}  // namespace ringside::gui
