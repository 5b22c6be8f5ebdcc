#include "traces/import/read_trace.h"

#include <utility>

#include <fmt/format.h>

#include "model/base/check.h"
#include "traces/import/event_values.h"
#include "traces/import/merge_ranks.h"
#include "traces/import/trace_assembly.h"
#include "traces/import/trace_events.h"

namespace ringside {
namespace {

constexpr int kOffsetBits = 48;

Result<ImportedTrace> readOne(const std::string& path, std::size_t index, const ReadTraceOptions& options) {
    TRY(ByteSource opened, ByteSource::open(path));
    const auto source = std::make_shared<ByteSource>(std::move(opened));
    TraceAssembly assembly(path, index, source->contentSize(), options);
    TRY(const bool finished, readTraceEvents(*source, path, assembly));
    if (!finished) return failure(ErrorCode::RuntimeFailure, path, "reading was cancelled");
    TRY(ImportedTrace imported, assembly.finish());
    if (!source->damage().empty()) imported.notes.add(source->damage() + "; what came before is used", path);
    imported.sources = {source};
    return imported;
}

}  // namespace

std::string_view nameOf(TraceFormat format) {
    switch (format) {
        case TraceFormat::Kineto: return "PyTorch profiler";
        case TraceFormat::Chrome: return "Chrome trace events";
        case TraceFormat::Ringside: return "Ringside";
    }
    return "?";
}

TraceOrigin originOf(std::uint64_t origin) { return {static_cast<std::size_t>(origin >> kOffsetBits), origin & ((std::uint64_t{1} << kOffsetBits) - 1)}; }

std::uint64_t originValue(std::size_t file, std::uint64_t offset) { return static_cast<std::uint64_t>(file) << kOffsetBits | offset; }

Result<std::string> ImportedTrace::eventOf(std::size_t slice) const {
    if (trace.origin.empty()) return badInput(trace.title, "this trace was not read from a file; its slices have no events");
    CHECK(slice < trace.origin.size());  // whoever has taken the rest of the trace elsewhere may still ask
    const TraceOrigin origin = originOf(trace.origin[slice]);
    if (origin.file >= sources.size()) return badInput(trace.title, "this slice was made from no event of a file");
    for (std::size_t size = 4096; size <= (std::size_t{64} << 20); size *= 8) {
        TRY(std::string text, sources[origin.file]->readAt(origin.offset, size));
        const std::size_t length = text.size();
        text.append(JsonScan::kPadding, '\0');
        JsonScan scan(text.data(), text.data() + length);
        const JsonToken object = scan.value();
        if (scan.fine() && object.kind == JsonToken::Kind::Object) return std::string(object.text);
        if (scan.state() == JsonScan::State::Broken || length < size) break;
    }
    return badInput(files[origin.file], fmt::format("there is no event at byte {} any more; was the file changed? Open it again", origin.offset));
}

Result<std::vector<std::pair<std::string, std::string>>> ImportedTrace::argsOf(std::size_t slice) const {
    TRY(std::string event, eventOf(slice));
    const std::size_t length = event.size();
    event.append(JsonScan::kPadding, '\0');
    std::vector<std::pair<std::string, std::string>> args;
    forEachMember(std::string_view(event).substr(0, length), [&](std::string_view key, const JsonToken& value) {
        if (key != "args" || value.kind != JsonToken::Kind::Object) return;
        forEachMember(value.text, [&](std::string_view name, const JsonToken& token) { args.emplace_back(unescape(name), textOf(token)); });
    });
    return args;
}

Result<ImportedTrace> readTrace(const std::vector<std::string>& paths, const ReadTraceOptions& options) {
    CHECK(!paths.empty());
    if (paths.size() == 1) return readOne(paths.front(), 0, options);
    if (paths.size() >= 65535) return badInput(paths.front(), fmt::format("{} files were named; at most 65,534 can be shown together", paths.size()));
    std::vector<ImportedTrace> parts;
    for (std::size_t p = 0; p < paths.size(); ++p) {
        ReadTraceOptions each = options;
        if (options.progress)
            each.progress = [&, p](double fraction) { options.progress((static_cast<double>(p) + fraction) / static_cast<double>(paths.size())); };
        TRY(ImportedTrace part, readOne(paths[p], 0, each));
        parts.push_back(std::move(part));
    }
    return mergeRanks(std::move(parts));
}

}  // namespace ringside
