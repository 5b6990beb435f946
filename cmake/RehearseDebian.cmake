# SPDX-License-Identifier: Apache-2.0
# Debian packages by `cpack -G DEB`: one a component. RehearseDebianFiles.cmake adds what Debian wants in each of them.
set(REHEARSE_MAINTAINER "The Rehearse authors <rehearse@example.org>" CACHE STRING
  "whom Debian packages name: name and address of who builds them")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The Rehearse authors")
set(CPACK_PACKAGE_CONTACT "${REHEARSE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/RehearseDebianFiles.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# rehearse_package(COMPONENT NAME SECTION "synopsis" "description, a line after the other" KEY value...)
function(rehearse_package component name section synopsis description)
  string(TOUPPER ${component} upper)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${synopsis}\n${description}" PARENT_SCOPE)
  while(ARGN)
    list(POP_FRONT ARGN key value)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${key} "${value}" PARENT_SCOPE)
  endwhile()
endfunction()

set(CPACK_COMPONENTS_ALL)
set(same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
rehearse_package(rehearse rehearse science "predicts how deep-learning training runs scale on machines"
  "Predicts how a training job scales on a machine that one does not hold, runs\nthe same schedule over MPI, and compares the two timelines."
  DEPENDS "python3:any" RECOMMENDS "openmpi-bin" SUGGESTS "rehearse-gui")
if(REHEARSE_GUI)
  rehearse_package(gui rehearse-gui science "window of rehearse: timelines, predictions and machines on screen"
    "Opens predictions and measured timelines of deep-learning training runs, lays\nthem side by side, and edits and predicts experiments."
    DEPENDS "rehearse ${same}" RECOMMENDS "fonts-dejavu-core")
endif()
if(REHEARSE_SIM)
  set(needs "libfmt-dev, libhwloc-dev, libprotobuf-dev, libpugixml-dev, libsimgrid-dev, libtomlplusplus-dev, nlohmann-json3-dev, pkg-config")
  foreach(pair ONNX:libonnx-dev SQLITE:libsqlite3-dev)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 option)
    list(GET pair 1 package)
    if(REHEARSE_${option})
      string(APPEND needs ", ${package}")
    endif()
  endforeach()
  rehearse_package(development librehearse-dev libdevel "libraries and headers of rehearse"
    "For programs of one's own that predict how deep-learning training runs scale:\nstatic libraries, their headers, and the CMake package Rehearse."
    DEPENDS "${needs}" SHLIBDEPS OFF)
endif()
if(REHEARSE_PYTHON)
  math(EXPR next "${Python3_VERSION_MINOR} + 1")
  rehearse_package(python python3-rehearse python "predictions of deep-learning training runs from Python"
    "The module rehearse: predictions of how training runs scale, searches for\nplans, schedules and timelines, with data frames and pictures in notebooks."
    DEPENDS "python3 (>= ${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR}), python3 (<< ${Python3_VERSION_MAJOR}.${next})"
    RECOMMENDS "python3-numpy"
    CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/packaging/debian/postinst;${PROJECT_SOURCE_DIR}/packaging/debian/prerm" CONTROL_STRICT_PERMISSION ON)
endif()
include(CPack)
