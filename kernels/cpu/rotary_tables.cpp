#include "kernels/cpu/rotary_tables.h"

#include <cmath>

namespace ringside {

std::shared_ptr<const RotaryTable> RotaryTables::get(std::int64_t length, std::int64_t d, double base) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const RotaryTable>& table = tables_[{d, base}];
    if (table && static_cast<std::int64_t>(table->size()) >= length * d) return table;
    auto made = std::make_shared<RotaryTable>(static_cast<std::size_t>(length * d));
    const std::int64_t half = d / 2;
    for (std::int64_t t = 0; t < length; ++t) {
        float* row = made->data() + t * d;
        for (std::int64_t i = 0; i < half; ++i) {
            const double angle = static_cast<double>(t) * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(d));
            row[i] = static_cast<float>(std::cos(angle));
            row[half + i] = static_cast<float>(std::sin(angle));
        }
    }
    table = std::move(made);
    return table;
}

}  // namespace ringside
