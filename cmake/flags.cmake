# Compiler flags of everything we compile ourselves; never passed on to those who link the installed libraries.

add_library(foretoken_flags INTERFACE)
# Fused multiply-add is chosen per architecture; without it x86-64 and arm64 round alike.
target_compile_options(foretoken_flags INTERFACE -ffp-contract=off)
# The compiler's own garbage collection costs a tenth of compile time and saves 200 MB.
target_compile_options(foretoken_flags INTERFACE
  "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=2000000>")
if(FORETOKEN_WARNINGS)
  target_compile_options(foretoken_flags INTERFACE
    -Wall -Wextra -Wpedantic $<$<NOT:$<BOOL:${FORETOKEN_QUICK_BUILD}>>:-Wshadow> -Wconversion -Wno-sign-conversion
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # false alarms on std::string in GCC 12 (GCC bug 105651)
    # More of these come and go with the order of headers.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${FORETOKEN_QUICK_BUILD}>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
    -Wno-missing-field-initializers  # designated initialisers leave defaulted members out on purpose
    -Werror)
else()
  target_compile_options(foretoken_flags INTERFACE -w)
  # fmt then checks format strings when it runs: a tenth less to compile.
  target_compile_definitions(foretoken_flags INTERFACE FMT_CONSTEVAL=)
endif()

set(foretoken_sanitizers ${FORETOKEN_SANITIZE})
if(FORETOKEN_FUZZERS AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # The libraries are instrumented too, so that libFuzzer sees which input reaches new code in them.
  string(JOIN "," foretoken_sanitizers ${FORETOKEN_SANITIZE} fuzzer-no-link)
endif()
if(foretoken_sanitizers)
  set(flags -fsanitize=${foretoken_sanitizers})
  target_compile_options(foretoken_flags INTERFACE ${flags} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_compile_definitions(foretoken_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(foretoken_flags INTERFACE ${flags})
  # Instrumented code makes GCC see uninitialised reads inside its own standard library.
  target_compile_options(foretoken_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
