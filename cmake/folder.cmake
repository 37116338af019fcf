# One pipeline folder = one CMake target `foretoken_<name>`, built from every .cpp in src/<name>, and one test program
# `<name>_test` built from every *_test.cpp there. A folder without sources yet is a header-only (INTERFACE) target.

add_library(foretoken_flags INTERFACE)
target_compile_options(foretoken_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  -Wno-missing-field-initializers  # designated initialisers leave defaulted members out on purpose
  -Werror
  # Fused multiply-add is chosen per architecture; without it x86-64 and arm64 round alike.
  -ffp-contract=off)
if(FORETOKEN_SANITIZE)
  target_compile_options(foretoken_flags INTERFACE -fsanitize=${FORETOKEN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(foretoken_flags INTERFACE -fsanitize=${FORETOKEN_SANITIZE})
endif()

function(foretoken_tests target)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINKS} foretoken_flags GTest::gtest_main GTest::gmock)
  target_compile_definitions(${target} PRIVATE FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # One ctest entry per test program: starting a process per case costs more than the cases do.
  add_test(NAME ${target} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

function(foretoken_folder name)
  cmake_parse_arguments(arg "" "" "USES;LINKS" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(TRANSFORM arg_USES PREPEND foretoken_)

  set(target foretoken_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC ${arg_USES} PRIVATE ${arg_LINKS} $<BUILD_INTERFACE:foretoken_flags>)
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/foretoken>)
    target_compile_features(${target} PUBLIC cxx_std_20)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_USES})
  endif()
  set_property(GLOBAL APPEND PROPERTY FORETOKEN_FOLDERS ${target})

  if(FORETOKEN_TESTS AND tests)
    foretoken_tests(${name}_test SOURCES ${tests} LINKS ${target})
  endif()
endfunction()
