// Builds the content of an ONNX file node by node.
#pragma once

#include <string>
#include <vector>

#include "model/onnx/file.h"

namespace foretoken {

// Every function that adds a tensor returns its name.
class OnnxBuilder {
 public:
  OnnxBuilder(std::string source, int64_t opset);

  // A size below 0 is called "batch".
  std::string input(const std::string& name, const OnnxDims& dims, OnnxType type = OnnxType::float32);
  std::string weight(OnnxDims dims, OnnxType type = OnnxType::float32);  // without content
  std::string filled_weight(OnnxDims dims);  // content between 1/2 and 3/2, not all the same, so that it can run
  std::string integers(std::vector<int64_t> values);
  std::string integer(int64_t value);  // a scalar
  std::string reals(std::vector<double> values);
  std::string real(double value);  // a scalar
  // Its outputs are called after it; the first one is returned.
  std::string node(const std::string& operation, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {}, size_t outputs = 1, const std::string& domain = "");
  void output(const std::string& name, OnnxType type = OnnxType::undefined);

  OnnxFile& file() { return file_; }
  const OnnxFile& file() const { return file_; }

 private:
  std::string add_initializer(char letter, OnnxTensorData tensor);

  OnnxFile file_;
  int next_ = 0;
};

OnnxAttribute with(std::string name, int64_t value);
OnnxAttribute with(std::string name, std::vector<int64_t> values);
OnnxAttribute with_text(std::string name, std::string value);

}  // namespace foretoken
