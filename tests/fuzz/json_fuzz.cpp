// Any bytes are either a document that writes and reads back without loss, or an InputError.
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"

namespace {

using namespace foretoken;

template <class Read>
void may_complain(Read read) {
  try {
    read();
  } catch (const InputError& error) {
    promise(error.what()[0] != '\0', "a complaint says something");
  }
}

void read_in_every_way(const JsonView& view) {
  may_complain([&] { view.string(); });
  may_complain([&] { view.boolean(); });
  may_complain([&] { view.number({-1, 1}); });
  may_complain([&] { view.integer({0, 4096}); });
  may_complain([&] { view.at("hidden_size"); });
  may_complain([&] { view.allow_only({"hidden_size", "model_type"}); });
  if (view.is(Json::Kind::array)) {
    for (const JsonView& item : view.items()) read_in_every_way(item);
  }
  if (view.is(Json::Kind::object)) {
    for (const auto& [key, member] : view.members()) read_in_every_way(member);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const Json document = parse_json(as_text(data, size), "input");
    const std::string written = document.dump();
    promise(parse_json(written, "written").dump() == written, "a document is the same after writing and reading it");
    promise(parse_json(document.dump(0), "one line").dump() == written, "line ends carry no meaning");
    if (size < 4096) read_in_every_way(JsonView(document, "input"));
  } catch (const InputError& error) {
    promise(error.problem().line >= 0 && !error.problem().expected.empty(), "a complaint says what was expected");
  }
  return 0;
}
