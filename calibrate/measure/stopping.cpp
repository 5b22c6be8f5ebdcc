#include "calibrate/measure/stopping.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "calibrate/fit/robust.h"
#include "model/base/check.h"

namespace ringside {
namespace {

/// Spread over median of what was seen; endless before the third sample.
class Noise {
public:
    void clear() { samples_.clear(); }
    void add(double seconds) {
        CHECK(seconds > 0 && std::isfinite(seconds));
        samples_.push_back(seconds);
    }
    std::size_t count() const { return samples_.size(); }
    double relative() const {
        if (samples_.size() < 3) return std::numeric_limits<double>::infinity();
        return scaledMad(samples_) / median(samples_);
    }

private:
    std::vector<double> samples_;
};

class RelativeError : public StoppingCriterion {
public:
    explicit RelativeError(double target) : target_(target) {}
    std::string_view name() const override { return "relative error"; }
    void reset() override { noise_.clear(); }
    void add(double seconds) override { noise_.add(seconds); }
    bool isDone() const override {
        // The median of n normal samples has √(π/2) times the standard error of their mean.
        return noise_.count() >= 3 && 1.2533 * noise_.relative() / std::sqrt(static_cast<double>(noise_.count())) <= target_;
    }

private:
    double target_;
    Noise noise_;
};

class StableNoise : public StoppingCriterion {
public:
    StableNoise(double tolerance, int window) : tolerance_(tolerance), window_(static_cast<std::size_t>(std::max(2, window))) {}
    std::string_view name() const override { return "stable noise"; }
    void reset() override {
        noise_.clear();
        history_.clear();
    }
    void add(double seconds) override {
        noise_.add(seconds);
        if (noise_.count() < 3) return;
        history_.push_back(noise_.relative());
        if (history_.size() > window_) history_.pop_front();
    }
    bool isDone() const override {
        if (history_.size() < window_) return false;
        const auto [least, most] = std::minmax_element(history_.begin(), history_.end());
        const double mean = std::accumulate(history_.begin(), history_.end(), 0.0) / static_cast<double>(history_.size());
        return *most - *least <= tolerance_ * mean;
    }

private:
    double tolerance_;
    std::size_t window_;
    Noise noise_;
    std::deque<double> history_;
};

class Either : public StoppingCriterion {
public:
    Either(std::unique_ptr<StoppingCriterion> a, std::unique_ptr<StoppingCriterion> b) : a_(std::move(a)), b_(std::move(b)) {}
    std::string_view name() const override { return a_->isDone() || !b_->isDone() ? a_->name() : b_->name(); }
    void reset() override {
        a_->reset();
        b_->reset();
    }
    void add(double seconds) override {
        a_->add(seconds);
        b_->add(seconds);
    }
    bool isDone() const override { return a_->isDone() || b_->isDone(); }

private:
    std::unique_ptr<StoppingCriterion> a_, b_;
};

}  // namespace

std::unique_ptr<StoppingCriterion> stopAtRelativeError(double relativeError) { return std::make_unique<RelativeError>(relativeError); }
std::unique_ptr<StoppingCriterion> stopAtStableNoise(double tolerance, int window) { return std::make_unique<StableNoise>(tolerance, window); }
std::unique_ptr<StoppingCriterion> stopAtEither(std::unique_ptr<StoppingCriterion> a, std::unique_ptr<StoppingCriterion> b) {
    return std::make_unique<Either>(std::move(a), std::move(b));
}

}  // namespace ringside
