#include "app/endpoint/answer_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/endpoint/answer_document.h"
#include "app/endpoint/test_schema_check.h"
#include "app/endpoint/tokens.h"
#include "base/error.h"
#include "base/random.h"

namespace foretoken::answer_schema_test {

using testing::HasSubstr;

AnswerSchema read(const std::string& text) {
  const Json schema = parse_json(text, "schema");
  return read_answer_schema(JsonView(schema, "schema"));
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// The document, made exactly so long (or as long as it must be).
std::string text_of(const AnswerDocument& document, uint64_t key, int64_t bytes) {
  const auto tokens = (std::max(bytes, document.least_bytes()) + 3) / 4;
  std::string words = answer_text(key, 0, tokens);
  document.write_over(words, 0, tokens * 4);
  return words;
}

// Documents of several keys and lengths follow the schema, within the length that was allowed.
void expect_documents(const std::string& schema_text) {
  const Json schema = parse_json(schema_text, "schema");
  const AnswerSchema read = read_answer_schema(JsonView(schema, "schema"));
  for (uint64_t key = 0; key < 8; ++key) {
    for (const int64_t bytes : {0, 40, 200, 1000}) {
      const AnswerDocument document = make_answer_document(read, key, bytes);
      EXPECT_LE(document.least_bytes(), std::max(bytes, read.shortest_bytes())) << schema_text;
      for (const int64_t length : {int64_t{0}, document.least_bytes() + 17, int64_t{2000}}) {
        const std::string text = text_of(document, key, length);
        const Json value = parse_json(text, "document", {.max_depth = 2000});
        ASSERT_TRUE(SchemaCheck(schema).follows(value)) << schema_text << "\n" << text;
      }
    }
  }
}

TEST(AnswerSchema, documents_follow_the_schemas_that_tools_have) {
  for (const char* schema : {
           R"({"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
               "required": ["city"], "additionalProperties": false})",
           R"({"type": "string", "minLength": 9, "maxLength": 11})",
           R"({"type": "string", "format": "date-time"})",
           R"({"type": "integer", "minimum": 17, "maximum": 18})",
           R"({"type": "integer", "minimum": -30, "maximum": -3, "multipleOf": 7})",
           R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})",
           R"({"type": "number", "minimum": 0.25, "maximum": 0.25})",
           R"({"type": ["integer", "null"]})",
           R"({"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 5})",
           R"({"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "items": false, "minItems": 1})",
           R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": true})",
           R"({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]})",
           R"({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
                         {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}]})",
           R"({"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"enum": ["\u00e4\ud83d\ude00", "\"", 5, null]}}})",
           R"({"type": "object", "properties": {"\u00fc \"q\"": {"type": "integer"}, "z": false}, "minProperties": 1,
               "maxProperties": 1})",
           R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "required": ["value", "next"], "properties":
               {"value": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}}})",
           R"({"type": "array", "items": {"$ref": "#"}})",
           R"({"anyOf": [{"$ref": "#"}, {"const": {"a": [1]}}]})",
           R"({"required": ["b"], "additionalProperties": {"type": "integer"}})",
           "true",
           "{}"}) {
    SCOPED_TRACE(schema);
    expect_documents(schema);
  }
}

// A schema that is drawn: nested, with references to three definitions.
Json drawn_schema(RandomStream& stream, int depth) {
  const auto count = [&](uint64_t below) { return static_cast<int64_t>(stream.below(below)); };
  switch (stream.below(depth > 0 ? 9 : 5)) {
    case 0:
      return Json::object({{"type", "string"}, {"minLength", count(6)}, {"maxLength", 5 + count(20)}});
    case 1:
      return Json::object({{"type", "integer"}, {"minimum", count(50) - 40}, {"multipleOf", 1 + count(9)}});
    case 2:
      return Json::object({{"type", "number"}, {"maximum", 0.5 * static_cast<double>(count(50) - 30)}});
    case 3:
      return Json::object({{"enum", Json::array({"x", count(1000), Json(), true})}});
    case 4:
      return Json::object({{"type", Json::array({"boolean", "null", "string"})}});
    case 5:
      return Json::object({{"type", "array"},
                           {"items", drawn_schema(stream, depth - 1)},
                           {"minItems", count(3)},
                           {"maxItems", 2 + count(3)}});
    case 6:
      return Json::object({{"anyOf", Json::array({drawn_schema(stream, depth - 1), drawn_schema(stream, depth - 1)})}});
    case 7:
      return Json::object({{"$ref", "#/$defs/" + std::to_string(count(3))}});
    default: {
      Json properties = Json::object(), required = Json::array();
      for (int64_t i = count(5); i > 0; --i) {
        properties.set("p" + std::to_string(i), drawn_schema(stream, depth - 1));
        if (stream.below(2) == 0) required.push("p" + std::to_string(i));
      }
      return Json::object({{"type", "object"},
                           {"properties", std::move(properties)},
                           {"required", std::move(required)},
                           {"additionalProperties", false}});
    }
  }
}

TEST(AnswerSchema, documents_follow_drawn_schemas) {
  RandomStream stream(7, "schemas");
  int64_t documents = 0;
  for (int i = 0; i < 600; ++i) {
    Json schema = Json::object({{"anyOf", Json::array({drawn_schema(stream, 4)})}});
    Json definitions = Json::object();
    for (const char* name : {"0", "1", "2"}) definitions.set(name, drawn_schema(stream, 3));
    schema.set("$defs", std::move(definitions));
    const std::string text = schema.dump(0);
    // Definitions that need each other have no document; too many schemas are refused.
    if (!complaint(text).empty()) continue;
    ++documents;
    expect_documents(text);
  }
  EXPECT_GT(documents, 400);
}

