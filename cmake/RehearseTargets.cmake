# SPDX-License-Identifier: Apache-2.0
# The two functions that every folder uses, and the warnings they share.

add_library(rehearse_warnings INTERFACE)
target_compile_options(rehearse_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wpedantic>)

# rehearse_library(sim SOURCES a.cpp b.cpp USES rehearse::core PRIVATE_USES PkgConfig::simgrid)
# One static library a folder, alias rehearse::<name>; sources in sub-folders are named by their relative path.
function(rehearse_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  add_library(rehearse_${name} STATIC ${ARG_SOURCES})
  add_library(rehearse::${name} ALIAS rehearse_${name})
  target_include_directories(rehearse_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(rehearse_${name} PUBLIC ${ARG_USES} PRIVATE rehearse_warnings ${ARG_PRIVATE_USES})
endfunction()

# rehearse_test(schedule/pipeline USES rehearse::schedule [LABELS mpi] [MPI_RANKS 1 2 4] [TIMEOUT 60])
# Builds tests/schedule/pipeline_test.cpp; each gtest case is a ctest. With MPI_RANKS the whole program is one ctest a
# rank count, started by mpirun, and the source brings its own main().
function(rehearse_test path)
  cmake_parse_arguments(ARG "" "TIMEOUT" "USES;LABELS;MPI_RANKS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)  # some are slow where other jobs hold the cores
  endif()
  string(REPLACE "/" "_" target "test_${path}")
  add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/${path}_test.cpp)
  target_link_libraries(${target} PRIVATE rehearse_warnings ${ARG_USES} GTest::gmock GTest::gtest)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE
    REHEARSE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" REHEARSE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(ARG_MPI_RANKS)
    foreach(ranks ${ARG_MPI_RANKS})
      set(name ${path}.${ranks}_ranks)
      add_test(NAME ${name} COMMAND ${REHEARSE_MPIRUN} -n ${ranks} $<TARGET_FILE:${target}>)
      set_tests_properties(${name} PROPERTIES LABELS "mpi;${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ranks})
    endforeach()
  else()
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    set(properties TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT OMP_NUM_THREADS=1)
    if(ARG_LABELS)
      list(APPEND properties LABELS "${ARG_LABELS}")
    endif()
    gtest_discover_tests(${target} TEST_PREFIX "${path}." DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
  endif()
endfunction()
