# Installed: the program, its data, the libraries with headers and a CMake package, and a .deb of all that (cpack -G DEB).
# Manual page, completions and Python module are installed where they are made, in src/app.

include(CMakePackageConfigHelpers)

install(DIRECTORY data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/foretoken/data)
install(PROGRAMS tools/profile_cuda.py tools/measure_steps.py DESTINATION ${CMAKE_INSTALL_DATADIR}/foretoken/tools)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
include(cmake/sbom.cmake)
foretoken_sbom(${PROJECT_BINARY_DIR}/foretoken.spdx.json)
install(FILES ${PROJECT_BINARY_DIR}/foretoken.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})

get_property(folders GLOBAL PROPERTY FORETOKEN_FOLDERS)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/foretoken)
install(TARGETS ${folders} EXPORT foretokenTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# `#include <foretoken/foretoken.h>` is the public face; the headers of the folders lie beside it.
install(DIRECTORY include/foretoken DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/foretoken
  FILES_MATCHING PATTERN "*.h" PATTERN "app" EXCLUDE)
install(EXPORT foretokenTargets NAMESPACE foretoken:: DESTINATION ${package_dir})
configure_package_config_file(cmake/foretokenConfig.cmake.in ${PROJECT_BINARY_DIR}/foretokenConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/foretokenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/foretokenConfig.cmake ${PROJECT_BINARY_DIR}/foretokenConfigVersion.cmake
  DESTINATION ${package_dir})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME foretoken)
set(CPACK_PACKAGE_VENDOR foretoken)
set(CPACK_PACKAGE_CONTACT "foretoken maintainers <maintainers@foretoken.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${CPACK_PACKAGE_CONTACT})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Only those who link the static libraries, import the Python module or keep results in PostgreSQL need these.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfmt-dev, libyaml-cpp-dev, zlib1g-dev, libsqlite3-dev, libpq5, python3, python3-numpy")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts time, memory, energy and cost of ML workloads")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Tells how long a training or serving workload will take on given accelerators,
how much memory, energy and money it needs, and how sure that answer is, before
the hardware is rented or built. Each answer opens up down to single kernels.")
include(CPack)
