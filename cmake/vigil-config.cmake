# SPDX-License-Identifier: MIT
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/vigil-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/vigil-etcd-targets.cmake OPTIONAL) # vigil::vigil_etcd, where it is installed
