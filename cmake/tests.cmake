# foretoken_tests(<target> SOURCES ... [LINKS ...] [SLOW]): a GoogleTest program and its ctest entry.
# SLOW tests carry the label `slow`; the fast set is `ctest -LE slow`. A quick build compiles many sources at a time, so
# each test file has a namespace of its own.
function(foretoken_tests target)
  cmake_parse_arguments(arg "SLOW" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINKS} foretoken_flags fmt::fmt GTest::gtest_main GTest::gmock)
  # Test code is compiled more often than it runs.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  target_compile_definitions(${target} PRIVATE FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(FORETOKEN_QUICK_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 30)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    get_property(first GLOBAL PROPERTY FORETOKEN_FIRST_TEST)  # whose compiled headers the others use
    if(first)
      target_precompile_headers(${target} REUSE_FROM ${first})
    else()
      target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <filesystem> <map> <string> <vector> <gmock/gmock.h> <gtest/gtest.h>)
      set_property(GLOBAL PROPERTY FORETOKEN_FIRST_TEST ${target})
    endif()
  endif()
  # One ctest entry per test program: starting a process per case costs more than the cases do.
  add_test(NAME ${target} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # The library of facts is looked for beside the executable; a build folder elsewhere still tests with ours.
  set_tests_properties(${target} PROPERTIES ENVIRONMENT FORETOKEN_LIBRARY=${PROJECT_SOURCE_DIR}/data TIMEOUT 300)
  if(arg_SLOW)
    set_tests_properties(${target} PROPERTIES LABELS slow TIMEOUT 1200)
  endif()
endfunction()

# foretoken_fuzz_target(<target> SOURCES ... [LINKS ...]): a libFuzzer program in <build>/fuzz. The sources define
# LLVMFuzzerTestOneInput; test.sh --all runs every program of that folder for a fixed number of seconds.
function(foretoken_fuzz_target target)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINKS} foretoken_flags fmt::fmt)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endfunction()