TEST(AnswerSchema, refuses_what_it_cannot_follow_and_names_the_path) {
  EXPECT_THAT(complaint(R"({"type": "object", "properties": {"zip": {"type": "string", "pattern": "^[0-9]{5}$"}}})"),
              AllOf(HasSubstr("properties.zip.pattern"), HasSubstr("not simulated")));
  EXPECT_THAT(complaint(R"({"not": {}})"), HasSubstr("not"));
  EXPECT_THAT(complaint(R"({"type": "strin"})"), HasSubstr("one of null"));
  EXPECT_THAT(complaint(R"({"$ref": "https://example.com/schema"})"), HasSubstr("into this schema"));
  EXPECT_THAT(complaint(R"({"$ref": "#/$defs/none"})"), HasSubstr("$ref"));
  EXPECT_THAT(complaint(R"({"anyOf": [{"type": "string"}], "type": "string"})"), HasSubstr("this combination"));
  EXPECT_THAT(complaint(R"({"oneOf": [{"type": "string"}, {"type": "string", "minLength": 3}]})"), HasSubstr("oneOf"));
  EXPECT_THAT(complaint(R"({"oneOf": [{"type": "string", "format": "date"}, {"type": "string"}]})"),
              HasSubstr("oneOf"));
  EXPECT_THAT(complaint(R"({"type": "integer", "minimum": 3, "maximum": 2})"), HasSubstr("between them"));
  EXPECT_THAT(complaint(R"({"type": "string", "minLength": 3, "maxLength": 2})"), HasSubstr("maxLength"));
  EXPECT_THAT(complaint(R"({"type": "array", "uniqueItems": true, "minItems": 2})"), HasSubstr("uniqueItems"));
  EXPECT_THAT(complaint("false"), HasSubstr("nothing follows"));
  EXPECT_THAT(complaint("3"), HasSubstr("JSON Schema"));
}

TEST(AnswerSchema, one_of_several_needs_types_that_tell_them_apart) {
  for (const char* schemas :
       {R"([{}, {"type": "integer"}])", R"([true, {"type": "integer"}])", R"([{"const": 5}, {}])",
        R"([{"minimum": 3}, {"type": "string"}])", R"([{"properties": {"a": {}}}, {"type": "null"}])",
        R"([{"$ref": "#/$defs/any"}, {"type": "integer"}])", R"([{"format": "date"}, {"const": 5}])"}) {
    const std::string text = std::string(R"({"oneOf": )") + schemas + R"(, "$defs": {"any": {}}})";
    EXPECT_THAT(complaint(text), HasSubstr("oneOf")) << text;
  }
  // Documents are objects of the one or of the other kind.
  expect_documents(R"({"oneOf": [{"properties": {"kind": {"const": "a"}}, "required": ["kind"]},
                                 {"properties": {"kind": {"const": "b"}}, "required": ["kind"]}]})");
  expect_documents(R"({"oneOf": [{}]})");
}

TEST(AnswerSchema, refuses_more_values_of_enums_than_can_be_compared) {
  const auto numbers = [](size_t from, size_t count) {
    std::string text = R"({"enum": [)" + std::to_string(from);
    for (size_t i = 1; i < count; ++i) text += "," + std::to_string(from + i);
    return text + "]}";
  };
  const std::string half = numbers(0, most_schema_literals / 2);
  EXPECT_EQ(complaint(R"({"oneOf": [)" + half + ", " + numbers(50000, most_schema_literals / 2) + "]}"), "");
  EXPECT_THAT(complaint(R"({"oneOf": [)" + half + ", " + numbers(50000, most_schema_literals / 2 + 1) + "]}"),
              AllOf(HasSubstr("oneOf[1].enum"), HasSubstr("at most 10000 values")));
}

TEST(AnswerSchema, refuses_schemas_without_end_or_bound) {
  EXPECT_THAT(complaint(R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})"),
              HasSubstr("nothing follows"));
  EXPECT_THAT(complaint(R"({"$ref": "#"})"), HasSubstr("nothing follows"));
  EXPECT_THAT(complaint(R"({"type": "string", "minLength": 1000000000})"), HasSubstr("at most 16384 bytes"));
  EXPECT_THAT(complaint(R"({"type": "array", "minItems": 2000000000})"), HasSubstr("at most 16384 bytes"));
  std::string doubling = R"({"$ref": "#/$defs/0", "$defs": {)";  // each twice as long as the next
  for (int i = 0; i < 25; ++i) {
    const std::string next = "{\"$ref\": \"#/$defs/" + std::to_string(i + 1) + "\"}";
    doubling += "\"" + std::to_string(i) + R"(": {"properties": {"a": )" + next + R"(, "b": )" + next +
                R"(}, "required": ["a", "b"]}, )";
  }
  EXPECT_THAT(complaint(doubling + R"("25": {"const": 1}}})"), HasSubstr("at most 16384 bytes"));
  std::string many = R"({"prefixItems": [{})";
  for (size_t i = 0; i < most_schema_nodes; ++i) many += ", {}";
  EXPECT_THAT(complaint(many + "]}"), HasSubstr("at most 1000"));
}

}  // namespace foretoken::answer_schema_test
