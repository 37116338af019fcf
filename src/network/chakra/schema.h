// Field numbers of mlcommons/chakra, schema/protobuf/et_def.proto: shared by the reader and the writer.
#pragma once

#include <cstdint>

#include "network/chakra/chakra.h"

namespace foretoken::chakra_schema {

inline constexpr uint32_t metadata_version = 1, metadata_attribute = 2;

inline constexpr uint32_t node_id = 1, node_name = 2, node_type = 3, node_control_dependencies = 4,
                          node_data_dependencies = 5, node_start = 6, node_duration = 7, node_inputs = 8,
                          node_outputs = 9, node_attribute = 10;

inline constexpr uint32_t tensors_values = 1, tensors_shapes = 2, tensors_types = 3;

inline constexpr uint32_t attribute_name = 1, attribute_doc_string = 2, attribute_first_value = 3,
                          attribute_last_value = 32;

inline constexpr uint32_t list_values = 1;

constexpr ChakraFormat format_of(uint32_t field) {
  return static_cast<ChakraFormat>((field - attribute_first_value) / 2);
}
constexpr bool is_list(uint32_t field) {
  return (field - attribute_first_value) % 2 == 1;
}
constexpr uint32_t field_of(ChakraFormat format, bool list) {
  return attribute_first_value + 2 * static_cast<uint32_t>(format) + (list ? 1 : 0);
}

}  // namespace foretoken::chakra_schema
