#include "network/chakra/chakra.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/protobuf.h"

namespace foretoken::chakra_test {

// One attribute of every format, alone and in a list.
std::vector<ChakraAttribute> every_attribute() {
  std::vector<ChakraAttribute> result;
  const auto add = [&](ChakraFormat format, ChakraValue one, ChakraValue many) {
    result.push_back({.name = "one", .doc_string = "why", .format = format, .value = std::move(one)});
    result.push_back({.name = "many", .format = format, .value = std::move(many)});
  };
  add(ChakraFormat::real64, 0.1, std::vector<double>{1, -2.5e300});
  add(ChakraFormat::real32, 0.1F, std::vector<float>{1, -2.5e30F});
  add(ChakraFormat::int32, int64_t{-7}, std::vector<int64_t>{-2147483648, 2147483647});
  add(ChakraFormat::int64, INT64_MIN, std::vector<int64_t>{INT64_MAX, 0});
  add(ChakraFormat::uint32, uint64_t{4294967295}, std::vector<uint64_t>{0, 1});
  add(ChakraFormat::uint64, UINT64_MAX, std::vector<uint64_t>{UINT64_MAX, 2});
  add(ChakraFormat::sint32, int64_t{-3}, std::vector<int64_t>{-2147483648, 2147483647});
  add(ChakraFormat::sint64, INT64_MIN, std::vector<int64_t>{INT64_MAX, -1});
  add(ChakraFormat::fixed32, uint64_t{4294967295}, std::vector<uint64_t>{1, 2});
  add(ChakraFormat::fixed64, UINT64_MAX, std::vector<uint64_t>{3, 4});
  add(ChakraFormat::sfixed32, int64_t{-5}, std::vector<int64_t>{-6, 7});
  add(ChakraFormat::sfixed64, INT64_MIN, std::vector<int64_t>{-8, 9});
  add(ChakraFormat::boolean, false, std::vector<bool>{true, false, true});
  add(ChakraFormat::text, std::string("a"), std::vector<std::string>{"", "b"});
  add(ChakraFormat::bytes, std::string("\0\xff", 2), std::vector<std::string>{std::string("\0", 1)});
  result.push_back({.name = "none"});
  result.push_back({.name = "nothing in it", .format = ChakraFormat::int64, .value = std::vector<int64_t>()});
  return result;
}

ChakraTrace sample() {
  ChakraTrace trace{.metadata = {.attributes = every_attribute()}};
  trace.nodes.push_back({.id = 0, .name = "first", .type = ChakraNodeType::compute, .duration_micros = 12});
  trace.nodes.push_back({.id = 300,
                         .name = "all",
                         .type = ChakraNodeType::collective,
                         .control_dependencies = {0},
                         .data_dependencies = {0, 128},
                         .start_time_micros = 5,
                         .inputs = ChakraTensors{.values = "[1]", .shapes = "[[2]]", .types = "['float']"},
                         .outputs = ChakraTensors{},
                         .attributes = every_attribute()});
  trace.nodes.push_back({.id = 301, .type = static_cast<ChakraNodeType>(99)});
  return trace;
}

std::string complaint(const std::string& content) {
  try {
    parse_chakra(content, "run.0.et");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Chakra, every_field_and_format_reads_back_as_written) {
  EXPECT_EQ(parse_chakra(chakra_text(sample()), "x"), sample());
}

TEST(Chakra, a_trace_read_and_written_has_the_same_bytes) {
  const std::string text = chakra_text(sample());
  EXPECT_EQ(chakra_text(parse_chakra(text, "x")), text);
}

TEST(Chakra, the_bytes_are_those_of_protobuf) {
  const ChakraTrace trace{.metadata = {.version = "0.0.4"},
                          .nodes = {{.id = 1,
                                     .name = "c",
                                     .type = ChakraNodeType::collective,
                                     .data_dependencies = {0},
                                     .duration_micros = 3,
                                     .attributes = {chakra_unsigned("comm_size", 300)}}}};
  // Worked out by hand from the schema's field numbers.
  const std::string expected = std::string("\x07\x0a\x05") + "0.0.4" + "\x1c\x08\x01\x12\x01" + "c" + "\x18\x07" +
                               std::string("\x2a\x01\x00", 3) + "\x38\x03" + "\x52\x0e\x0a\x09" + "comm_size" +
                               "\x68\xac\x02";
  EXPECT_EQ(chakra_text(trace), expected);
}

TEST(Chakra, fields_of_a_later_schema_survive) {
  ChakraTrace trace = sample();
  WireWriter later;
  later.bytes(11, "storage");
  later.varint(4000, 1);
  trace.metadata.unknown = trace.nodes[1].unknown = trace.nodes[1].inputs->unknown = later.text();
  WireWriter value;
  value.varint(33, 5);
  trace.nodes[1].attributes[0].unknown = value.text();
  const std::string text = chakra_text(trace);
  EXPECT_EQ(parse_chakra(text, "x"), trace);
  EXPECT_EQ(chakra_text(parse_chakra(text, "x")), text);
}

TEST(Chakra, lists_may_come_unpacked_and_in_pieces) {
  WireWriter list, attribute, node, stream;
  list.varint(1, 7);
  list.varint(1, 8);
  attribute.bytes(1, "l");
  attribute.bytes(10, list.text());
  attribute.bytes(10, list.text());
  node.varint(4, 1);
  node.bytes(4, "\x02\x03");
  node.bytes(10, attribute.text());
  stream.packed_varint(0);
  stream.packed_varint(node.text().size());
  stream.raw(node.text());
  const ChakraTrace trace = parse_chakra(stream.text(), "x");
  ASSERT_EQ(trace.nodes.size(), 1U);
  EXPECT_EQ(trace.nodes[0].control_dependencies, (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(trace.nodes[0].attributes[0].value, (ChakraValue(std::vector<int64_t>{7, 8, 7, 8})));
}

TEST(Chakra, no_cut_of_a_trace_is_read_as_a_whole_one) {
  const std::string text = chakra_text(sample());
  const ChakraTrace whole = sample();
  for (size_t length = 0; length < text.size(); ++length) {
    try {
      const ChakraTrace part = parse_chakra(text.substr(0, length), "x");
      EXPECT_LT(part.nodes.size(), whole.nodes.size());
      for (size_t i = 0; i < part.nodes.size(); ++i) EXPECT_EQ(part.nodes[i], whole.nodes[i]);
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("byte"), std::string::npos) << error.what();
    }
  }
}

TEST(Chakra, what_is_no_trace_is_refused_with_file_and_byte) {
  EXPECT_NE(complaint("").find("GlobalMetadata"), std::string::npos);
  EXPECT_NE(complaint("\xff\xff\xff\xff\x0f").find("run.0.et: byte 0"), std::string::npos);
  EXPECT_NE(complaint("{\"traceEvents\": []}").find("a length of 123 bytes"), std::string::npos);
  EXPECT_NE(complaint(std::string("\x02\x08\x01", 3)).find("GlobalMetadata"), std::string::npos) << "a node first";
  EXPECT_NE(complaint(std::string("\x00\x02\x0a\x00", 4)).find("a number"), std::string::npos) << "an id of text";
}

TEST(Chakra, a_message_over_the_limit_is_refused) {
  const std::string text = chakra_text({.nodes = {{.name = std::string(1000, 'x')}}});
  EXPECT_THROW(parse_chakra(text, "x", {.max_message_bytes = 500}), InputError);
  EXPECT_EQ(parse_chakra(text, "x", {.max_message_bytes = 2000}).nodes.size(), 1U);
}

TEST(Chakra, numbers_are_found_in_any_format) {
  EXPECT_EQ(integer_value(chakra_unsigned("n", 5)), 5);
  EXPECT_EQ(integer_value(chakra_text("n", "5")), 5);
  EXPECT_EQ(integer_value(chakra_number("n", 5)), 5);
  EXPECT_EQ(integer_value(chakra_boolean("n", true)), 1);
  EXPECT_EQ(integer_value(chakra_unsigned("n", UINT64_MAX)), std::nullopt);
  EXPECT_EQ(integer_value(chakra_text("n", "five")), std::nullopt);
  EXPECT_EQ(integer_value(chakra_number("n", 5.5)), std::nullopt);
  EXPECT_EQ(text_value(chakra_integer("n", 5)), "5");
  EXPECT_EQ(number_value(chakra_integer("n", -5)), -5);
}

}  // namespace foretoken::chakra_test
