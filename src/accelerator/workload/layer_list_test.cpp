#include "accelerator/workload/layer_list.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"

namespace foretoken::layer_list_test {

std::vector<AcceleratorLayer> parsed(const std::string& text) {
  const Json document = parse_json(text, "layers.json");
  return accelerator_layers(read_network_layers(JsonView(document, "layers.json")));
}

double operations_of(const std::vector<AcceleratorLayer>& layers) {
  double sum = 0;
  for (const AcceleratorLayer& layer : layers) sum += layer.count * operations(layer.problem);
  return sum;
}

std::vector<AcceleratorLayer> shipped(const std::string& name) {
  const std::filesystem::path file =
      std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "accelerators" / "networks" / (name + ".json");
  const Json document = read_json_file(file);
  return accelerator_layers(read_network_layers(JsonView(document, file.string())));
}

// Multiply-accumulates as published: torchvision's GFLOPS of the weights of ResNet-50, VGG-16 and MobileNetV2; AlexNet
// with its groups, Krizhevsky et al.
TEST(LayerList, shipped_networks_multiply_as_often_as_published) {
  EXPECT_NEAR(operations_of(shipped("resnet50")) / 1e9, 4.09, 0.01);
  EXPECT_NEAR(operations_of(shipped("vgg16")) / 1e9, 15.47, 0.01);
  EXPECT_NEAR(operations_of(shipped("mobilenet_v2")) / 1e9, 0.30, 0.005);
  EXPECT_NEAR(operations_of(shipped("alexnet")) / 1e9, 0.724, 0.005);
}

TEST(LayerList, merging_keeps_the_work_and_the_order) {
  const std::vector<AcceleratorLayer> layers = shipped("resnet50");
  const std::vector<AcceleratorLayer> merged = merged_layers(layers);
  EXPECT_LT(merged.size(), 26u);
  EXPECT_EQ(operations_of(merged), operations_of(layers));
  EXPECT_EQ(merged.front().name, layers.front().name);
  EXPECT_EQ(merged.back().name, layers.back().name);
}

TEST(LayerList, layers_that_differ_in_stride_alone_stay_apart) {
  const auto layers = parsed(
      R"({"layers": [{"name": "a", "conv": {"in_channels": 4, "out_channels": 4, "height": 9, "kernel_height": 3}},
                     {"name": "b", "conv": {"in_channels": 4, "out_channels": 4, "height": 15, "kernel_height": 3,
                                            "stride": 2}}]})");
  EXPECT_EQ(find_dimension(layers[0].problem, "P"), find_dimension(layers[1].problem, "P"));
  EXPECT_EQ(layers[0].problem.dimensions[5].size, layers[1].problem.dimensions[5].size);
  EXPECT_EQ(merged_layers(layers).size(), 2u);
}

TEST(LayerList, wrong_layers_are_named_with_their_place) {
  const auto complaint = [](const std::string& layer) -> std::string {
    try {
      parsed("{\"layers\": [" + layer + "]}");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const std::string conv = R"("conv": {"in_channels": 6, "out_channels": 4, "height": 9, "kernel_height": 3, )";
  EXPECT_NE(complaint(R"({"name": "a"})").find("either `conv` or `gemm`"), std::string::npos);
  EXPECT_NE(complaint(R"({"name": "a", )" + conv + R"("groups": 4}})").find("groups that divide"), std::string::npos);
  EXPECT_NE(complaint(R"({"name": "a", )" + conv + R"("dilation": 8}})").find("kernel that fits"), std::string::npos);
  EXPECT_NE(complaint(R"({"name": "a", )" + conv + R"("stide": 2}})").find("stride"), std::string::npos);
  EXPECT_NE(complaint(R"({"name": "a", "from_previous": true, "gemm": {"m": 1, "n": 1, "k": 1}})").find("before"),
            std::string::npos);
  EXPECT_NE(complaint("").find("at least one layer"), std::string::npos);
}

}  // namespace foretoken::layer_list_test
