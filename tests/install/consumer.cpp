#include <cstdio>

#include <sim/prediction.h>

int main() {
    using namespace ringside;
    const auto catalogs = Catalogs::builtin();
    const auto document = parseJson(R"({"model": "gpt2", "device": "a100-80gb-sxm", "devices": 8})", "consumer");
    const auto scenario = resolveScenario(*document, "consumer", *catalogs);
    const auto prediction = predict(*scenario);
    std::printf("%.6f\n", prediction->stepSeconds);
    return prediction->stepSeconds > 0 ? 0 : 1;
}
