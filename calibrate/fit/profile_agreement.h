// Profile agreement: two calibrations side by side, entry by entry, each difference beside the spreads that both state.
//
// A spread is one standard deviation, so that of two calibrations of one machine two thirds of the entries should lie within one of the
// combined spreads √(a² + b²) and 95 % within two. docs/models/fits.md.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/cost/profile.h"

namespace ringside {

struct ProfileEntry {
    std::string group;  ///< "kernels: memory", "products", "collectives over loopback", "figures"
    std::string what;   ///< "all_reduce of 4.00 MiB, 2 ranks"
    double a = 0, b = 0;
    double spread = 0;  ///< of both together, relative

    double change() const { return b / a - 1; }
    double deviations() const;  ///< |ln(b/a)| in spreads
};

struct AgreementGroup {
    std::string name;
    std::size_t entries = 0;
    double bias = 0, typical = 0, spread = 0;  ///< medians: of the change, of its size, of the combined spread
    double withinOne = 0, withinTwo = 0;       ///< shares of the entries
};

struct ProfileAgreement {
    bool sameMachine = false;                ///< and versions, as far as both say
    std::vector<AgreementGroup> groups;
    AgreementGroup all;
    std::vector<ProfileEntry> farthest;      ///< beyond two spreads, the farthest first
    std::vector<std::string> onlyA, onlyB;   ///< kernels, types and curves that the other does not have
    std::vector<ProfileEntry> withoutSpread; ///< figures of the device and reference steps: they state none, so they count for nothing

    /// Nine in ten entries or more lie within two spreads, and there is at least one.
    bool agree() const { return all.entries > 0 && all.withinTwo >= 0.9; }
};

/// What both have measured. Entries of equal work only: another shape or size is another entry.
ProfileAgreement compareProfiles(const Profile& a, const Profile& b);

Json toJson(const ProfileAgreement& agreement);

}  // namespace ringside
