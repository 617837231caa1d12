# SPDX-License-Identifier: MIT
# Libraries, headers, a pkg-config file and a CMake package.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vigil)
install(TARGETS vigil vigil_static EXPORT vigil)
install(DIRECTORY include/vigil DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(DIRECTORY adapter/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vigil/adapter FILES_MATCHING PATTERN *.h)
install(EXPORT vigil NAMESPACE vigil:: FILE vigil-targets.cmake DESTINATION ${package_dir})

write_basic_package_version_file(vigil-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/vigil-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/vigil-config-version.cmake
    DESTINATION ${package_dir})

# Found from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH VIGIL_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" VIGIL_PC_PREFIX ${VIGIL_PC_PREFIX})
configure_file(cmake/vigil.pc.in vigil.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vigil.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
