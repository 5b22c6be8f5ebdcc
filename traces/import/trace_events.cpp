#include "traces/import/trace_events.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace ringside {
namespace {

constexpr std::size_t kChunk = 1 << 20;
/// Longer than any event that somebody wrote on purpose: whoever does not close by then is broken.
constexpr std::size_t kLongestEvent = 64 << 20;

/// Which field a key of an event names, by its length and letters: the hottest comparison of the reader.
JsonToken* fieldOf(TraceEvent& event, std::string_view key) {
    switch (key.size()) {
        case 2:
            if (key == "ts") return &event.ts;
            if (key == "id") return &event.id;
            if (key == "bp") return &event.binding;
            return nullptr;
        case 3:
            if (key == "cat") return &event.category;
            if (key == "pid") return &event.pid;
            if (key == "tid") return &event.tid;
            if (key == "dur") return &event.dur;
            if (key == "id2") return &event.id2;
            return nullptr;
        case 4: return key == "name" ? &event.name : nullptr;
        default: return nullptr;
    }
}

JsonToken* argumentOf(TraceEvent& event, std::string_view key) {
    switch (key.size()) {
        case 4: return key == "task" ? &event.task : nullptr;
        case 5: return key == "label" ? &event.label : nullptr;
        case 6:
            if (key == "stream") return &event.stream;
            if (key == "device") return &event.device;
            return nullptr;
        case 8: return key == "category" ? &event.countsAs : nullptr;
        case 11:
            if (key == "correlation") return &event.correlation;
            if (key == "External id" || key == "external id") return &event.externalId;
            return nullptr;
        case 15: return key == "Collective name" ? &event.collectiveName : nullptr;
        default: return nullptr;
    }
}

class Reader {
public:
    Reader(ByteSource& source, const std::string& name, TraceEventHandler& handler) : source_(source), name_(name), handler_(handler) {
        buffer_.resize(kChunk + JsonScan::kPadding);
        fill();
    }

    Result<bool> read() {
        if (size_ >= 3 && std::memcmp(at(), "\xef\xbb\xbf", 3) == 0) begin_ += 3;  // a byte-order mark
        const char first = peek();
        if (first == 0) {
            if (size_ > 0 || offset_ > 0) return badInput(name_, "holds nothing but white space; expected JSON of trace events");
            if (!source_.damage().empty()) return badInput(name_, source_.damage());
            return badInput(name_, "is empty; expected JSON of trace events");
        }
        if (first == '[') {
            ++begin_;
            sawEvents_ = true;
            if (!events(true)) return false;
        } else if (first == '{') {
            ++begin_;
            if (!members()) return false;
        } else {
            return badInput(name_, whatItIs());
        }
        if (!sawEvents_) return badInput(name_, "is JSON without 'traceEvents'; expected a trace of PyTorch's profiler, Chrome or Ringside");
        return true;
    }

private:
    const char* at() const { return buffer_.data() + begin_; }
    const char* end() const { return buffer_.data() + size_; }
    std::uint64_t offsetOf(const char* p) const { return offset_ + static_cast<std::uint64_t>(p - buffer_.data()); }

    std::string whatItIs() const {
        const std::string_view head(at(), size_ - begin_);
        if (head.starts_with("SQLite format 3")) return "is an SQLite database (of Nsight Systems?); export it as Chrome JSON, or profile with PyTorch's profiler";
        if (head.size() > 262 && head.substr(257, 5) == "ustar") return "is a tar archive; unpack it and name the traces in it";
        if (head.starts_with("PK\x03\x04")) return "is a zip archive; unpack it and name the traces in it";
        if (head.starts_with("<")) return "is HTML or XML; expected JSON of trace events";
        return fmt::format("is no JSON: it begins with byte 0x{:02x}; expected '{{' or '['", static_cast<unsigned char>(head.front()));
    }

    /// Moves what is left to the front and reads on; twice the room if it fills the buffer. False at the end of the file.
    bool fill() {
        if (begin_ > 0) {
            std::memmove(buffer_.data(), at(), size_ - begin_);
            offset_ += begin_;
            size_ -= begin_;
            begin_ = 0;
        }
        std::size_t room = buffer_.size() - JsonScan::kPadding - size_;
        if (room < kChunk / 2) {
            buffer_.resize(2 * buffer_.size());
            room = buffer_.size() - JsonScan::kPadding - size_;
        }
        const std::size_t n = source_.read(buffer_.data() + size_, room);
        size_ += n;
        std::memset(buffer_.data() + size_, 0, JsonScan::kPadding);
        return n > 0;
    }

