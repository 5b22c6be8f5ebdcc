// ImportNotes: what a reader could not use: counted, located, never swallowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringside {

struct ImportNote {
    std::string what;    ///< "row with 9 columns instead of 13"
    std::string where;   ///< of the first: "file.txt:12"
    std::int64_t count = 0;
};

class ImportNotes {
public:
    void add(const std::string& what, const std::string& where, std::int64_t count = 1) {
        for (ImportNote& note : notes_)
            if (note.what == what) {
                note.count += count;
                return;
            }
        notes_.push_back({what, where, count});
    }
    const std::vector<ImportNote>& all() const { return notes_; }
    std::int64_t total() const {
        std::int64_t sum = 0;
        for (const ImportNote& note : notes_) sum += note.count;
        return sum;
    }

private:
    std::vector<ImportNote> notes_;
};

}  // namespace ringside
