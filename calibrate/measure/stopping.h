// Stopping criteria: when enough has been measured.
//
// After NVBench's: a criterion sees every sample that counts and says when more would not help. Limits on number and time are the
// sampler's (sampler.h).
#pragma once

#include <memory>
#include <string_view>

namespace ringside {

class StoppingCriterion {
public:
    virtual ~StoppingCriterion() = default;

    virtual std::string_view name() const = 0;
    virtual void reset() = 0;               ///< before another series
    virtual void add(double seconds) = 0;   ///< REQUIRES: finite, above 0
    virtual bool isDone() const = 0;
};

/// Done when the median is known to `relativeError` (one standard error, from the median absolute deviation).
std::unique_ptr<StoppingCriterion> stopAtRelativeError(double relativeError = 0.005);

/// Done when the noise itself (spread over median) has settled: its last `window` values differ by at most `tolerance` of their mean.
/// For work whose noise is of its own nature, so that no relative error is ever reached.
std::unique_ptr<StoppingCriterion> stopAtStableNoise(double tolerance = 0.05, int window = 16);

/// Done when either is.
std::unique_ptr<StoppingCriterion> stopAtEither(std::unique_ptr<StoppingCriterion> a, std::unique_ptr<StoppingCriterion> b);

}  // namespace ringside
