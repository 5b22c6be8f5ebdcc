#include "traces/import/torch_profiler_kernels.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/base/dtype.h"
#include "traces/import/gzip_text.h"
#include "traces/import/nccl_tests.h"

namespace ringside {
namespace {

using Value = nlohmann::json;

/// Builds values on the way and hands each element of "traceEvents" out as soon as it is complete, so that only one is held.
class EventStream : public nlohmann::json_sax<Value> {
public:
    explicit EventStream(std::function<void(Value&&)> onEvent) : onEvent_(std::move(onEvent)) {}

    const Value& rest() const { return root_; }  ///< the document without its events
    bool sawEvents() const { return sawEvents_; }
    std::size_t errorByte() const { return errorByte_; }

    bool null() override { return put(nullptr); }
    bool boolean(bool v) override { return put(v); }
    bool number_integer(number_integer_t v) override { return put(v); }
    bool number_unsigned(number_unsigned_t v) override { return put(v); }
    bool number_float(number_float_t v, const string_t&) override { return put(v); }
    bool string(string_t& v) override { return put(std::move(v)); }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return open(Value::object()); }
    bool start_array(std::size_t) override { return open(Value::array()); }
    bool key(string_t& k) override {
        keys_.back() = std::move(k);
        return true;
    }
    bool end_object() override { return shut(); }
    bool end_array() override { return shut(); }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
        errorByte_ = position;
        return false;
    }

private:
    bool open(Value value) {
        if (stack_.size() == 1 && stack_.back().is_object() && keys_.back() == "traceEvents" && value.is_array()) sawEvents_ = true;
        stack_.push_back(std::move(value));
        keys_.emplace_back();
        return true;
    }
    bool shut() {
        Value value = std::move(stack_.back());
        stack_.pop_back();
        keys_.pop_back();
        return put(std::move(value));
    }
    bool put(Value value) {
        if (stack_.empty()) {
            root_ = std::move(value);
            return true;
        }
        Value& parent = stack_.back();
        const bool isEvent = stack_.size() == 2 && parent.is_array() && stack_.front().is_object() && keys_.front() == "traceEvents";
        if (isEvent) onEvent_(std::move(value));
        else if (parent.is_array()) parent.push_back(std::move(value));
        else parent[keys_.back()] = std::move(value);
        if (stack_.size() == 1) root_ = stack_.front();
        return true;
    }

    std::function<void(Value&&)> onEvent_;
    std::vector<Value> stack_;
    std::vector<std::string> keys_;  // per open value: the key that is being filled
    Value root_;
    bool sawEvents_ = false;
    std::size_t errorByte_ = 0;
};

