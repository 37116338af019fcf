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
  "\\./usr/share/doc/foretoken/foretoken\\.spdx\\.json\n"
  "\\./usr/share/man/man1/foretoken\\.1\n" "\\./usr/share/bash-completion/completions/foretoken\n"
  "\\./usr/share/zsh/vendor-completions/_foretoken\n" "\\./usr/share/fish/vendor_completions\\.d/foretoken\\.fish\n")
if(EXISTS ${BUILD}/python/foretoken/commands.pyi)
  expect("${contents}" "\\./usr/lib/python3/dist-packages/foretoken/__init__\\.py\n"
    "\\./usr/lib/python3/dist-packages/foretoken/_foretoken\\.[^\n]*so\n")
endif()

# Unpacked where nothing else of it is, the package must answer by itself: with its own data, and in a clean environment.
set(root ${SCRATCH}/root)
execute_process(COMMAND ${DPKG_DEB} --extract ${package} ${root} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND /usr/bin/env -i PATH=/usr/bin:/bin HOME=${SCRATCH} ${root}/usr/bin/foretoken demo
  OUTPUT_VARIABLE demo TIMEOUT 60 COMMAND_ERROR_IS_FATAL ANY)
expect("${demo}" "h100_sxm|H100")
file(READ ${root}/usr/share/doc/foretoken/foretoken.spdx.json sbom)
string(JSON named GET "${sbom}" packages 0 versionInfo)
expect("${fields}" "Version: ${named}")
