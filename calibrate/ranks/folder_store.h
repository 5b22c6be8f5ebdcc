// FolderStore: a KeyValueStore of one file per key in a folder that all ranks see. The folder must be new for each run: files that
// an earlier run left there would be taken for this one's.
#pragma once

#include <memory>

#include "calibrate/ranks/key_value_store.h"

namespace ringside {

/// Makes the folder if there is none. Fails (runtime failure) when it cannot be written to.
Result<std::unique_ptr<KeyValueStore>> makeFolderStore(const std::string& folder);

}  // namespace ringside
