#include "traces/import/nccl_tests.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "model/base/json_cursor.h"
#include "traces/import/gzip_text.h"

namespace ringside {
namespace {

std::vector<std::string> words(std::string_view line) {
    std::vector<std::string> out;
    std::size_t i = 0;
    while (i < line.size()) {
        while (i < line.size() && std::isspace(static_cast<unsigned char>(line[i]))) ++i;
        const std::size_t begin = i;
        while (i < line.size() && !std::isspace(static_cast<unsigned char>(line[i]))) ++i;
        if (i > begin) out.emplace_back(line.substr(begin, i - begin));
    }
    return out;
}

template <class T>
std::optional<T> number(const std::string& word) {
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
}

bool usable(const NcclTestsTiming& timing) { return std::isfinite(timing.timeUs) && timing.timeUs > 0; }

const std::vector<std::string> kColumns = {"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong"};

/// The text form, line by line.
class TextReader {
public:
    TextReader(NcclTestsTable& table, const std::string& source) : table_(table), source_(source) {}

    void line(std::string_view text, int number) {
        const std::vector<std::string> w = words(text);
        if (w.empty()) return;
        if (w[0].front() == '#') comment(w);
        else if (std::isdigit(static_cast<unsigned char>(w[0].front()))) row(w, fmt::format("{}:{}", source_, number));
        else if (!table_.rows.empty()) table_.notes.add("line that is neither a comment nor a row", fmt::format("{}:{}", source_, number));
    }

private:
    void comment(std::vector<std::string> w) {
        if (w[0] == "#") w.erase(w.begin());
        else w[0].erase(0, 1);
        if (w.empty()) return;
        const auto starts = [&](std::initializer_list<const char*> prefix) {
            std::size_t i = 0;
            for (const char* p : prefix)
                if (i >= w.size() || w[i++] != p) return false;
            return true;
        };
        if (starts({"Collective", "test", "starting:"}) && w.size() > 3) table_.op = collectiveOfNcclTests(w[3]);
        else if (w[0] == "Rank" && w.size() > 1) rank(w);
        else if (w[0] == "size" && std::find(w.begin(), w.end(), "time") != w.end()) columns_ = w;
        for (const std::string& word : w)
            if (word.starts_with("nccl-library=")) table_.ncclVersion = word.substr(word.find('=') + 1);
        if (w[0] == "nThread")
            for (std::size_t i = 0; i + 1 < w.size(); i += 2)
                if (w[i] == "nThread" || w[i] == "nGpus") perProcess_ *= number<std::int64_t>(w[i + 1]).value_or(1);
        if (ranks_.empty() && w[0] == "nThread") table_.ranks = perProcess_;
    }

    // "Rank  0 Group  0 Pid 123 on host device  0 [0x07] NVIDIA H100": everything behind the bracket is the device.
    void rank(const std::vector<std::string>& w) {
        if (const auto id = number<std::int64_t>(w[1])) ranks_.insert(*id);
        table_.ranks = static_cast<std::int64_t>(ranks_.size());
        if (!table_.device.empty()) return;
        const auto bracket = std::find_if(w.begin(), w.end(), [](const std::string& word) { return word.ends_with("]"); });
        if (bracket == w.end()) return;
        for (auto it = bracket + 1; it != w.end(); ++it) table_.device += (table_.device.empty() ? "" : " ") + *it;
    }

    void row(const std::vector<std::string>& w, const std::string& where) {
        if (w.size() < columns_.size()) {
            table_.notes.add(fmt::format("row with {} columns instead of {}", w.size(), columns_.size()), where);
            return;
        }
        NcclTestsRow row;
        NcclTestsTiming timing[2];
        int side = -1;
        bool bad = false;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const std::string &column = columns_[i], &word = w[i];
            const auto real = [&](double& to) {
                const auto value = number<double>(word);
                if (value) to = *value;
                else if (word != "N/A") bad = true;
            };
            const auto whole = [&](std::int64_t& to) {
                const auto value = number<std::int64_t>(word);
                if (value) to = *value;
                else bad = true;
            };
            if (column == "size") whole(row.bytes);
            else if (column == "count") whole(row.count);
            else if (column == "type") row.type = word;
            else if (column == "redop") row.redop = word;
            else if (column == "root") whole(row.root);
            else if (column == "time" && side < 1) real(timing[++side].timeUs);
            else if (column == "algbw" && side >= 0) real(timing[side].algbwGbPerS);
            else if (column == "busbw" && side >= 0) real(timing[side].busbwGbPerS);
            else if ((column == "#wrong" || column == "error") && side >= 0) timing[side].wrong = number<std::int64_t>(word);
        }
        if (bad || row.bytes < 0) {
            table_.notes.add("row with a word where a number belongs", where);
            return;
        }
        if (usable(timing[0])) row.outOfPlace = timing[0];
        if (usable(timing[1])) row.inPlace = timing[1];
        if (!row.outOfPlace && !row.inPlace) {
            table_.notes.add("row without a time above 0", where);
            return;
        }
        table_.rows.push_back(std::move(row));
    }

