// How many ranks, or nodes, hold any of a token's experts.
#include "model/workload/token_spread.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(TokenSpread, CountsWhoHoldsAnyOfATokensExperts) {
    const TokenSpread deepseek{256, 8};
    EXPECT_DOUBLE_EQ(deepseek.holdersPerToken(1), 1);
    EXPECT_NEAR(deepseek.holdersPerToken(4), 3.614, 0.001);  // 4·(1 − C(192, 8)/C(256, 8))
    EXPECT_NEAR(deepseek.holdersPerToken(8), 5.295, 0.001);
    EXPECT_NEAR(deepseek.holdersPerToken(64), 7.676, 0.001);
    EXPECT_NEAR(deepseek.holdersPerToken(256), 8, 1e-9);  // an expert each
}

TEST(TokenSpread, EveryoneIsAskedWhereATokenTakesAllExperts) {
    EXPECT_DOUBLE_EQ((TokenSpread{8, 8}.holdersPerToken(4)), 4);
}

}  // namespace
}  // namespace ringside
