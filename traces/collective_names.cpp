#include "traces/collective_names.h"

#include <cctype>
#include <utility>

namespace ringside {

CollectiveKind collectiveKindOf(std::string_view name) {
    std::string letters;
    for (const char c : name)
        if (std::isalpha(static_cast<unsigned char>(c))) letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    // "reducescatter" and "allreduce" contain "reduce", so that the longer words come first.
    static constexpr std::pair<std::string_view, CollectiveKind> kWords[] = {
        {"allreduce", CollectiveKind::AllReduce},   {"allgather", CollectiveKind::AllGather}, {"reducescatter", CollectiveKind::ReduceScatter},
        {"alltoall", CollectiveKind::AllToAll},     {"broadcast", CollectiveKind::Broadcast}, {"reduce", CollectiveKind::Reduce},
        {"send", CollectiveKind::SendRecv},         {"recv", CollectiveKind::SendRecv},
    };
    for (const auto& [word, op] : kWords)
        if (letters.find(word) != std::string::npos) return op;
    return CollectiveKind::Other;
}

std::string_view ncclName(CollectiveKind op) {
    switch (op) {
        case CollectiveKind::AllReduce: return "AllReduce";
        case CollectiveKind::AllGather: return "AllGather";
        case CollectiveKind::ReduceScatter: return "ReduceScatter";
        case CollectiveKind::Broadcast: return "Broadcast";
        case CollectiveKind::Reduce: return "Reduce";
        case CollectiveKind::AllToAll:
        case CollectiveKind::SendRecv: return "SendRecv";
        case CollectiveKind::Other: return "";
    }
    return "";
}

std::string_view ncclTypeName(std::string_view dtype) {
    static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
        {"Float", "f32"}, {"Half", "f16"},  {"BFloat16", "bf16"}, {"Double", "f64"},           {"Int", "i32"},
        {"Long", "i64"},  {"Char", "i8"},   {"Byte", "u8"},       {"Float8_e4m3fn", "f8e4m3"}, {"Float8_e5m2", "f8e5m2"},
    };
    for (const auto& [torch, nccl] : kTypes)
        if (dtype == torch) return nccl;
    return "";
}

std::string ncclKernelName(const CollectiveDetails& details) {
    const CollectiveKind op = collectiveKindOf(details.op);
    if (op == CollectiveKind::Other) return {};
    std::string name = "ncclDevKernel_" + std::string(ncclName(op));
    if (op == CollectiveKind::AllToAll || op == CollectiveKind::SendRecv) return name;
    const auto add = [&](std::string_view part) {
        if (part.empty()) return;
        name += '_';
        for (const char c : part) name += c;
    };
    const auto upper = [](std::string text) {
        for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        return text;
    };
    if (op == CollectiveKind::AllReduce || op == CollectiveKind::ReduceScatter || op == CollectiveKind::Reduce) {
        add("Sum");
        add(ncclTypeName(details.dtype));
    }
    add(upper(details.algorithm));
    add(upper(details.protocol));
    return name;
}

}  // namespace ringside
