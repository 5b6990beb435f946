# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` leaves for programs of others: the CMake package Rehearse (packaging/example uses it). Programs,
# files and Python are installed where they are built; RehearseDebian.cmake makes packages of all of it.
include(CMakePackageConfigHelpers)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/README.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT rehearse)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/calibrate/published
  DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse COMPONENT rehearse FILES_MATCHING PATTERN "*.csv" PATTERN "*.toml" PATTERN "*.md")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/requests DESTINATION ${CMAKE_INSTALL_DATADIR}/rehearse COMPONENT rehearse)

if(REHEARSE_SIM)
  set(libraries core prices models schedule sim predict search)
  if(REHEARSE_SQLITE)
    list(APPEND libraries store)
  endif()
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/Rehearse)
  install(TARGETS rehearse_warnings EXPORT Rehearse)
  foreach(library ${libraries})
    set_target_properties(rehearse_${library} PROPERTIES EXPORT_NAME ${library})
    install(TARGETS rehearse_${library} EXPORT Rehearse ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${library} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rehearse
      COMPONENT development FILES_MATCHING PATTERN "*.hpp")
  endforeach()
  install(EXPORT Rehearse NAMESPACE Rehearse:: DESTINATION ${folder} COMPONENT development)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/RehearseConfig.cmake.in
    ${PROJECT_BINARY_DIR}/RehearseConfig.cmake INSTALL_DESTINATION ${folder})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/RehearseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/RehearseConfig.cmake ${PROJECT_BINARY_DIR}/RehearseConfigVersion.cmake
    DESTINATION ${folder} COMPONENT development)
endif()

include(RehearseDebian)         # packages by cpack