    NcclTestsTable& table_;
    const std::string& source_;
    std::vector<std::string> columns_ = kColumns;
    std::set<std::int64_t> ranks_;
    std::int64_t perProcess_ = 1;
};

/// JSON numbers may be strings ("nan", "N/A"); what is no number is missing.
std::optional<double> looseNumber(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return std::nullopt;
    if (found->is_number()) return found->get<double>();
    if (found->is_string()) return number<double>(found->get<std::string>());
    return std::nullopt;
}

std::optional<NcclTestsTiming> timingFromJson(const Json& row, const char* key) {
    const auto found = row.find(key);
    if (found == row.end() || !found->is_object()) return std::nullopt;
    NcclTestsTiming timing;
    timing.timeUs = looseNumber(*found, "time").value_or(0);
    timing.algbwGbPerS = looseNumber(*found, "alg_bw").value_or(0);
    timing.busbwGbPerS = looseNumber(*found, "bus_bw").value_or(0);
    if (const auto wrong = looseNumber(*found, "nwrong")) timing.wrong = static_cast<std::int64_t>(*wrong);
    if (!usable(timing)) return std::nullopt;
    return timing;
}

std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return {};
    return found->is_string() ? found->get<std::string>() : found->is_number() ? found->dump() : std::string();
}

Result<void> parseJsonForm(NcclTestsTable& table, std::string_view content, const std::string& source) {
    TRY(const Json json, parseJson(content, source));
    if (!json.is_object()) return badInput(source, "is JSON but not that of nccl-tests: expected an object with 'results'");
    const auto results = json.find("results");
    if (results == json.end() || !results->is_array()) return badInput(source, "is JSON but not that of nccl-tests: it has no 'results'");
    table.ncclVersion = text(json, "nccl_version");
    // The arguments begin with the program; of `env` nothing is read, as it holds whatever the user's shell did.
    if (const auto args = json.find("args"); args != json.end() && args->is_array())
        for (const Json& word : *args)
            if (word.is_string() && table.op.empty()) table.op = collectiveOfNcclTests(word.get<std::string>());
    if (const auto devices = json.find("devices"); devices != json.end() && devices->is_array()) {
        table.ranks = static_cast<std::int64_t>(devices->size());
        if (!devices->empty() && devices->front().is_object()) table.device = text(devices->front(), "device_info");
    }
    std::size_t index = 0;
    for (const Json& result : *results) {
        const std::string where = fmt::format("{}: results[{}]", source, index++);
        const auto bytes = result.is_object() ? looseNumber(result, "size") : std::nullopt;
        if (!bytes || *bytes < 0) {
            table.notes.add("result without a size", where);
            continue;
        }
        NcclTestsRow row;
        row.bytes = static_cast<std::int64_t>(*bytes);
        row.count = static_cast<std::int64_t>(looseNumber(result, "count").value_or(0));
        row.root = static_cast<std::int64_t>(looseNumber(result, "root").value_or(-1));
        row.type = text(result, "type");
        row.redop = text(result, "redop");
        row.outOfPlace = timingFromJson(result, "out_of_place");
        row.inPlace = timingFromJson(result, "in_place");
        if (!row.outOfPlace && !row.inPlace) table.notes.add("result without a time above 0", where);
        else table.rows.push_back(std::move(row));
    }
    return {};
}

}  // namespace

std::string collectiveOfNcclTests(std::string_view name) {
    if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name = name.substr(slash + 1);
    std::string plain;
    for (const char c : name)
        if (std::isalpha(static_cast<unsigned char>(c))) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (plain.ends_with("perf")) plain.resize(plain.size() - 4);
    constexpr std::array<std::pair<std::string_view, const char*>, 9> kNames{{{"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
        {"broadcast", "broadcast"}, {"reduce", "reduce"}, {"alltoall", "all_to_all"}, {"sendrecv", "send_recv"}, {"gather", "gather"}, {"scatter", "scatter"}}};
    for (const auto& [theirs, ours] : kNames)
        if (plain == theirs) return ours;
    return {};
}

Result<NcclTestsTable> parseNcclTests(std::string_view content, const std::string& source) {
    NcclTestsTable table;
    const auto first = content.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && content[first] == '{') {
        TRY_VOID(parseJsonForm(table, content, source));
    } else {
        TextReader reader(table, source);
        int number = 1;
        for (std::size_t begin = 0; begin < content.size(); ++number) {
            const std::size_t end = std::min(content.find('\n', begin), content.size());
            reader.line(content.substr(begin, end - begin), number);
            begin = end + 1;
        }
    }
    if (table.rows.empty())
        return badInput(source, fmt::format("holds no row of nccl-tests that can be used ({} were left out); expected lines of size, count, type, redop, root, time, algbw, busbw",
                                            table.notes.total()));
    return table;
}

Result<NcclTestsTable> readNcclTests(const std::string& path) {
    TRY(const std::string content, readMaybeGzip(path));
    return parseNcclTests(content, path);
}

}  // namespace ringside
