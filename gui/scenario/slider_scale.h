// SliderScale: where a number stands on a slider. Wide ranges are drawn in equal factors, whole numbers in powers of two.
#pragma once

#include "model/base/value_spec.h"

namespace ringside::gui {

class SliderScale {
public:
    /// For a setting of that range which is mostly near `usual`: the slider reaches a factor of 64 to either side, within the range.
    /// REQUIRES: spec is of numbers.
    SliderScale(const ValueSpec& spec, double usual);

    /// Positions are 0 … steps(). A range of one value has no steps: no slider then.
    int steps() const { return steps_; }
    double valueAt(int position) const;
    /// The nearest position; values beyond the slider's ends stand at its ends.
    int positionOf(double value) const;

private:
    double low_ = 0, high_ = 1;
    bool whole_ = false, zero_ = false;  ///< zero_: position 0 is 0, which no factor reaches
    int steps_ = 0;
};

}  // namespace ringside::gui
