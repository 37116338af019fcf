# foretoken_folder(<name> [USES folders] [LINKS targets] [HEADERS_OF targets])
#
# One pipeline folder = one CMake target `foretoken_<name>` (`foretoken::<name>` for those who use the package), built from
# every .cpp in src/<name>. Its *_test.cpp make the test program `<name>_test`, its *_slow_test.cpp `<name>_slow_test`.
# A folder without sources yet is a header-only (INTERFACE) target.
#   USES        the folders above it that it includes
#   LINKS       third-party libraries, private; add them to cmake/foretokenConfig.cmake.in too
#   HEADERS_OF  third-party header-only libraries, private; users of the package do not need them

# For a first build: headers that nearly every file includes are compiled once for all targets, and files several at a
# time. Kinds of one thing, in a folder with a list.cpp, stay apart: they use the same names.
function(foretoken_quicken target)
  if(NOT FORETOKEN_QUICK_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    if(EXISTS ${folder}/list.cpp)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  if(target STREQUAL foretoken_base)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cmath> <filesystem> <functional> <map> <memory> <optional> <span> <string> <string_view>
      <utility> <variant> <vector> <fmt/format.h>)
  else()
    target_precompile_headers(${target} REUSE_FROM foretoken_base)
  endif()
  # Unnamed namespaces of several files look as if they lay in a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# Whose tests have helpers with names of their own.
set(folders_of_tests_together base accelerator network training plan report)

function(foretoken_folder name)
  cmake_parse_arguments(arg "" "" "USES;LINKS;HEADERS_OF" ${ARGN})
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
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PRIVATE fmt::fmt ${arg_LINKS} ${arg_HEADERS_OF} $<BUILD_INTERFACE:foretoken_flags>)
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
    set(together)
    if(name IN_LIST folders_of_tests_together)
      set(together TOGETHER)
    endif()
    foretoken_tests(${name}_test ${together} SOURCES ${tests} LINKS ${target})
  endif()
  if(FORETOKEN_TESTS AND slow_tests)
    foretoken_tests(${name}_slow_test SLOW SOURCES ${slow_tests} LINKS ${target})
  endif()
endfunction()
