// DDP's buckets against PyTorch's own: `_get_ddp_logging_data()` of DistributedDataParallel in two processes after three iterations
// (six with a static graph, which rebuilds one step later), measured with PyTorch 2.15 (torchvision 0.29, transformers 5.22) on
// CPU with gloo. Bytes, fp32, in launch order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

std::vector<Bytes> bucketBytes(const std::string& model, const std::string& knobs = "", const std::string& more = "") {
    const Schedule schedule = scheduleOf("{'model':'" + model + "','device':'a100-80gb-sxm','devices':2,'training':{'precision':'fp32'},'strategy':{'name':'ddp'" +
                                         knobs + "}" + more + "}");
    std::vector<Bytes> bytes;
    for (const CollectiveWork& work : collectivesOf(schedule, TaskRole::BucketReduce)) bytes.push_back(work.bytes());
    return bytes;
}

/// `first`, then `times` buckets of one GPT-2 or BERT block, then `last`.
std::vector<Bytes> around(std::vector<Bytes> first, std::size_t times, std::vector<Bytes> last) {
    constexpr Bytes kBlock = 28'351'488;  // 7,087,872 parameters
    first.insert(first.end(), times, kBlock);
    first.insert(first.end(), last.begin(), last.end());
    return first;
}

TEST(TorchBuckets, OfGpt2AreRebuiltAsPyTorchRebuildsThem) {
    const std::vector<Bytes> expected = around({9'446'400}, 11, {176'446'464});
    EXPECT_EQ(bucketBytes("gpt2"), expected);
    EXPECT_EQ(bucketBytes("gpt2", ",'gradient_as_bucket_view':true"), expected);
    EXPECT_EQ(bucketBytes("gpt2", ",'static_graph':true"), expected);
    EXPECT_EQ(bucketBytes("gpt2", ",'static_graph':true,'find_unused_parameters':true"), expected);
}

TEST(TorchBuckets, OfGpt2FollowAnExplicitCap) {
    EXPECT_EQ(bucketBytes("gpt2", ",'bucket_mb':25"), around({}, 12, {157'541'376}));
    EXPECT_THAT(bucketBytes("gpt2", ",'bucket_mb':100"), ::testing::ElementsAre(106'318'848, 111'037'440, 113'405'952, 166'996'992));
    const std::vector<Bytes> small = bucketBytes("gpt2", ",'bucket_mb':1");
    ASSERT_EQ(small.size(), 50U);
    EXPECT_THAT(std::vector<Bytes>(small.begin(), small.begin() + 5), ::testing::ElementsAre(9'446'400, 9'449'472, 2'368'512, 7'087'104, 9'446'400));
}

TEST(TorchBuckets, OfGpt2WithAnUnusedSearchKeepRegistrationOrder) {
    const std::vector<Bytes> expected = around({9'216}, 11, {31'494'144, 154'389'504});
    EXPECT_EQ(bucketBytes("gpt2", ",'find_unused_parameters':true"), expected);
    EXPECT_EQ(bucketBytes("gpt2", ",'find_unused_parameters':true", ",'step':'first'"), expected);
}

TEST(TorchBuckets, OfTheFirstStepIsOne) { EXPECT_THAT(bucketBytes("gpt2", "", ",'step':'first'"), ::testing::ElementsAre(497'759'232)); }

TEST(TorchBuckets, OfResNetsAndBertAreThoseOfPyTorch) {
    EXPECT_THAT(bucketBytes("resnet18"), ::testing::ElementsAre(2'052'000, 28'852'224, 15'853'824));
    EXPECT_THAT(bucketBytes("resnet18", ",'find_unused_parameters':true"), ::testing::ElementsAre(11'497'376, 33'744'896, 1'515'776));
    EXPECT_THAT(bucketBytes("resnet50"), ::testing::ElementsAre(8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160));
    EXPECT_THAT(bucketBytes("resnet50", ",'bucket_mb':25"), ::testing::ElementsAre(30'257'056, 26'255'360, 28'366'848, 17'348'864));
    EXPECT_EQ(bucketBytes("bert-base"), around({2'362'368}, 12, {95'348'736}));
}

}  // namespace
}  // namespace ringside::testing
