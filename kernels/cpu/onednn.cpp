#include "kernels/cpu/onednn.h"

#include <unordered_map>

#include <fmt/format.h>

namespace ringside {

bool OneDnn::detectNativeBf16() {
    switch (dnnl::get_effective_cpu_isa()) {
        case dnnl::cpu_isa::avx512_core_bf16:
        case dnnl::cpu_isa::avx512_core_amx: return true;
        default: return false;
    }
}

std::string OneDnn::version() {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

void OneDnn::addReorders(OneDnnOperand& operand, bool isOutput) const {
    if (operand.plain == operand.wanted) return;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto make = [&](const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
        const dnnl::reorder::primitive_desc description(engine_, from, engine_, to, attributes);
        return dnnl::reorder(description);
    };
    if (isOutput) operand.toPlain = make(operand.wanted, operand.plain);
    else operand.toWanted = make(operand.plain, operand.wanted);
}

void OneDnn::run(const OneDnnPlan& plan, const void* a, const void* b, const void* bias, void* output, dnnl::stream& stream, Scratch& scratch) const {
    // oneDNN takes non-const pointers for what it only reads.
    void* const pointers[3] = {const_cast<void*>(a), const_cast<void*>(b), output};
    const auto bytesOf = [](const dnnl::memory::desc& description) { return static_cast<std::int64_t>(description.get_size()); };
    const dnnl::memory scratchpad(plan.scratchpad, engine_, scratch.get<char>(3, bytesOf(plan.scratchpad)));
    std::unordered_map<int, dnnl::memory> arguments = {{DNNL_ARG_SCRATCHPAD, scratchpad}};
    if (plan.bias) arguments.emplace(DNNL_ARG_BIAS, dnnl::memory(*plan.bias, engine_, const_cast<void*>(bias)));
    for (int i = 0; i < 3; ++i) {
        const OneDnnOperand& operand = plan.operands[static_cast<std::size_t>(i)];
        dnnl::memory memory(operand.plain, engine_, pointers[i]);
        if (operand.toWanted || operand.toPlain) {
            dnnl::memory own(operand.wanted, engine_, scratch.get<char>(i, bytesOf(operand.wanted)));
            if (operand.toWanted) operand.toWanted->execute(stream, {{DNNL_ARG_FROM, memory}, {DNNL_ARG_TO, own}});
            memory = own;
        }
        arguments.emplace(operand.argument, memory);
    }
    plan.primitive.execute(stream, arguments);
    const OneDnnOperand& result = plan.operands[2];
    if (result.toPlain) {
        dnnl::memory plain(result.plain, engine_, output);
        result.toPlain->execute(stream, {{DNNL_ARG_FROM, arguments.at(result.argument)}, {DNNL_ARG_TO, plain}});
    }
    stream.wait();
}

}  // namespace ringside
