#include "model/base/names.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ringside {
namespace {

const std::vector<std::string> kModels{"gpt2", "gpt2-xl", "llama3-8b", "resnet50"};

TEST(NearestName, FindsATypo) {
    EXPECT_EQ(nearestName("gtp2-xl", kModels), "gpt2-xl");
    EXPECT_EQ(nearestName("resnet-5", kModels), "resnet50");
}

TEST(NearestName, IgnoresCaseAndSeparators) { EXPECT_EQ(nearestName("Llama_3.8B", kModels), "llama3-8b"); }

TEST(NearestName, FindsTheShortestNameThatContainsAPart) { EXPECT_EQ(nearestName("llama", kModels), "llama3-8b"); }

TEST(NearestName, IsEmptyWhenNothingIsClose) {
    EXPECT_EQ(nearestName("whisper-large", kModels), "");
    EXPECT_EQ(nearestName("gpt2", {}), "");
}

TEST(NearestName, OfACandidateIsThatCandidate) {
    EXPECT_TRUE(rc::check("an exact name is its own nearest", [] {
        const auto index = *rc::gen::inRange<std::size_t>(0, kModels.size());
        RC_ASSERT(nearestName(kModels[index], kModels) == kModels[index]);
    }));
}

TEST(UnknownName, SaysWhatWasMeantAndListsFewCandidates) {
    EXPECT_EQ(unknownName("model", "gtp2-xl", kModels), "unknown model 'gtp2-xl'; did you mean 'gpt2-xl'? (known: gpt2, gpt2-xl, llama3-8b, resnet50)");
}

TEST(UnknownName, PrefersTheHintOverTheList) {
    EXPECT_EQ(unknownName("model", "whisper-large", kModels, "`ringside catalog models` lists them"),
              "unknown model 'whisper-large' (`ringside catalog models` lists them)");
}

}  // namespace
}  // namespace ringside
