# foretoken_tests(<target> SOURCES ... [LINKS ...] [SLOW] [LONG suites] [SPLIT name=suites ...]): a GoogleTest program and its
# ctest entry. SLOW tests carry the label `slow`. LONG suites (a GoogleTest filter) have an entry of their own, <folder>_long,
# labeled `long`: continuous integration runs them, `test.sh` only with --long. A quick build compiles many sources at a
# time, so each test file has a namespace of its own.
# Suites that need something a machine may lack end in what they need (...NeedsData, ...NeedsMpi) and get an entry of their
# own, <folder>_needs_data, labeled `long`, which ctest reports as Skipped where it is missing (tests/support/main.cpp). So do instances of
# a suite whose prefix says it: INSTANTIATE_TEST_SUITE_P(NeedsPostgres, ...).
# SPLIT gives suites (a GoogleTest filter) an entry of their own, to run beside the others.
function(foretoken_tests target)
  cmake_parse_arguments(arg "SLOW" "LONG" "SOURCES;LINKS;SPLIT" ${ARGN})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINKS} foretoken_flags fmt::fmt foretoken_test_main GTest::gtest GTest::gmock)
  # Test code is compiled more often than it runs.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  target_compile_definitions(${target} PRIVATE FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(FORETOKEN_QUICK_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 100)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    get_property(collection GLOBAL PROPERTY FORETOKEN_COLLECTION)
    foretoken_compile_headers(${target} tests_from_${collection}
      <gmock/gmock.h> <gtest/gtest.h> ${foretoken_headers_from_${collection}})
  endif()
  # Few ctest entries per test program: starting a process per case costs more than the cases do.
  string(REGEX REPLACE "_test$" "" stem ${target})
  set(needs "")
  foreach(source ${arg_SOURCES})
    file(STRINGS ${source} suites REGEX "^(TEST(_F|_P)?|INSTANTIATE_TEST_SUITE_P)\\([A-Za-z0-9]*Needs[A-Z]")
    foreach(suite ${suites})
      string(REGEX REPLACE "^[A-Z_]+\\([A-Za-z0-9]*Needs([A-Za-z0-9]+).*" "\\1" need ${suite})
      list(APPEND needs ${need})
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES needs)
  set(apart ${arg_SPLIT})
  if(arg_LONG)
    list(APPEND apart "${stem}_long=${arg_LONG}")
  endif()
  foreach(need ${needs})
    string(TOLOWER ${need} word)
    list(APPEND apart ${stem}_needs_${word}=*Needs${need}.*:*Needs${need}/*)
  endforeach()
  set(rest *)
  set(separator -)
  foreach(part ${apart})
    string(REGEX REPLACE "=.*" "" name ${part})
    string(REGEX REPLACE "^[^=]*=" "" filter ${part})
    string(APPEND rest "${separator}${filter}")
    set(separator :)
    if(NOT name MATCHES "_needs_" AND needs)
      string(APPEND filter "-*Needs*")
    endif()
    foretoken_test_entry(${name} ${target} "${filter}" "${arg_SLOW}")
    if(name MATCHES "_needs_" AND NOT arg_SLOW)
      set_tests_properties(${name} PROPERTIES LABELS long)
    endif()
  endforeach()
  foretoken_test_entry(${target} ${target} "${rest}" "${arg_SLOW}")
  if(arg_LONG)
    set_tests_properties(${stem}_long PROPERTIES LABELS long)
  endif()
endfunction()

function(foretoken_test_entry name target filter slow)
  add_test(NAME ${name} COMMAND ${target} --gtest_filter=${filter} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # The library of facts is looked for beside the executable; a build folder elsewhere still tests with ours.
  set_tests_properties(${name} PROPERTIES ENVIRONMENT FORETOKEN_LIBRARY=${PROJECT_SOURCE_DIR}/data SKIP_RETURN_CODE 77)
  foretoken_time_limit(${name} 300)
  if(slow)
    set_tests_properties(${name} PROPERTIES LABELS slow)
    foretoken_time_limit(${name} 1200)
  endif()
endfunction()

# foretoken_time_limit(<test> <seconds>): of a plain build; programs under sanitizers are several times slower.
function(foretoken_time_limit test seconds)
  if(FORETOKEN_SANITIZE)
    math(EXPR seconds "10 * ${seconds}")
  endif()
  set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds})
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
