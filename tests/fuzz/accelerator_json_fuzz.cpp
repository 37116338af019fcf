// Any bytes are either a design, a problem or a library of energies that makes sense, or an InputError.
#include <string>

#include "accelerator/energy/energy_library.h"
#include "accelerator/formats/architecture_json.h"
#include "accelerator/formats/problem_json.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace foretoken;
  read_or_refuse([&] {
    const Json document = parse_json(as_text(data, size), "input");
    const JsonView view(document, "input");
    read_or_refuse([&] {
      const AcceleratorDesign design = read_architecture_json(view);
      promise(architecture_fault(design.architecture).empty(), "an architecture is sound");
      const Json written = architecture_json(design);
      promise(architecture_json(read_architecture_json(JsonView(written, "written"))).dump() == written.dump(),
              "what is written reads back");
    });
    read_or_refuse([&] { promise(problem_fault(read_problem_json(view)).empty(), "a problem is sound"); });
    read_or_refuse([&] {
      const EnergyLibrary library = EnergyLibrary::read(view);
      for (const std::string& name : library.component_names()) {
        const AcceleratorLevel level{.name = "level", .component = name, .depth = 64};
        promise(library.costs(level, {.technology_nm = 28}, 1).energy.read_pj >= 0, "an energy is not negative");
      }
    });
  });
  return 0;
}