std::string textOf(const Value& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
/// Numbers arrive as numbers or as strings.
std::optional<double> numberOf(const Value& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end()) return std::nullopt;
    if (found->is_number()) return found->get<double>();
    if (!found->is_string()) return std::nullopt;
    const std::string text = found->get<std::string>();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end != text.c_str() && *end == '\0' ? std::optional(value) : std::nullopt;
}
std::optional<std::int64_t> idOf(const Value& object, const char* key) {
    const auto value = numberOf(object, key);
    return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

/// PyTorch's spellings: scalar types ("Float", "c10::BFloat16") and C++ ones ("float", "double").
std::optional<DType> dtypeOf(std::string name) {
    if (const auto colon = name.rfind(':'); colon != std::string::npos) name = name.substr(colon + 1);
    if (name == "Float" || name == "float") return DType::Fp32;
    if (name == "Half") return DType::Fp16;
    if (name == "BFloat16") return DType::Bf16;
    if (name == "Double" || name == "double") return DType::Fp64;
    if (name == "Long" || name == "long int") return DType::Int64;
    if (name == "Int" || name == "int") return DType::Int32;
    if (name == "Char" || name == "Byte" || name == "signed char" || name == "unsigned char") return DType::Int8;
    if (name == "Bool" || name == "bool") return DType::Bool;
    if (name.starts_with("Float8")) return DType::Fp8;
    return std::nullopt;
}

using Dims = std::vector<std::int64_t>;
std::vector<Dims> dimsOf(const Value& args) {
    std::vector<Dims> out;
    const auto found = args.find("Input Dims");
    if (found == args.end() || !found->is_array()) return out;
    for (const Value& tensor : *found) {
        Dims dims;
        if (tensor.is_array())
            for (const Value& d : tensor)
                if (d.is_number_integer()) dims.push_back(d.get<std::int64_t>());
        out.push_back(std::move(dims));
    }
    return out;
}
std::vector<std::string> typesOf(const Value& args) {
    std::vector<std::string> out;
    const auto found = args.find("Input type");
    if (found != args.end() && found->is_array())
        for (const Value& type : *found) out.push_back(type.is_string() ? type.get<std::string>() : std::string());
    return out;
}

/// Where the two factors stand among an operator's inputs.
std::optional<std::size_t> firstFactor(const std::string& op) {
    if (op == "aten::mm" || op == "aten::bmm" || op == "aten::_scaled_mm") return 0;
    if (op == "aten::addmm" || op == "aten::baddbmm" || op == "aten::_addmm_activation") return 1;
    return std::nullopt;
}

struct OpSpan {
    double begin, end;
    std::size_t gemm;
};

class ProfileReader {
public:
    explicit ProfileReader(const std::string& source) : source_(source) {}

    void event(Value&& e) {
        const std::string where = fmt::format("{}: traceEvents[{}]", source_, out_.events);
        ++out_.events;
        if (!e.is_object() || textOf(e, "ph") != "X") return;
        std::string category = textOf(e, "cat");
        std::transform(category.begin(), category.end(), category.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        static const Value kNone = Value::object();
        const auto found = e.find("args");
        const Value& args = found != e.end() && found->is_object() ? *found : kNone;
        const std::string name = textOf(e, "name");
        const auto begin = numberOf(e, "ts"), duration = numberOf(e, "dur");
        if (category == "cpu_op" || category == "operator") {
            if (const auto factor = firstFactor(name)) gemm(e, args, name, *factor, begin, duration, where);
            else if (name == "record_param_comms") announced(args);
        } else if (category == "user_annotation" && name.starts_with("gloo:")) {
            gloo(args, name, duration, where);
        } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "runtime") {
            if (const auto correlation = idOf(args, "correlation"))
                launches_[*correlation] = {threadOf(e), begin.value_or(-1)};
        } else if (category == "kernel") {
            out_.hasDevice = true;
            if (!duration || *duration <= 0) return out_.notes.add("kernel without a duration", where);
            if (name.find("nccl") != std::string::npos) ncclKernels_.push_back({args, *duration, where});
            else kernels_.push_back({idOf(args, "External id").value_or(-1), idOf(args, "correlation").value_or(-1), *duration * 1e-6});
        }
    }

    ProfiledKernels finish(const Value& rest) {
        if (const auto info = rest.find("distributedInfo"); info != rest.end() && info->is_object())
            out_.worldSize = idOf(*info, "world_size").value_or(0);
        if (out_.hasDevice) joinKernels();
        else
            for (std::size_t i = 0; i < gemms_.size(); ++i) gemms_[i].seconds = cpuSeconds_[i];
        for (ProfiledGemm& gemm : gemms_) {
            if (gemm.seconds > 0) out_.gemms.push_back(std::move(gemm));
            else out_.notes.add("product without a kernel that could be joined to it", source_);
        }
        for (const NcclKernel& kernel : ncclKernels_) nccl(kernel.args, kernel.durationUs, kernel.where);
        for (ProfiledCollective& collective : out_.collectives) {
            if (collective.ranks == 0) collective.ranks = out_.worldSize;
            // Gloo's annotation names the input: of an all-gather, one rank's part.
            if (collective.backend == "gloo" && collective.op == "all_gather") collective.bytes *= std::max<std::int64_t>(1, collective.ranks);
        }
        return std::move(out_);
    }

private:
    using Thread = std::pair<std::string, std::string>;
    static Thread threadOf(const Value& e) {
        const auto word = [&](const char* key) {
            const auto found = e.find(key);
            return found == e.end() ? std::string() : found->dump();
        };
        return {word("pid"), word("tid")};
    }

    void gemm(const Value& e, const Value& args, const std::string& name, std::size_t factor, std::optional<double> begin, std::optional<double> duration,
              const std::string& where) {
        const std::vector<Dims> dims = dimsOf(args);
        if (dims.size() < factor + 2) return out_.notes.add("product without 'Input Dims' (profile with record_shapes=True)", where);
        const Dims &a = dims[factor], &b = dims[factor + 1];
        const bool batched = name == "aten::bmm" || name == "aten::baddbmm";
        const std::size_t rank = batched ? 3 : 2;
        if (a.size() != rank || b.size() != rank || a[rank - 1] != b[rank - 2] || std::min({a[0], a[rank - 2], a[rank - 1], b[rank - 1]}) < 1)
            return out_.notes.add("product whose dimensions do not fit", where);
        const std::vector<std::string> types = typesOf(args);
        const auto dtype = types.size() > factor ? dtypeOf(types[factor]) : std::nullopt;
        if (!dtype) return out_.notes.add("product of an unknown type", where);
        ProfiledGemm gemm;
        gemm.op = name;
        gemm.dtype = std::string(nameOf(*dtype));
        gemm.batch = batched ? a[0] : 1;
        gemm.m = a[rank - 2];
        gemm.k = a[rank - 1];
        gemm.n = b[rank - 1];
        if (const auto id = idOf(args, "External id")) byExternalId_[*id] = gemms_.size();
        if (begin && duration) spans_[threadOf(e)].push_back({*begin, *begin + *duration, gemms_.size()});
        gemms_.push_back(std::move(gemm));
        cpuSeconds_.push_back(duration.value_or(0) * 1e-6);
    }

    /// Newer traces: the kernel bears its operator's External id. Older: it shares a correlation with a launch, which lies within the
    /// operator's time on the same thread.
    void joinKernels() {
        for (auto& [thread, spans] : spans_) std::sort(spans.begin(), spans.end(), [](const OpSpan& a, const OpSpan& b) { return a.begin < b.begin; });
        for (const Kernel& kernel : kernels_) {
            std::optional<std::size_t> gemm;
            const auto launch = launches_.find(kernel.correlation);
            if (launch != launches_.end()) {
                const auto spans = spans_.find(launch->second.thread);
                if (spans != spans_.end()) {
                    auto after = std::upper_bound(spans->second.begin(), spans->second.end(), launch->second.begin, [](double t, const OpSpan& s) { return t < s.begin; });
                    if (after != spans->second.begin() && (after - 1)->end >= launch->second.begin) gemm = (after - 1)->gemm;
                }
            } else if (const auto direct = byExternalId_.find(kernel.externalId); direct != byExternalId_.end()) {
                gemm = direct->second;
            }
            if (gemm) gemms_[*gemm].seconds += kernel.seconds;
        }
    }

    /// What record_param_comms says of a collective, for kernels that do not repeat it.
    void announced(const Value& args) {
        if (const auto id = idOf(args, "External id"); id && args.contains("Collective name")) announced_[*id] = args;
    }

    void nccl(const Value& kernelArgs, double durationUs, const std::string& where) {
        const Value* args = &kernelArgs;
        if (!args->contains("Collective name"))
            if (const auto id = idOf(kernelArgs, "External id"); id && announced_.contains(*id)) args = &announced_.at(*id);
        const std::string collective = textOf(*args, "Collective name");
        if (collective.empty()) return out_.notes.add("NCCL kernel that does not say what it moves", where);
        ProfiledCollective out;
        out.op = opOf(collective);
        if (out.op.empty()) return out_.notes.add(fmt::format("collective '{}' of no known kind", collective), where);
        const auto dtype = dtypeOf(textOf(*args, "dtype"));
        const auto in = numberOf(*args, "In msg nelems"), outElements = numberOf(*args, "Out msg nelems");
        const auto elements = out.op == "all_gather" ? outElements : in;
        if (!dtype || !elements || *elements < 1) return out_.notes.add("NCCL kernel without size or type", where);
        out.backend = "nccl";
        out.dtype = std::string(nameOf(*dtype));
        out.bytes = static_cast<std::int64_t>(*elements) * sizeOf(*dtype);
        out.ranks = idOf(*args, "Group size").value_or(0);
        out.seconds = durationUs * 1e-6;
        out_.collectives.push_back(std::move(out));
    }

    void gloo(const Value& args, const std::string& name, std::optional<double> duration, const std::string& where) {
        ProfiledCollective out;
        out.op = opOf(name.substr(name.find(':') + 1));
        if (out.op.empty()) return out_.notes.add(fmt::format("collective '{}' of no known kind", name), where);
        if (!duration || *duration <= 0) return out_.notes.add("collective without a duration", where);
        const std::vector<Dims> dims = dimsOf(args);
        const std::vector<std::string> types = typesOf(args);
        double bytes = 0;
        for (std::size_t i = 0; i < dims.size(); ++i) {
            const auto dtype = i < types.size() ? dtypeOf(types[i]) : std::nullopt;
            if (!dtype || dims[i].empty()) continue;
            double elements = 1;
            for (const std::int64_t d : dims[i]) elements *= static_cast<double>(d);
            bytes += elements * static_cast<double>(sizeOf(*dtype));
            out.dtype = std::string(nameOf(*dtype));
        }
        if (!(bytes >= 1)) return out_.notes.add("collective without 'Input Dims' (profile with record_shapes=True)", where);
        out.backend = "gloo";
        out.bytes = static_cast<std::int64_t>(bytes);
        out.seconds = *duration * 1e-6;
        out_.collectives.push_back(std::move(out));
    }

    /// "_allgather_base", "allreduce_coalesced", "all_gather_into_tensor", "reduce_scatter_tensor" …
    static std::string opOf(const std::string& name) {
        std::string plain;
        for (const char c : name)
            if (std::isalpha(static_cast<unsigned char>(c))) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        std::string_view stem = plain;
        for (const std::string_view tail : {"coalesced", "base", "intotensor", "tensor", "single"})
            if (stem.ends_with(tail)) stem.remove_suffix(tail.size());
        return collectiveOfNcclTests(stem);
    }

    struct Kernel {
        std::int64_t externalId, correlation;
        double seconds;
    };
    struct NcclKernel {
        Value args;
        double durationUs;
        std::string where;
    };
    struct Launch {
        Thread thread;
        double begin;
    };

    std::string source_;
    ProfiledKernels out_;
    std::vector<ProfiledGemm> gemms_;
    std::vector<double> cpuSeconds_;
    std::map<Thread, std::vector<OpSpan>> spans_;
    std::unordered_map<std::int64_t, std::size_t> byExternalId_;
    std::unordered_map<std::int64_t, Launch> launches_;
    std::unordered_map<std::int64_t, Value> announced_;
    std::vector<Kernel> kernels_;
    std::vector<NcclKernel> ncclKernels_;  // joined at the end: what announces them may come later in the file
};

}  // namespace

Result<ProfiledKernels> parseTorchProfile(std::string_view text, const std::string& source) {
    ProfileReader reader(source);
    EventStream stream([&](Value&& event) { reader.event(std::move(event)); });
    const bool whole = Value::sax_parse(text.begin(), text.end(), &stream);
    if (!stream.sawEvents())
        return badInput(source, whole ? "is JSON without 'traceEvents'; expected a trace of PyTorch's profiler" : fmt::format("is no JSON (byte {})", stream.errorByte()));
    ProfiledKernels kernels = reader.finish(stream.rest().is_object() ? stream.rest() : Value::object());
    if (!whole) kernels.notes.add("the JSON breaks off; what came before is used", fmt::format("{}: byte {}", source, stream.errorByte()));
    return kernels;
}

Result<ProfiledKernels> readTorchProfile(const std::string& path) {
    TRY(const std::string text, readMaybeGzip(path));
    return parseTorchProfile(text, path);
}

}  // namespace ringside
