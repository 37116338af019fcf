#include "report/chip/port_map_report.h"

#include <gtest/gtest.h>

namespace foretoken::port_map_report_test {

FamilyPortability family(const std::string& name, double efficiency, double spread, size_t devices) {
  FamilyPortability result{.family = name, .efficiency = efficiency, .spread = spread};
  for (size_t i = 0; i < devices; ++i)
    result.devices.push_back({.device = "gpu" + std::to_string(i), .mean = efficiency, .rows = 30});
  return result;
}

TEST(PortMapReport, a_verdict_follows_from_the_spread) {
  const std::vector<FamilyPortability> families = {family("even", 0.7, 0.05, 3), family("between", 0.7, 0.2, 3),
                                                   family("odd", 0.7, 0.6, 3), family("lone", 0.7, 0, 1)};
  const Json json = port_map_json(families);
  const char* verdicts[] = {"ports", "in part", "sweep it", "one device"};
  for (size_t i = 0; i < families.size(); ++i)
    EXPECT_EQ(json.items()[i].find("verdict")->string(), verdicts[i]) << families[i].family;
}

TEST(PortMapReport, families_of_one_device_have_no_place_on_the_map) {
  const std::string svg = port_map_svg(std::vector{family("gemm", 0.7, 0.1, 2), family("norm", 0.9, 0, 1)});
  EXPECT_NE(svg.find("gemm (2)"), std::string::npos);
  EXPECT_EQ(svg.find("norm"), std::string::npos);
}

TEST(PortMapReport, families_on_one_spot_keep_their_labels_apart) {
  std::vector<FamilyPortability> families;
  for (const char* name : {"a", "b", "c", "d", "e"}) families.push_back(family(name, 0.5, 0.2, 2));
  const std::string svg = port_map_svg(families);
  // Lines that write labels: no two start at the same place.
  std::vector<std::string> places;
  for (const FamilyPortability& entry : families) {
    const size_t label = svg.find(">" + entry.family + " (2)</text>");
    ASSERT_NE(label, std::string::npos);
    const size_t start = svg.rfind("<text", label);
    places.push_back(svg.substr(start, svg.find("font-size", start) - start));
  }
  for (size_t i = 0; i < places.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(places[i], places[j]);
  }
}

TEST(PortMapReport, the_table_fits_100_columns) {
  std::vector<FamilyPortability> families = {family("attention_prefill", 0.71, 0.05, 6)};
  const std::string text = port_map_text(families);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 100u);
    begin = end + 1;
  }
  EXPECT_NE(text.find("attention_prefill"), std::string::npos);
}

}  // namespace foretoken::port_map_report_test
