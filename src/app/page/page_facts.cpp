#include "app/page/page_facts.h"

#include "app/cli/command_line.h"
#include "app/page/page_flags.h"
#include "hardware/device_file.h"

namespace foretoken {
namespace {

// Device files as they are, which the page changes and sends back; and what else is known of each.
Json known_devices(const Library& library) {
  Json list = Json::array();
  const HardwareCatalogue catalogue = library.hardware();
  for (const std::string& name : catalogue.device_names()) {
    const Device device = catalogue.device(name);
    Json units = Json::object();
    for (const DeviceFact& fact : device_facts(device)) units.set(fact.key, fact.unit);
    Json one = Json::object({{"file", read_json_file(library.directory() / "hardware" / "devices" / (name + ".json"))},
                             {"units", std::move(units)}});
    if (const MaybeFact<double> rent = library.rent_usd_per_hour(device)) {
      one.set("rent_usd_per_hour", Json::object({{"value", rent->value}, {"source", rent->source}}));
    }
    list.push(std::move(one));
  }
  return list;
}

Json name_list(const std::vector<std::string>& all) {
  Json list = Json::array();
  for (const std::string& name : all) list.push(name);
  return list;
}

Json allowed_flags() {
  Json all = Json::object();
  for (const PageCommand& command : page_commands()) {
    Json flags = Json::array();
    for (const PageFlag& flag : command.flags) flags.push(flag.name);
    all.set(std::string(command.name), std::move(flags));
  }
  return all;
}

}  // namespace

Json page_facts(const Library& library) {
  const auto from = [&](const std::vector<std::string>& arguments, std::string_view key) {
    const Answer answer = answer_command(arguments, library);
    return *answer.json.find(key);
  };
  return Json::object({{"commands", allowed_flags()},
                       {"devices", known_devices(library)},
                       {"clusters", name_list(library.hardware().cluster_names())},
                       {"models", from({"models"}, "models")},
                       {"stacks", from({"stacks"}, "stacks")},
                       {"scenarios", from({"suite", "--list"}, "scenarios")},
                       {"accuracy", read_json_file(library.directory() / "accuracy" / "published.json")}});
}

}  // namespace foretoken
