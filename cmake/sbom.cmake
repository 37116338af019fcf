# A bill of materials in SPDX 2.3: what the program is linked with or holds, by the versions that were found. Written when the
# build is configured, without a time of day, so that equal builds have equal files.
function(foretoken_sbom file)
  set(packages "")
  set(relations "")
  set(optional "")
  if(TARGET _foretoken)
    # Looked up here, outside the scope that found Python, pybind11 would search for a Python of its own.
    get_property(pybind11_version GLOBAL PROPERTY FORETOKEN_PYBIND11_VERSION)
    list(APPEND optional "pybind11|${pybind11_version}|BSD-3-Clause|https://github.com/pybind/pybind11")
  endif()
  if(FORETOKEN_XNNPACK_LIBRARY)
    list(APPEND optional "xnnpack||BSD-3-Clause|https://github.com/google/XNNPACK"
      "pthreadpool||BSD-2-Clause|https://github.com/Maratyszcza/pthreadpool")
  endif()
  if(FORETOKEN_LIBPQ_HEADERS)
    list(APPEND optional "libpq||PostgreSQL|https://www.postgresql.org")  # loaded when a store needs it
  endif()
  file(READ ${PROJECT_SOURCE_DIR}/web/package.json page)
  string(JSON echarts_version GET "${page}" devDependencies echarts)
  # name|version|license|website
  foreach(entry
      "zlib|${ZLIB_VERSION_STRING}|Zlib|https://zlib.net"
      "fmt|${fmt_VERSION}|MIT|https://fmt.dev"
      "eigen|${Eigen3_VERSION}|MPL-2.0|https://eigen.tuxfamily.org"
      "cli11|${CLI11_VERSION}|BSD-3-Clause|https://github.com/CLIUtils/CLI11"
      "yaml-cpp|${yaml-cpp_VERSION}|MIT|https://github.com/jbeder/yaml-cpp"
      "sqlite|${SQLite3_VERSION}|blessing|https://sqlite.org"
      "openssl|${OPENSSL_VERSION}|Apache-2.0|https://www.openssl.org"
      "pcre2||BSD-3-Clause|https://www.pcre.org"
      "echarts|${echarts_version}|Apache-2.0|https://echarts.apache.org"  # inside the page
      ${optional})
    string(REPLACE "|" ";" parts "${entry}")
    list(GET parts 0 name)
    list(GET parts 1 version)
    list(GET parts 2 license)
    list(GET parts 3 website)
    if(NOT version)
      set(version NOASSERTION)
    endif()
    string(APPEND packages ",
    {\"SPDXID\": \"SPDXRef-${name}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\", \"downloadLocation\": \"${website}\",
     \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${license}\", \"copyrightText\": \"NOASSERTION\"}")
    string(APPEND relations ",
    {\"spdxElementId\": \"SPDXRef-foretoken\", \"relationshipType\": \"DEPENDS_ON\", \"relatedSpdxElement\": \"SPDXRef-${name}\"}")
  endforeach()
  # The date of the sources, as reproducible builds give it.
  set(created 1970-01-01T00:00:00Z)
  if(DEFINED ENV{SOURCE_DATE_EPOCH})
    string(TIMESTAMP created UTC)  # CMake takes the variable for the time
  endif()
  file(WRITE ${file} "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"foretoken-${PROJECT_VERSION}\",
  \"documentNamespace\": \"https://foretoken.invalid/spdx/foretoken-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR}\",
  \"creationInfo\": {\"created\": \"${created}\", \"creators\": [\"Tool: foretoken-cmake\"]},
  \"packages\": [
    {\"SPDXID\": \"SPDXRef-foretoken\", \"name\": \"foretoken\", \"versionInfo\": \"${PROJECT_VERSION}\", \"downloadLocation\": \"NOASSERTION\",
     \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"Apache-2.0\", \"copyrightText\": \"NOASSERTION\"}${packages}
  ],
  \"relationships\": [
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-foretoken\"}${relations}
  ]
}
")
endfunction()
