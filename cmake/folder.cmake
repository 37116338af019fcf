# foretoken_folder(<name> [USES folders] [HOT parts] [LINKS targets] [HEADERS_OF targets] [LONG_TESTS suites])
#
# One pipeline folder = one CMake target `foretoken_<name>` (`foretoken::<name>` for those who use the package), built from
# every .cpp in src/<name>. Its *_test.cpp make the test program `<name>_test`, its *_slow_test.cpp `<name>_slow_test`.
# A folder without sources yet is a header-only (INTERFACE) target.
#   USES        the folders above it that it includes
#   HOT         subfolders and files whose code runs millions of times for one answer: fully optimized; `.` = all of it
#   LINKS       third-party libraries, private; add them to cmake/foretokenConfig.cmake.in too
#   LONG_TESTS  suites that take long (a GoogleTest filter; cmake/tests.cmake)
#   HEADERS_OF  third-party header-only libraries, private; users of the package do not need them

# Kinds of one thing that use the same names in each file.
set(folders_of_files_apart kernel/forms kernel/families kernel/fewshot/spaces
  network/algorithms network/topology/kinds network/calibration/laws)

# For a first build: headers that nearly every file includes are compiled once for all targets, and files many at a time.
function(foretoken_quicken target)
  if(NOT FORETOKEN_QUICK_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^[$]")
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${folder})
    if(folder IN_LIST folders_of_files_apart)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 80)
  if(target STREQUAL foretoken_base)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cmath> <filesystem> <functional> <map> <memory> <optional> <span> <string> <string_view>
      <utility> <variant> <vector> <fmt/format.h>
      ${PROJECT_SOURCE_DIR}/src/base/error.h ${PROJECT_SOURCE_DIR}/src/base/json.h ${PROJECT_SOURCE_DIR}/src/base/text.h)
  else()
    target_precompile_headers(${target} REUSE_FROM foretoken_base)
  endif()
  # Unnamed namespaces of several files look as if they lay in a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# Most of compile time is optimization, and most code runs once for an answer.
set(foretoken_flags_of_other_code $<$<CONFIG:Release>:-Og>)

function(foretoken_folder name)
  cmake_parse_arguments(arg "" "LONG_TESTS" "USES;HOT;LINKS;HEADERS_OF" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  set(slow_tests ${tests})
  list(FILTER tests EXCLUDE REGEX "_slow_test\\.cpp$")
  list(FILTER slow_tests INCLUDE REGEX "_slow_test\\.cpp$")
  list(TRANSFORM arg_USES PREPEND foretoken_)
  list(TRANSFORM arg_HEADERS_OF REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")

  set(target foretoken_${name})
  if(sources)
    set(scope PUBLIC)
    set(libraries fmt::fmt ${arg_LINKS} ${arg_HEADERS_OF} $<BUILD_INTERFACE:foretoken_flags>)
    set(hot ${sources})
    list(JOIN arg_HOT "|" parts)
    list(FILTER hot INCLUDE REGEX "^${folder}/(${parts})[/.]")
    if(arg_HOT AND NOT arg_HOT STREQUAL ".")
      list(REMOVE_ITEM sources ${hot})
      add_library(${target}_hot OBJECT ${hot})
      target_include_directories(${target}_hot PRIVATE ${PROJECT_SOURCE_DIR}/src)
      target_link_libraries(${target}_hot PRIVATE ${libraries})
      foretoken_quicken(${target}_hot)
      list(APPEND sources $<TARGET_OBJECTS:${target}_hot>)
    endif()
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PRIVATE ${libraries})
    if(NOT arg_HOT STREQUAL ".")
      target_compile_options(${target} PRIVATE ${foretoken_flags_of_other_code})
    endif()
    foretoken_quicken(${target})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} ${arg_USES})
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/foretoken>)
  target_compile_features(${target} ${scope} cxx_std_20)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  add_library(foretoken::${name} ALIAS ${target})
  set_property(GLOBAL APPEND PROPERTY FORETOKEN_FOLDERS ${target})

  if(FORETOKEN_TESTS AND tests)
    foretoken_tests(${name}_test SOURCES ${tests} LINKS ${target} LONG "${arg_LONG_TESTS}")
  endif()
  if(FORETOKEN_TESTS AND slow_tests)
    foretoken_tests(${name}_slow_test SLOW SOURCES ${slow_tests} LINKS ${target})
  endif()
endfunction()
