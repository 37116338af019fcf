file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
execute_process(COMMAND ${CPACK} -G DEB -B ${SCRATCH} --config ${BUILD}/CPackConfig.cmake
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(GLOB package ${SCRATCH}/foretoken_*.deb)
list(LENGTH package count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "expected one foretoken_*.deb in ${SCRATCH}, found: ${package}")
endif()

function(expect text)
  foreach(pattern IN LISTS ARGN)
    if(NOT text MATCHES "${pattern}")
      message(FATAL_ERROR "${package}: no match for '${pattern}' in\n${text}")
    endif()
  endforeach()
endfunction()

execute_process(COMMAND ${DPKG_DEB} --field ${package} OUTPUT_VARIABLE fields COMMAND_ERROR_IS_FATAL ANY)
expect("${fields}" "Package: foretoken\n" "Depends: [^\n]*libc6" "Depends: [^\n]*libstdc\\+\\+6" "Maintainer: foretoken")
execute_process(COMMAND ${DPKG_DEB} --contents ${package} OUTPUT_VARIABLE contents COMMAND_ERROR_IS_FATAL ANY)
expect("${contents}" "\\./usr/bin/foretoken\n" "\\./usr/share/foretoken/data/"
  "\\./usr/share/foretoken/calibrations\\.pack\n" "\\./usr/include/foretoken/base/json\\.h\n"
  "/libforetoken_base\\.a\n" "/cmake/foretoken/foretokenConfig\\.cmake\n" "\\./usr/share/doc/foretoken/copyright\n"
  "\\./usr/share/man/man1/foretoken\\.1\n" "\\./usr/share/bash-completion/completions/foretoken\n"
  "\\./usr/share/zsh/vendor-completions/_foretoken\n" "\\./usr/share/fish/vendor_completions\\.d/foretoken\\.fish\n")
if(EXISTS ${BUILD}/python/foretoken/commands.pyi)
  expect("${contents}" "\\./usr/lib/python3/dist-packages/foretoken/__init__\\.py\n"
    "\\./usr/lib/python3/dist-packages/foretoken/_foretoken\\.[^\n]*so\n")
endif()
