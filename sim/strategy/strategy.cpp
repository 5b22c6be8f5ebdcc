#include "sim/strategy/strategy.h"

#include "model/base/names.h"

namespace ringside {

std::vector<std::unique_ptr<const Strategy>> strategies() {
    std::vector<std::unique_ptr<const Strategy>> all;
    all.push_back(makeSingleDevice());
    all.push_back(makeDataParallel());
    all.push_back(makeNaiveAllReduce());
    all.push_back(makeDdp());
    all.push_back(makePicotron());
    all.push_back(makePsDevice0());
    all.push_back(makePsHost());
    all.push_back(makePsSharded());
    all.push_back(makePsServers());
    all.push_back(makeAsyncPs());
    all.push_back(makeSsp());
    all.push_back(makeLocalSgd());
    all.push_back(makeDiLoCo());
    all.push_back(makeElasticAveraging());
    all.push_back(makeZero1());
    all.push_back(makeZero2());
    all.push_back(makeZero3());
    all.push_back(makeZeroRedundancyOptimizer());
    all.push_back(makeMegatron());
    all.push_back(makeFsdp1());
    all.push_back(makeFsdp2());
    all.push_back(makeHsdp());
    return all;
}

Result<std::unique_ptr<const Strategy>> strategyByName(std::string_view name) {
    std::vector<std::string> names;
    for (auto& strategy : strategies()) {
        if (strategy->name() == name) return std::move(strategy);
        names.emplace_back(strategy->name());
    }
    return badInput("strategy", unknownName("strategy", name, names));
}

}  // namespace ringside
