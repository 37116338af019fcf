#include "model/onnx/read_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/protobuf.h"
#include "model/onnx/schema.h"
#include "model/onnx/summary.h"
#include "model/onnx/test_graphs.h"
#include "model/onnx/writer.h"

namespace foretoken::onnx_file_test {

TEST(OnnxFile, what_is_written_reads_back_as_the_same_bytes) {
  OnnxTestGraph graph = transformer_network(1);
  graph.file().functions.push_back({.domain = "mine", .name = "F", .inputs = {"a"}, .outputs = {"b"}});
  OnnxBody body;
  body.nodes.push_back({.operation = "Identity", .inputs = {"tokens"}, .outputs = {"t"}});
  body.outputs.push_back({.name = "t"});
  graph.node("If", {"tokens"}, {with_body("then_branch", body), with_text("mode", "x")});
  graph.node("Constant", {}, {{.name = "value_floats", .value = std::vector<double>{0.5, -2}}});
  const std::string written = onnx_text(graph.file());
  EXPECT_EQ(onnx_text(parse_onnx(written, "written")), written);
}

TEST(OnnxFile, a_cut_file_is_an_error_with_its_place) {
  const std::string written = onnx_text(block_network(1, 1).file());
  int refused = 0;
  for (size_t length = 1; length < written.size(); length += 7) {
    try {
      parse_onnx(std::string_view(written).substr(0, length), "cut");
    } catch (const InputError& error) {
      EXPECT_NE(error.problem().path.find("byte"), std::string::npos);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(OnnxFile, what_is_no_model_is_called_what_it_is) {
  const auto complaint = [](const std::string& content) -> std::string {
    try {
      parse_onnx(content, "net.onnx");
    } catch (const InputError& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_NE(complaint("").find("an empty file"), std::string::npos);
  EXPECT_NE(complaint("{\"nodes\": []}\n").find("not an ONNX file: text that begins with '{\"nodes\": []}'"),
            std::string::npos);
  EXPECT_NE(complaint("version https://git-lfs.github.com/spec/v1\n").find("Git LFS"), std::string::npos);
  EXPECT_NE(complaint(std::string("PK\x03\x04\0\0", 6)).find("zip"), std::string::npos);
  WireWriter other;
  other.varint(1, 8);
  EXPECT_NE(complaint(other.text()).find("not an ONNX file: no graph in it"), std::string::npos);
}

// A model with one initializer, whose message is given.
std::string model_with_tensor(const std::string& tensor) {
  WireWriter graph;
  graph.bytes(onnx_schema::graph_initializer, tensor);
  WireWriter model;
  model.bytes(onnx_schema::model_graph, graph.text());
  return model.take();
}

TEST(OnnxFile, raw_content_is_read_by_its_type) {
  WireWriter tensor;
  tensor.varint(onnx_schema::tensor_dims, 2);
  tensor.varint(onnx_schema::tensor_type, static_cast<uint64_t>(OnnxType::int32));
  tensor.bytes(onnx_schema::tensor_raw_data, std::string_view("\xfe\xff\xff\xff\x05\0\0\0", 8));
  const OnnxFile file = parse_onnx(model_with_tensor(tensor.text()), "raw");
  EXPECT_EQ(file.body.initializers.at(0).values, OnnxValues::of({-2, 5}));
}

TEST(OnnxFile, content_that_does_not_fit_the_shape_is_refused) {
  WireWriter tensor;
  tensor.varint(onnx_schema::tensor_dims, 3);
  tensor.varint(onnx_schema::tensor_type, static_cast<uint64_t>(OnnxType::int64));
  tensor.bytes(onnx_schema::tensor_raw_data, "12345678");
  EXPECT_THROW(parse_onnx(model_with_tensor(tensor.text()), "short"), InputError);
}

TEST(OnnxFile, a_tensor_without_measure_is_refused) {
  WireWriter tensor;
  for (int i = 0; i < 4; ++i) tensor.varint(onnx_schema::tensor_dims, uint64_t{1} << 40);
  EXPECT_THROW(parse_onnx(model_with_tensor(tensor.text()), "huge"), InputError);
}

std::string external_tensor(std::string_view location) {
  WireWriter tensor;
  tensor.varint(onnx_schema::tensor_dims, 2);
  tensor.varint(onnx_schema::tensor_type, static_cast<uint64_t>(OnnxType::int64));
  const auto entry = [&](std::string_view key, std::string_view value) {
    WireWriter pair;
    pair.bytes(onnx_schema::entry_key, key);
    pair.bytes(onnx_schema::entry_value, value);
    tensor.bytes(onnx_schema::tensor_external, pair.text());
  };
  entry("location", location);
  entry("offset", "8");
  tensor.varint(onnx_schema::tensor_location, 1);
  return tensor.take();
}

TEST(OnnxFile, small_constants_are_read_from_the_file_beside_the_model) {
  const std::filesystem::path folder(testing::TempDir());
  std::string content(24, '\0');
  content[8] = 7;
  content[16] = 9;
  write_file(folder / "onnx_external.bin", content);
  const std::string model = model_with_tensor(external_tensor("onnx_external.bin"));
  EXPECT_EQ(parse_onnx(model, "external", folder).body.initializers.at(0).values, OnnxValues::of({7, 9}));
  // Its shape is enough where the file is missing; a name that leaves the folder is refused.
  EXPECT_FALSE(parse_onnx(model, "external", folder / "elsewhere").body.initializers.at(0).values.has_value());
  EXPECT_THROW(parse_onnx(model_with_tensor(external_tensor("../secret")), "external", folder), InputError);
}

TEST(OnnxFile, graphs_within_graphs_have_a_limit) {
  OnnxBody inner;
  for (int i = 0; i < 40; ++i) {
    OnnxBody outer;
    outer.nodes.push_back({.operation = "If", .attributes = {with_body("then_branch", inner)}});
    inner = outer;
  }
  OnnxFile file{.opsets = {{"", 17}}, .body = inner};
  EXPECT_THROW(parse_onnx(onnx_text(file), "deep"), InputError);
}

TEST(OnnxFile, more_nodes_than_the_limit_are_refused) {
  const std::string written = onnx_text(block_network(4, 4).file());
  EXPECT_THROW(parse_onnx(written, "large", {}, {.max_nodes = 10}), InputError);
}

}  // namespace foretoken::onnx_file_test
