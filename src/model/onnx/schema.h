// The field numbers of onnx.proto that are read and written here.
#pragma once

#include <cstdint>

namespace foretoken::onnx_schema {

enum : uint32_t { model_ir_version = 1, model_producer = 2, model_producer_version = 3, model_graph = 7 };
enum : uint32_t { model_opset = 8, model_function = 25 };
enum : uint32_t { opset_domain = 1, opset_version = 2 };
enum : uint32_t { graph_node = 1, graph_name = 2, graph_initializer = 5, graph_input = 11, graph_output = 12 };
enum : uint32_t { graph_value_info = 13, graph_sparse_initializer = 15 };
enum : uint32_t { node_input = 1, node_output = 2, node_name = 3, node_operation = 4, node_attribute = 5 };
enum : uint32_t { node_domain = 7 };
enum : uint32_t { function_name = 1, function_input = 4, function_output = 5, function_node = 7 };
enum : uint32_t { function_domain = 10, function_default = 11 };
enum : uint32_t { attribute_name = 1, attribute_real = 2, attribute_integer = 3, attribute_text = 4 };
enum : uint32_t { attribute_tensor = 5, attribute_graph = 6, attribute_reals = 7, attribute_integers = 8 };
enum : uint32_t { attribute_texts = 9, attribute_type = 20, attribute_reference = 21 };
enum : uint32_t { tensor_dims = 1, tensor_type = 2, tensor_float_data = 4, tensor_int32_data = 5 };
enum : uint32_t { tensor_int64_data = 7, tensor_name = 8, tensor_raw_data = 9, tensor_double_data = 10 };
enum : uint32_t { tensor_uint64_data = 11, tensor_external = 13, tensor_location = 14 };
enum : uint32_t { entry_key = 1, entry_value = 2 };
enum : uint32_t { sparse_values = 1, sparse_dims = 3 };
enum : uint32_t { value_name = 1, value_type = 2 };
enum : uint32_t { type_tensor = 1, type_sequence = 4, type_optional = 9 };
enum : uint32_t { tensor_type_element = 1, tensor_type_shape = 2 };
enum : uint32_t { shape_dimension = 1, dimension_size = 1, dimension_symbol = 2 };

// AttributeProto.AttributeType
enum : uint32_t { kind_real = 1, kind_integer = 2, kind_text = 3, kind_tensor = 4, kind_graph = 5 };
enum : uint32_t { kind_reals = 6, kind_integers = 7, kind_texts = 8 };

}  // namespace foretoken::onnx_schema
