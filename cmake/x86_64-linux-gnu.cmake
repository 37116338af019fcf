# Builds for x86-64 on another architecture: cmake --toolchain cmake/x86_64-linux-gnu.cmake -DFORETOKEN_SYSROOT=DIR ...
# DIR is a Debian 12 for amd64 with the packages of setup.sh; scripts/cross_x86_64 makes one. What is built runs under QEMU.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FORETOKEN_SYSROOT)
if(NOT IS_DIRECTORY "${FORETOKEN_SYSROOT}")
  message(FATAL_ERROR "FORETOKEN_SYSROOT: expected the folder of a Debian 12 for amd64 (scripts/cross_x86_64 makes one), got '${FORETOKEN_SYSROOT}'")
endif()

set(CMAKE_C_COMPILER x86_64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER x86_64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
set(CMAKE_SYSROOT ${FORETOKEN_SYSROOT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-x86_64-static -L ${FORETOKEN_SYSROOT})

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The module is for the Python it will be loaded into, which runs under QEMU too.
set(Python3_EXECUTABLE ${FORETOKEN_SYSROOT}/usr/local/bin/emulated-python3)
set(Python3_INCLUDE_DIR ${FORETOKEN_SYSROOT}/usr/include/python3.11)

set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
