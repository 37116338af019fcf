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

# For a first build: headers that nearly every file includes are compiled once for several folders, and files many at a
# time. Each of these folders starts a new collection of headers, which those after it use too.
set(foretoken_headers_from_base
  <algorithm> <array> <bit> <chrono> <cmath> <deque> <filesystem> <functional> <limits> <map> <memory> <mutex> <numeric>
  <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector> <fmt/format.h>
  base/csv.h base/error.h base/estimate.h base/json.h base/number_format.h base/portable_math.h base/text.h)
set(foretoken_headers_from_kernel ${foretoken_headers_from_base}
  hardware/catalogue.h hardware/cluster.h model/step.h model/work.h)
set(foretoken_headers_from_compose ${foretoken_headers_from_kernel}
  base/random.h base/statistics.h library/deployment.h library/library.h compose/serving_engine.h compose/step_estimate.h)
set(foretoken_headers_from_plan ${foretoken_headers_from_compose}
  plan/plan_space.h serving/engine/engine_setup.h serving/results/run_explanation.h training/pools/mixed_pools.h)

# foretoken_compile_headers(<target> <collection> [headers]): the collection's headers, compiled for the first target that asks.
function(foretoken_compile_headers target collection)
  get_property(first GLOBAL PROPERTY FORETOKEN_HEADERS_${collection})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    list(TRANSFORM ARGN REPLACE "^([a-z].*)" "${PROJECT_SOURCE_DIR}/src/\\1")
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY FORETOKEN_HEADERS_${collection} ${target})
  endif()
endfunction()

function(foretoken_quicken target)
  if(NOT FORETOKEN_QUICK_BUILD)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 80)
  get_property(collection GLOBAL PROPERTY FORETOKEN_COLLECTION)
  string(REGEX REPLACE "^foretoken_(.*)$" "\\1" folder ${target})
  string(REGEX REPLACE "_hot$" "" folder ${folder})
  if(DEFINED foretoken_headers_from_${folder})
    set(collection ${folder})
    set_property(GLOBAL PROPERTY FORETOKEN_COLLECTION ${folder})
  endif()
  foretoken_compile_headers(${target} ${collection} ${foretoken_headers_from_${collection}})
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
