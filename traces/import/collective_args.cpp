#include "traces/import/collective_args.h"

#include <algorithm>
#include <array>
#include <utility>

#include "traces/collective_names.h"
#include "traces/import/event_values.h"

namespace ringside {
namespace {

/// Bytes of one element by PyTorch's name of the type; 0 if not known.
std::int64_t elementSize(std::string_view type) {
    static constexpr std::array<std::pair<std::string_view, std::int64_t>, 25> kSizes{{
        {"Float", 4}, {"BFloat16", 2}, {"Half", 2}, {"Double", 8}, {"Int", 4}, {"Long", 8}, {"Char", 1}, {"Byte", 1}, {"Bool", 1}, {"Short", 2},
        {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}, {"float", 4}, {"double", 8}, {"int", 4}, {"long int", 8}, {"long", 8}, {"c10::BFloat16", 2}, {"c10::Half", 2},
        {"bool", 1}, {"unsigned char", 1}, {"signed char", 1}, {"short", 2}, {"c10::Float8_e4m3fn", 1}, {"c10::Float8_e5m2", 1}}};
    for (const auto& [name, size] : kSizes)
        if (type == name) return size;
    return 0;
}

/// PyTorch's two spellings of a type are made one: "float" → "Float".
std::string torchType(std::string_view type) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kNames{{{"float", "Float"}, {"double", "Double"}, {"int", "Int"}, {"long int", "Long"},
        {"long", "Long"}, {"c10::BFloat16", "BFloat16"}, {"c10::Half", "Half"}, {"bool", "Bool"}, {"unsigned char", "Byte"}, {"signed char", "Char"}, {"short", "Short"}}};
    for (const auto& [theirs, ours] : kNames)
        if (type == theirs) return std::string(ours);
    return std::string(type);
}

/// NCCL's short names: "f32", "float", "bf16", …
std::string typeFromNccl(std::string_view word) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kNames{{{"f32", "Float"}, {"float", "Float"}, {"f16", "Half"}, {"half", "Half"}, {"bf16", "BFloat16"},
        {"f64", "Double"}, {"double", "Double"}, {"i32", "Int"}, {"int32", "Int"}, {"i64", "Long"}, {"int64", "Long"}, {"i8", "Char"}, {"u8", "Byte"}, {"uint8", "Byte"}}};
    for (const auto& [nccl, torch] : kNames)
        if (word == nccl) return std::string(torch);
    return {};
}

}  // namespace

std::optional<CollectiveDetails> collectiveFromArgs(std::string_view args, std::string* groupName) {
    CollectiveDetails details;
    details.sequence = -1;
    std::int64_t in = 0, out = 0;
    std::optional<std::int64_t> bytes;
    forEachMember(args, [&](std::string_view key, const JsonToken& value) {
        if (key == "Collective name") details.op = textOf(value);
        else if (key == "In msg nelems") in = wholeNumber(value).value_or(0);
        else if (key == "Out msg nelems") out = wholeNumber(value).value_or(0);
        else if (key == "Group size") details.groupSize = wholeNumber(value).value_or(0);
        else if (key == "dtype") details.dtype = textOf(value);
        else if (key == "Seq" || key == "seq_num") details.sequence = wholeNumber(value).value_or(-1);
        else if (key == "algorithm") details.algorithm = textOf(value);
        else if (key == "protocol") details.protocol = textOf(value);
        else if (key == "Process Group Ranks") details.ranks = rankList(value);
        else if (key == "Process Group Description") details.group = textOf(value);
        else if (key == "bytes") bytes = wholeNumber(value);
        else if ((key == "Process Group Name" || key == "Process Group ID") && groupName) *groupName = textOf(value);
    });
    if (details.op.empty()) return std::nullopt;
    const CollectiveKind op = collectiveKindOf(details.op);
    details.elements = op == CollectiveKind::AllGather ? out : in;
    if (details.elements == 0) details.elements = std::max(in, out);
    std::int64_t computed = 0;
    if (__builtin_mul_overflow(details.elements, elementSize(details.dtype), &computed)) computed = 0;
    details.bytes = bytes.value_or(computed);
    return details;
}

CollectiveDetails collectiveFromKernelName(std::string_view name) {
    CollectiveDetails details;
    details.sequence = -1;
    name = name.substr(0, name.find('('));
    std::size_t begin = 0;
    bool first = true;
    while (begin <= name.size()) {
        const std::size_t end = std::min(name.find('_', begin), name.size());
        const std::string_view word = name.substr(begin, end - begin);
        if (!first && details.op.empty() && collectiveKindOf(word) != CollectiveKind::Other) details.op = std::string(word);
        else if (word == "RING" || word == "TREE" || word == "NVLS" || word == "PAT" || word == "COLLNET") details.algorithm = details.algorithm.empty() ? std::string(word) : details.algorithm + "_" + std::string(word);
        else if (!details.algorithm.empty() && (word == "DIRECT" || word == "CHAIN")) details.algorithm += "_" + std::string(word);
        else if (word == "LL" || word == "LL128" || word == "SIMPLE") details.protocol = std::string(word);
        else if (const std::string type = typeFromNccl(word); !type.empty()) details.dtype = type;
        first = false;
        begin = end + 1;
    }
    return details;
}

CollectiveDetails collectiveFromGlooRange(std::string_view name, std::string_view args, std::int64_t groupSize) {
    CollectiveDetails details;
    details.sequence = -1;
    details.op = std::string(name.substr(std::min(name.size(), name.find(':') + 1)));
    details.groupSize = groupSize;
    std::vector<std::int64_t> elements;
    std::vector<std::string> types;
    forEachMember(args, [&](std::string_view key, const JsonToken& value) {
        if (key != "Input Dims" && key != "Input type") return;
        JsonScan scan(value.text.data(), value.text.data() + value.text.size());
        if (!scan.openArray()) return;
        do {
            const JsonToken element = scan.value();
            if (!scan.fine()) return;
            if (key == "Input type") types.push_back(textOf(element));
            else {
                std::int64_t product = 1;
                const std::vector<std::int64_t> dims = rankList(element);
                for (const std::int64_t d : dims)
                    if (__builtin_mul_overflow(product, d, &product)) product = 0;
                elements.push_back(dims.empty() ? 0 : product);
            }
        } while (scan.nextElement());
    });
    const std::int64_t parts = collectiveKindOf(details.op) == CollectiveKind::AllGather ? std::max<std::int64_t>(groupSize, 1) : 1;
    for (std::size_t i = 0; i < elements.size() && i < types.size(); ++i) {
        const std::int64_t size = elementSize(types[i]);
        if (size == 0 || elements[i] <= 0 || elements[i] > (std::int64_t{1} << 50)) continue;
        details.dtype = torchType(types[i]);
        details.elements += elements[i] * parts;
        details.bytes += elements[i] * parts * size;
    }
    return details;
}

}  // namespace ringside
