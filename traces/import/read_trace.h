// readTrace: other people's traces, and our own, as a Trace. PyTorch-profiler (Kineto) JSON, Chrome trace event JSON, Ringside's
// export; plain or gzip-compressed, told by content. docs/formats/torch-profiler.md, docs/formats/chrome-trace.md.
//
//     Result<ImportedTrace> imported = readTrace({"rank0.json.gz", "rank1.json.gz"});
//     imported->trace                     the slices of all ranks on one time axis
//     imported->notes.all()               what was left out or guessed, how often, where first: show it
//     imported->argsOf(slice)             the event as it stands in its file
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/result.h"
#include "traces/import/byte_source.h"
#include "traces/import/import_notes.h"
#include "traces/trace.h"

namespace ringside {

enum class TraceFormat : std::uint8_t { Kineto, Chrome, Ringside };
std::string_view nameOf(TraceFormat format);  ///< "PyTorch profiler", "Chrome trace events", "Ringside"

struct TraceDevice {
    std::int64_t rank = 0;
    std::int64_t id = 0;
    std::string name;        ///< "NVIDIA A100-SXM4-80GB"
    Bytes memory = 0;        ///< 0 if not said
};

/// What a file says about where it comes from.
struct TraceMetadata {
    std::vector<TraceDevice> devices;   ///< those that a rank used, or all that a file names if none was used
    std::string backend;                ///< "nccl", "gloo"; empty if not said
    std::int64_t worldSize = 0;         ///< 0 if not said
    std::optional<std::int64_t> baseTimeNanoseconds;  ///< since 1970, of the trace's time 0; empty if the file has no such clock
    std::vector<std::pair<std::string, std::string>> other;  ///< further members of the first file: name and JSON, cut at 1 KiB
};

/// How the clocks of several files were brought together (traces/import/merge_ranks.h).
struct RankAlignment {
    std::int64_t rank = 0;
    enum class Method : std::uint8_t { Reference, Collectives, OwnClock, None } method = Method::Reference;
    Time shift;              ///< that was added to this rank's times
    std::int64_t anchors = 0;  ///< collectives that it shares with ranks that were already placed
    Time residual, worst;    ///< how far those ends are apart afterwards: median and greatest
};

struct ImportedTrace {
    Trace trace;
    ImportNotes notes;
    TraceFormat format = TraceFormat::Chrome;
    TraceMetadata metadata;
    std::vector<std::string> files;     ///< by the number in Trace::origin
    std::vector<RankAlignment> alignment;  ///< one per rank where several files were read; empty for one

    /// The event of a slice as JSON, read again from its file: for the details of a click. O(event), for compressed files up to
    /// 16 MiB more. Fails where the slice is from no event, or the file is gone. Not for two threads at once.
    Result<std::string> eventOf(std::size_t slice) const;
    /// Its args, member by member: name and value, strings without quotes. Same cost.
    Result<std::vector<std::pair<std::string, std::string>>> argsOf(std::size_t slice) const;

    std::vector<std::shared_ptr<ByteSource>> sources;  ///< the files, for eventOf
};

struct ReadTraceOptions {
    std::function<void(double)> progress;          ///< 0 … 1, a few times per MiB, in the calling thread
    const std::atomic<bool>* cancel = nullptr;     ///< set by another thread: readTrace fails soon with "was cancelled"
};

/// One file, or one per rank; the ranks are brought onto one time axis by merge_ranks. Broken parts are noted and stepped over.
/// Fails (bad input) where a file cannot be read at all or has not one slice that can be used. REQUIRES: at least one path.
Result<ImportedTrace> readTrace(const std::vector<std::string>& paths, const ReadTraceOptions& options = {});

/// The file and the byte that a value of Trace::origin names.
struct TraceOrigin {
    std::size_t file = 0;
    std::uint64_t offset = 0;
};
TraceOrigin originOf(std::uint64_t origin);
std::uint64_t originValue(std::size_t file, std::uint64_t offset);  ///< REQUIRES: file < 65535, offset < 2^48

}  // namespace ringside
