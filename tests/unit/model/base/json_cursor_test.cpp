#include "model/base/json_cursor.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

/// A document that lives as long as the test.
class JsonCursorTest : public testing::Test {
protected:
    JsonCursor cursor(const char* text) {
        auto parsed = parseJson(text, "a.json");
        EXPECT_TRUE(parsed) << text;
        json_ = parsed.value_or(Json{});
        return JsonCursor(json_, "a.json");
    }
    Json json_;
};

TEST(ParseJson, ErrorNamesFileLineAndColumn) {
    const auto result = parseJson("{\n  \"a\": 1,\n  \"b\" 2\n}", "a.json");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().place.substr(0, 9), "a.json:3:") << result.error().place;
    EXPECT_NE(result.error().message.find("not valid JSON"), std::string::npos);
}

TEST(ParseJson, RefusesADuplicateKeyInOneObjectOnly) {
    const auto twice = parseJson(R"({"a": 1, "b": {"c": 1, "c": 2}})", "a.json");
    ASSERT_FALSE(twice);
    EXPECT_NE(twice.error().message.find("'c' appears twice"), std::string::npos) << twice.error().message;
    EXPECT_TRUE(parseJson(R"({"a": {"c": 1}, "b": {"c": 1}, "d": [{"c": 1}, {"c": 2}]})", "a.json"));
}

TEST(ParseJson, EmptyTextIsAnError) { EXPECT_FALSE(parseJson("", "a.json")); }

TEST(ReadJsonFile, MissingFileIsAnErrorWithThePath) {
    const auto result = readJsonFile("/nonexistent/a.json");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().place, "/nonexistent/a.json");
}

TEST_F(JsonCursorTest, WrongTypeSaysWhereAndWhatWasFound) {
    const auto c = cursor(R"({"nodes": [{"nics": "eight"}]})");
    const auto nodes = c.at("nodes")->items();
    const auto nics = nodes->at(0).at("nics")->asInt(0, 8);
    ASSERT_FALSE(nics);
    EXPECT_EQ(nics.error().place, "a.json: nodes[0].nics");
    EXPECT_EQ(nics.error().message, "expected a whole number, found \"eight\"");
}

TEST_F(JsonCursorTest, NumbersOutsideTheRangeAreRefused) {
    const auto c = cursor(R"({"n": 9, "x": 1.5, "big": 18446744073709551615})");
    EXPECT_EQ(c.at("n")->asInt(0, 8).error().message, "9 is out of range; expected 0 to 8");
    EXPECT_FALSE(c.at("x")->asNumber(0, 1));
    EXPECT_FALSE(c.at("big")->asInt(0, INT64_MAX));
}

TEST_F(JsonCursorTest, WholeNumbersMayBeWrittenWithAnExponent) {
    const auto c = cursor(R"({"bucket": 5e8, "half": 0.5})");
    EXPECT_EQ(c.at("bucket")->asInt(0, 1'000'000'000).value(), 500'000'000);
    EXPECT_FALSE(c.at("half")->asInt(0, 1));
}

TEST_F(JsonCursorTest, UnknownKeyNamesTheNearest) {
    const auto c = cursor(R"({"devcies": 8})");
    const auto result = c.keys({"devices", "network"});
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("unknown key 'devcies'; did you mean 'devices'?"), std::string::npos) << result.error().message;
    EXPECT_TRUE(c.keys({"devcies"}));
}

TEST_F(JsonCursorTest, NullCountsAsAbsent) {
    const auto c = cursor(R"({"a": null, "b": false})");
    EXPECT_FALSE(c.has("a"));
    EXPECT_TRUE(c.has("b"));
    EXPECT_EQ(c.intOr("a", 7, 0, 10).value(), 7);
    EXPECT_EQ(c.at("a").error().message, "the key 'a' is missing");
}

TEST_F(JsonCursorTest, OptionalValuesAreStillChecked) {
    const auto c = cursor(R"({"n": "x", "s": 1, "f": [], "ok": "yes"})");
    EXPECT_FALSE(c.intOr("n", 7, 0, 10));
    EXPECT_FALSE(c.stringOr("s", "d"));
    EXPECT_FALSE(c.boolOr("f", true));
    EXPECT_FALSE(c.numberOr("n", 1, 0, 2));
    EXPECT_EQ(c.stringOr("ok", "d").value(), "yes");
    EXPECT_EQ(c.stringOr("absent", "d").value(), "d");
}

TEST_F(JsonCursorTest, LookingIntoSomethingElseThanAnObjectIsAnError) {
    const auto c = cursor("[1]");
    EXPECT_FALSE(c.at("a"));
    EXPECT_FALSE(c.has("a"));
    EXPECT_FALSE(c.keys({"a"}));
    EXPECT_FALSE(cursor("{}").items());
}

}  // namespace
}  // namespace ringside