    /// The next byte that is no white space, or 0 at the end of the file.
    char peek() {
        while (true) {
            while (begin_ < size_ && static_cast<unsigned char>(buffer_[begin_]) <= ' ') ++begin_;
            if (begin_ < size_) return buffer_[begin_];
            if (!fill()) return 0;
        }
    }

    void fault(const char* what) { handler_.fault(what, offsetOf(at()), number_); }
    bool goOn() {
        const std::uint64_t size = source_.fileSize();
        return handler_.goOn(size == 0 ? 1 : std::min(1.0, static_cast<double>(source_.fileBytesRead()) / static_cast<double>(size)));
    }

    // ---- the top level -----------------------------------------------------------------------------------------------

    bool members() {
        for (char c = peek(); c != '}'; c = peek()) {
            if (c == 0) {
                fault("the file ends within its JSON; what came before is used");
                return true;
            }
            if (c == ',') {
                ++begin_;
                continue;
            }
            std::string key;
            bool isEvents = false;
            const auto member = [&](JsonScan& scan) {
                key = std::string(scan.key().text);
                isEvents = scan.fine() && key == "traceEvents" && scan.peek() == '[';
                if (isEvents || !scan.fine()) return;
                const char* const valueBegin = (scan.peek(), scan.position());
                const JsonToken value = scan.value();
                if (scan.fine())
                    handler_.member(key, value.kind == JsonToken::Kind::String ? std::string_view(valueBegin, static_cast<std::size_t>(scan.position() - valueBegin)) : value.text);
            };
            if (!whole(member)) {
                fault("a member of the file is broken; stepped over");
                if (!sawEvents_ && seekEventsKey()) isEvents = true;
                else return true;
            }
            if (!isEvents) continue;
            sawEvents_ = true;
            if (peek() == '[') ++begin_;
            if (!events(false)) return false;
        }
        ++begin_;
        return true;
    }

    /// A broken member before the events: they are found by their name.
    bool seekEventsKey() {
        constexpr std::string_view kKey = "\"traceEvents\"";
        while (true) {
            const std::string_view rest(at(), size_ - begin_);
            const std::size_t found = rest.find(kKey);
            if (found != std::string_view::npos) {
                begin_ += found + kKey.size();
                if (peek() == ':') ++begin_;
                return peek() == '[';
            }
            begin_ = std::max(begin_, size_ - std::min(size_, kKey.size()));
            if (!fill()) return false;
        }
    }

    /// Runs `parse` on what is there, again with more where it was cut off, and steps over it. False if it is broken or the file ends.
    template <class Parse>
    bool whole(Parse parse) {
        while (true) {
            JsonScan scan(at(), end());
            parse(scan);
            if (scan.fine()) {
                begin_ = static_cast<std::size_t>(scan.position() - buffer_.data());
                return true;
            }
            incomplete_ = scan.state() == JsonScan::State::Incomplete;
            if (!incomplete_ || size_ - begin_ > kLongestEvent || !fill()) return false;
        }
    }

    // ---- the events --------------------------------------------------------------------------------------------------

    /// Up to and with the array's end. False if the handler has had enough.
    bool events(bool isWholeFile) {
        bool needsComma = false;
        while (true) {
            const char c = peek();
            switch (c) {
                case 0:
                    // Chrome's format lets an array that is the whole file go without its bracket.
                    if (!isWholeFile || !source_.damage().empty()) fault("the file ends within its events; those before are used");
                    return goOn();
                case ']': ++begin_; return goOn();
                case ',':
                    ++begin_;
                    if (!needsComma) fault("a comma too many between events");
                    needsComma = false;
                    continue;
                case '{':
                    if (needsComma) fault("no comma between two events");
                    break;
                default:
                    fault("something between the events that is none");
                    if (!resync()) return goOn();
                    needsComma = false;
                    continue;
            }
            const std::uint64_t chunk = offset_;
            TraceEvent event;
            if (whole([&](JsonScan& scan) { parse(scan, event); })) {
                event.number = number_++;
                handler_.event(event);
                needsComma = true;
            } else if (incomplete_ && size_ - begin_ <= kLongestEvent && !lostInTheMiddle()) {
                fault("the file ends within an event; those before are used");
                return goOn();
            } else {
                fault("an event that is no JSON; left out");
                ++number_;
                ++begin_;
                if (!resync()) return goOn();
                needsComma = false;
            }
            if (offset_ != chunk && !goOn()) return false;
        }
    }

