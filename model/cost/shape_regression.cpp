#include "model/cost/shape_regression.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr std::size_t kNeighbours = 20;
constexpr double kHit = 1e-12;        ///< squared distance below which a shape is the sample
constexpr double kRadiusSlack = 1.1;  ///< the farthest neighbour still counts a little, also where all are equally far
constexpr double kRidge = 0.01;       ///< holds slopes that the neighbours say nothing about at 0
constexpr double kBeyond = 0.25;      ///< how far a trend may leave the neighbours' range, as a share of it

double squaredDistance(const ShapeRegression::Point& a, const ShapeRegression::Point& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

struct Neighbour {
    double squared;
    std::size_t index;
};

}  // namespace

ShapeRegression::Point ShapeRegression::pointOf(const GemmShape& shape, double bytesPerFlop) {
    const auto log = [](std::int64_t x) { return std::log2(static_cast<double>(std::max<std::int64_t>(1, x))); };
    return {log(shape.batch), log(shape.m), log(shape.n), log(shape.k), bytesPerFlop > 0 ? std::log2(bytesPerFlop) : 0.0};
}

void ShapeRegression::add(const Point& point, double value) {
    for (Sample& sample : samples_)
        if (squaredDistance(sample.point, point) < kHit) {
            sample.value += (value - sample.value) / ++sample.count;
            return;
        }
    samples_.push_back({point, value, 1});
}

double ShapeRegression::at(const Point& point) const {
    CHECK(!samples_.empty());
    std::array<Neighbour, kNeighbours> nearest;
    std::size_t count = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
        const double squared = squaredDistance(samples_[i].point, point);
        if (squared < kHit) return samples_[i].value;
        if (count == kNeighbours && squared >= nearest[count - 1].squared) continue;
        std::size_t place = count < kNeighbours ? count++ : kNeighbours - 1;
        for (; place > 0 && nearest[place - 1].squared > squared; --place) nearest[place] = nearest[place - 1];
        nearest[place] = {squared, i};
    }

    // Franke and Little's weights: endless at the sample, zero at the radius, so that neighbours come and go smoothly.
    constexpr int kSize = static_cast<int>(kDimensions) + 1;
    using Matrix = Eigen::Matrix<double, kSize, kSize>;
    using Vector = Eigen::Matrix<double, kSize, 1>;
    const double radius = kRadiusSlack * std::sqrt(nearest[count - 1].squared);
    Matrix normal = Matrix::Zero();
    Vector right = Vector::Zero();
    double least = samples_[nearest[0].index].value, most = least, spread = 0;
    for (std::size_t j = 0; j < count; ++j) {
        const Sample& sample = samples_[nearest[j].index];
        const double distance = std::sqrt(nearest[j].squared);
        const double root = (radius - distance) / (radius * distance);
        const double weight = root * root;
        Vector row;
        row(0) = 1;
        for (std::size_t d = 0; d < kDimensions; ++d) row(static_cast<int>(d) + 1) = sample.point[d] - point[d];
        normal += weight * row * row.transpose();
        right += weight * sample.value * row;
        // The slopes' own scale, without the weights' pole: a ridge measured by it does not flatten the surface near a sample.
        const double soft = (radius - distance) / (radius * (distance + 1));
        spread += soft * soft * nearest[j].squared;
        least = std::min(least, sample.value);
        most = std::max(most, sample.value);
    }
    for (int d = 1; d < kSize; ++d) normal(d, d) += kRidge * spread + 1e-12;
    const double value = normal.ldlt().solve(right)(0);
    const double slack = kBeyond * (most - least);
    return std::isfinite(value) ? std::clamp(value, least - slack, most + slack) : samples_[nearest[0].index].value;
}

}  // namespace ringside
