# SPDX-License-Identifier: MIT
# Libraries, headers, a pkg-config file and a CMake package; the command, its manual pages and completions. In
# components, which are the Debian packages as well (tools/deb.sh): library, development and command; and, where
# libvigil-etcd is built, etcd and etcd-development.
include(CMakePackageConfigHelpers)

install(TARGETS vigil EXPORT vigil LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS vigil_static EXPORT vigil ARCHIVE COMPONENT development)
install(DIRECTORY include/vigil DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
    FILES_MATCHING PATTERN *.h)
install(DIRECTORY adapter/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vigil/adapter COMPONENT development
    FILES_MATCHING PATTERN *.h)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vigil)
write_basic_package_version_file(vigil-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT vigil NAMESPACE vigil:: FILE vigil-targets.cmake DESTINATION ${package_dir} COMPONENT development)
install(FILES cmake/vigil-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/vigil-config-version.cmake
    DESTINATION ${package_dir} COMPONENT development)

# Found from where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH VIGIL_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" VIGIL_PC_PREFIX ${VIGIL_PC_PREFIX})
configure_file(cmake/vigil.pc.in vigil.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vigil.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

if(TARGET vigil_etcd)
    install(TARGETS vigil_etcd EXPORT vigil-etcd LIBRARY COMPONENT etcd NAMELINK_COMPONENT etcd-development)
    install(EXPORT vigil-etcd NAMESPACE vigil:: FILE vigil-etcd-targets.cmake DESTINATION ${package_dir}
        COMPONENT etcd-development)
    configure_file(cmake/vigil-etcd.pc.in vigil-etcd.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vigil-etcd.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT etcd-development)
    set(etcd vigil_etcd)
endif()

# The command finds the others, vigil-NAME, in libexec; vigil-top is there if this machine has what it needs. The
# benchmark stays where its peers are: it says what this machine does, not what is installed.
install(TARGETS vigil_command RUNTIME COMPONENT command)
set(libexec ${CMAKE_INSTALL_LIBEXECDIR}/vigil)
install(TARGETS vigil_demo RUNTIME DESTINATION ${libexec} COMPONENT command)
if(TARGET vigil_top)
    install(TARGETS vigil_top RUNTIME DESTINATION ${libexec} COMPONENT command)
    set(top vigil_top)
endif()
if(TARGET vigil_at)
    install(TARGETS vigil_at RUNTIME DESTINATION ${libexec} COMPONENT etcd)
    set(at vigil_at)
endif()

# What vigil run preloads: programs do not link with it, so it is not among the libraries.
if(TARGET vigil_pthread)
    install(TARGETS vigil_pthread LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/vigil COMPONENT command)
    set(preloaded vigil_pthread)
endif()

set(man ${CMAKE_CURRENT_BINARY_DIR}/man) # see manual.cmake
install(DIRECTORY ${man}/man1 ${man}/man7 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(DIRECTORY ${man}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT development)

set(completion cli/completion)
install(FILES ${completion}/vigil.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command RENAME vigil)
install(FILES ${completion}/_vigil DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command)
install(FILES ${completion}/vigil.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)

add_custom_target(installable
    DEPENDS vigil vigil_static vigil_command vigil_demo ${top} ${at} ${preloaded} ${etcd} manual)