    /// An event that reaches to the end of the file without closing: cut off, or broken with others behind it?
    bool lostInTheMiddle() const { return nextEvent(begin_ + 1) < size_; }

    void parse(JsonScan& scan, TraceEvent& event) {
        scan.peek();
        event = TraceEvent{};
        event.offset = offsetOf(scan.position());
        if (!scan.openObject()) return;
        do {
            const JsonToken key = scan.key();
            if (!scan.fine()) return;
            if (key.text == "ph") {
                const JsonToken phase = scan.value();
                event.phase = phase.text.size() == 1 ? phase.text[0] : 0;
            } else if (key.text == "args" && scan.peek() == '{') {
                arguments(scan, event);
            } else if (JsonToken* const field = fieldOf(event, key.text)) {
                *field = scan.value();
            } else {
                scan.value();
            }
        } while (scan.fine() && scan.nextMember());
    }

    static void arguments(JsonScan& scan, TraceEvent& event) {
        const char* const begin = scan.position();
        if (scan.openObject()) {
            do {
                const JsonToken key = scan.key();
                if (!scan.fine()) return;
                const JsonToken value = scan.value();
                if (JsonToken* const argument = argumentOf(event, key.text)) *argument = value;
            } while (scan.fine() && scan.nextMember());
        }
        event.isWritten = event.countsAs.kind == JsonToken::Kind::String;
        event.args = {JsonToken::Kind::Object, false, {begin, static_cast<std::size_t>(scan.position() - begin)}};
    }

    /// The place from `from` on of a bracket that opens an event: it stands after a comma or another bracket, and one of an
    /// event's keys follows. size_ if there is none.
    std::size_t nextEvent(std::size_t from) const {
        for (std::size_t i = from; i < size_; ++i) {
            if (buffer_[i] != '{') continue;
            std::size_t before = i;
            while (before > 0 && static_cast<unsigned char>(buffer_[before - 1]) <= ' ') --before;
            if (before > 0 && buffer_[before - 1] != ',' && buffer_[before - 1] != '}' && buffer_[before - 1] != '[') continue;
            std::size_t after = i + 1;
            while (after < size_ && static_cast<unsigned char>(buffer_[after]) <= ' ') ++after;
            const std::string_view rest(buffer_.data() + after, size_ - after);
            for (const std::string_view key : {"\"ph\"", "\"name\"", "\"cat\"", "\"ts\"", "\"pid\"", "\"tid\"", "\"args\"", "\"id\""})
                if (rest.starts_with(key)) return i;
        }
        return size_;
    }

    /// To the next event; false at the end of the file.
    bool resync() {
        while (true) {
            const std::size_t found = nextEvent(begin_);
            if (found < size_) {
                begin_ = found;
                return true;
            }
            // A few bytes stay: they may be the front of what is sought.
            begin_ = std::max(begin_, size_ - std::min<std::size_t>(size_, 64));
            const std::size_t had = size_ - begin_;
            if (!fill() || size_ <= had) return false;
        }
    }

    ByteSource& source_;
    const std::string& name_;
    TraceEventHandler& handler_;
    std::vector<char> buffer_;
    std::size_t begin_ = 0, size_ = 0;  ///< what is not read yet: buffer_[begin_, size_)
    std::uint64_t offset_ = 0;          ///< of the buffer in the content
    std::uint64_t number_ = 0;
    bool sawEvents_ = false, incomplete_ = false;
};

}  // namespace

Result<bool> readTraceEvents(ByteSource& source, const std::string& name, TraceEventHandler& handler) { return Reader(source, name, handler).read(); }

}  // namespace ringside
