# SPDX-License-Identifier: Apache-2.0
# The two functions that every folder uses, and the warnings they share.

add_library(rehearse_warnings INTERFACE)
target_compile_options(rehearse_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic>
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Woverloaded-virtual>)  # as clang does by -Wall
if(NOT CMAKE_UNITY_BUILD)  # a name of one file is no shadow of another's
  target_compile_options(rehearse_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>)
endif()

# g++ looks for garbage whenever its memory has doubled, beginning with 128 MB, and finds little: a tenth of its time or
# more. The largest files take 0.1 GB more without.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)

# Release builds check what can be checked at no cost that is felt: the C library's writes into arrays whose size is
# known, the stack, and tables of functions, which cannot be written to after the start. Not the standard library's
# indices (-D_GLIBCXX_ASSERTIONS), as dev builds do.
option(REHEARSE_HARDENED "Release builds check their stack and the C library's writes" ON)
if(REHEARSE_HARDENED)
  include(CheckCXXCompilerFlag)
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "REHEARSE_HAS${flag}" has)
    check_cxx_compiler_flag(${flag} ${has})
    if(${has})
      add_compile_options($<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:${flag}>)
    endif()
  endforeach()
  add_compile_options("$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>")
  add_link_options($<$<CONFIG:Release>:LINKER:-z,relro,-z,now>)
endif()

# Links a test in a quarter of the time that GNU ld takes.
find_program(REHEARSE_LLD ld.lld)
if(REHEARSE_LLD)
  add_link_options($<HOST_LINK:-fuse-ld=lld>)
endif()

# Parsing the standard library and the nouns takes half of the time of most files. One header is parsed for all libraries, and
# one for all tests; what compiles with other flags (OpenMP, Qt, a file with another -O) has one of its own or none: g++ takes no other's.
add_library(rehearse_precompiled OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
target_link_libraries(rehearse_precompiled PRIVATE rehearse_warnings fmt::fmt)
target_include_directories(rehearse_precompiled PRIVATE ${PROJECT_SOURCE_DIR})
target_precompile_headers(rehearse_precompiled PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp)
set_target_properties(rehearse_precompiled PROPERTIES POSITION_INDEPENDENT_CODE ${REHEARSE_PYTHON})
if(REHEARSE_TESTS)
  add_library(rehearse_precompiled_tests OBJECT ${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(rehearse_precompiled_tests PRIVATE rehearse_warnings fmt::fmt GTest::gmock GTest::gtest)
  target_include_directories(rehearse_precompiled_tests PRIVATE ${PROJECT_SOURCE_DIR})
  target_precompile_headers(rehearse_precompiled_tests PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp <gmock/gmock.h> <gtest/gtest.h>)
endif()

# Files with flags of their own parse for themselves. Called when the whole folder has been read.
function(rehearse_leave_own_flags target)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(options MATCHES "(^|[;:])-[Omf]")
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# rehearse_precompile(target REUSE_FROM other) or (target PRIVATE headers...): as target_precompile_headers.
function(rehearse_precompile target)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  target_precompile_headers(${target} ${ARGN})
  cmake_language(EVAL CODE "cmake_language(DEFER CALL rehearse_leave_own_flags ${target})")
endfunction()

# rehearse_defined(names file): what `file` defines outside of functions and classes, as far as lines that begin at its
# margin tell.
function(rehearse_defined names file)
  file(READ ${file} text)
  string(REGEX REPLACE "[][;{]" "(" text "\n${text}")
  string(REGEX MATCHALL "\n[A-Za-z][^\n]*" lines "${text}")
  set(found)
  foreach(line ${lines})
    if(line MATCHES "^\n(TEST|TYPED_TEST|INSTANTIATE|MATCHER)[A-Z_]*\\(([A-Za-z0-9_]+)")
      list(APPEND found ${CMAKE_MATCH_2})
    elseif(line MATCHES "^\nenum [^c]")
      string(REGEX MATCHALL "[A-Za-z0-9_]+" enumerators "${line}")
      list(APPEND found ${enumerators})
    elseif(line MATCHES "^\n(struct|class|enum class) ([A-Za-z0-9_]+)")
      list(APPEND found ${CMAKE_MATCH_2})
    elseif(line MATCHES "^\nusing ([A-Za-z0-9_]+) *=")
      list(APPEND found ${CMAKE_MATCH_1})
    elseif(line MATCHES "^\n(constexpr|const) ")
      string(REGEX MATCHALL "[A-Za-z0-9_]+ *[(=]" assigned "${line}")
      string(REGEX REPLACE " *[(=]" "" assigned "${assigned}")
      list(APPEND found ${assigned})
    elseif(NOT line MATCHES "^\n(namespace|using|static_assert)" AND line MATCHES "^[^(=]*[^A-Za-z0-9_]([A-Za-z0-9_]+) *[(=]")
      list(APPEND found ${CMAKE_MATCH_1})
    endif()
  endforeach()
  set(${names} ${found} PARENT_SCOPE)
endfunction()

# Where CMAKE_UNITY_BUILD is on, files of one folder are compiled together, at most eight: the whole is built in little
# more than half of the time. Two that define the same name, each for itself, never meet; what has flags of its own stays
# alone. Called when the whole folder has been read.
function(rehearse_group_files target)
  get_target_property(grouped ${target} UNITY_BUILD)
  if(NOT grouped)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^/|^[$]<|\\.cu$")
  foreach(source ${sources})
    rehearse_defined(names ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "files${folder}" folder)
    foreach(group RANGE 1000)
      set(place ${folder}_${group})
      set(others ${defined_${place}})
      list(REMOVE_ITEM others ${names} "")
      list(LENGTH members_${place} members)
      if(members LESS 8 AND "${others}" STREQUAL "${defined_${place}}")
        break()
      endif()
    endforeach()
    list(APPEND members_${place} ${source})
    list(APPEND defined_${place} ${names})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${place})
  endforeach()
endfunction()

# rehearse_library(sim SOURCES a.cpp b.cpp USES rehearse::core PRIVATE_USES PkgConfig::simgrid)
# One static library a folder, alias rehearse::<name>; sources in sub-folders are named by their relative path.
# OWN_FLAGS: it compiles with flags that the others do not have.
function(rehearse_library name)
  cmake_parse_arguments(ARG "OWN_FLAGS" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  add_library(rehearse_${name} STATIC ${ARG_SOURCES})
  add_library(rehearse::${name} ALIAS rehearse_${name})
  target_include_directories(rehearse_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/rehearse>)
  target_link_libraries(rehearse_${name} PUBLIC ${ARG_USES} PRIVATE rehearse_warnings ${ARG_PRIVATE_USES})
  if(NOT ARG_OWN_FLAGS)
    # A Python module is a shared library. Nobody replaces our functions, so that calls between them stay direct.
    set_target_properties(rehearse_${name} PROPERTIES POSITION_INDEPENDENT_CODE ${REHEARSE_PYTHON})
    rehearse_precompile(rehearse_${name} REUSE_FROM rehearse_precompiled)
  endif()
  cmake_language(EVAL CODE "cmake_language(DEFER CALL rehearse_group_files rehearse_${name})")
endfunction()

# rehearse_test_program(target sources... USES libraries... DEFINES macros...): what all programs of tests have.
function(rehearse_test_program target)
  cmake_parse_arguments(ARG "" "" "USES;DEFINES" ${ARGN})
  add_executable(${target} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE rehearse_warnings ${ARG_USES} GTest::gmock GTest::gtest)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE ${ARG_DEFINES}
    REHEARSE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" REHEARSE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(NOT ARG_USES MATCHES "OpenMP::|rehearse::gui")  # which compile with flags of their own
    rehearse_precompile(${target} REUSE_FROM rehearse_precompiled_tests)
  endif()
endfunction()

# rehearse_suites(filter target file): what --gtest_filter finds the cases of FILE_test.cpp by, which is one of target's; an
# error where another of them has a suite of that name.
function(rehearse_suites filter target file)
  file(STRINGS ${file}_test.cpp suites REGEX "^(TYPED_)?TEST(_F|_P)?\\(")
  list(TRANSFORM suites REPLACE "^[A-Z_]+\\(([A-Za-z0-9_]+).*" "\\1")
  list(REMOVE_DUPLICATES suites)
  get_target_property(known ${target} REHEARSE_SUITES)
  set(filters)
  foreach(suite ${suites})
    if(suite IN_LIST known)
      message(FATAL_ERROR "${CMAKE_CURRENT_SOURCE_DIR}/${file}_test.cpp: another file of ${target} has a suite ${suite}: rename one")
    endif()
    list(APPEND filters "${suite}.*" "*/${suite}.*" "${suite}/?.*" "*/${suite}/?.*")
  endforeach()
  set_property(TARGET ${target} APPEND PROPERTY REHEARSE_SUITES ${suites})
  list(JOIN filters ":" joined)
  set(${filter} "${joined}" PARENT_SCOPE)
endfunction()

# rehearse_files_program(target FILES import import_rare USES ... DEFINES ...): a program of import_test.cpp and the others,
# compiled together as the files of a library are; otherwise as rehearse_test_program.
function(rehearse_files_program target)
  cmake_parse_arguments(ARG "" "" "FILES;USES;DEFINES" ${ARGN})
  list(TRANSFORM ARG_FILES APPEND _test.cpp OUTPUT_VARIABLE sources)
  rehearse_test_program(${target} ${sources} USES ${ARG_USES} DEFINES ${ARG_DEFINES})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${REHEARSE_GROUP_TESTS})
  cmake_language(EVAL CODE "cmake_language(DEFER CALL rehearse_group_files ${target})")
endfunction()

# rehearse_tests(models/onnx FILES import import_rare USES rehearse::models [DEFINES ONNX_ML=1] [TIMEOUT 60])
# Builds one program, test_models_onnx, of tests/models/import_test.cpp and the others; each gtest case is a ctest of its
# file's name, models/import.Suite.Case. No two of the files have a suite in common. A suite that is new since CMake ran
# is a ctest of the program's name until it runs again.
function(rehearse_tests program)
  cmake_parse_arguments(ARG "" "TIMEOUT" "FILES;USES;DEFINES" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  string(REGEX REPLACE "/.*" "" folder ${program})
  string(REPLACE "/" "_" target "test_${program}")
  rehearse_files_program(${target} FILES ${ARG_FILES} USES ${ARG_USES} GTest::gtest_main DEFINES ${ARG_DEFINES})
  set(properties TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT OMP_NUM_THREADS=1)
  set(filters)
  foreach(file ${ARG_FILES})
    rehearse_suites(filter ${target} ${file})
    list(APPEND filters "${filter}")
    gtest_discover_tests(${target} TEST_PREFIX "${folder}/${file}." TEST_FILTER "${filter}" DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
  endforeach()
  list(JOIN filters ":" filter)
  gtest_discover_tests(${target} TEST_PREFIX "${program}." TEST_FILTER "-${filter}" DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# rehearse_rank_tests(run FILES train:1,2,4 plans:2,4,8 USES rehearse::run [DEFINES NAME=1] [TIMEOUT 60])
# Builds one program, test_run_ranks, of tests/run/train_test.cpp and the others; each file with each number of ranks is
# a ctest, run/train.2_ranks, started by mpirun. Its cases DISABLED_X are run by run/train_all.2_ranks, labelled long. No
# two of the files have a suite in common.
function(rehearse_rank_tests folder)
  cmake_parse_arguments(ARG "" "TIMEOUT" "FILES;USES;DEFINES" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(target test_${folder}_ranks)
  list(TRANSFORM ARG_FILES REPLACE ":.*" "" OUTPUT_VARIABLE names)
  rehearse_files_program(${target} FILES ${names} USES rehearse::run rehearse::kernels_comm ${ARG_USES} DEFINES ${ARG_DEFINES})
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/run/ranks_main.cpp)
  foreach(entry ${ARG_FILES})
    string(REGEX MATCH "^([^:]*):(.*)$" entry ${entry})
    set(file ${CMAKE_MATCH_1})
    string(REPLACE "," ";" numbers ${CMAKE_MATCH_2})
    rehearse_suites(filter ${target} ${file})
    file(STRINGS ${file}_test.cpp disabled REGEX "DISABLED_")
    string(REPLACE ".*" ".DISABLED_*" filter_of_disabled "${filter}")
    foreach(ranks ${numbers})
      set(job ${REHEARSE_MPIRUN} -n ${ranks} $<TARGET_FILE:${target}>)
      set(name ${folder}/${file}.${ranks}_ranks)
      add_test(NAME ${name} COMMAND ${job} "--gtest_filter=${filter}")
      set_tests_properties(${name} PROPERTIES LABELS mpi TIMEOUT ${ARG_TIMEOUT} PROCESSORS ${ranks})
      if(disabled)
        set(name ${folder}/${file}_all.${ranks}_ranks)
        add_test(NAME ${name} COMMAND ${job} --gtest_also_run_disabled_tests "--gtest_filter=${filter_of_disabled}")
        set_tests_properties(${name} PROPERTIES LABELS "mpi;long" TIMEOUT 1800 PROCESSORS ${ranks})
      endif()
    endforeach()
  endforeach()
endfunction()

# rehearse_test(schedule/pipeline USES rehearse::schedule [LABELS mpi] [MPI_RANKS 1 2 4] [TIMEOUT 60])
# Builds a program of tests/schedule/pipeline_test.cpp alone; each gtest case is a ctest. With MPI_RANKS the whole program is one ctest a
# rank count, started by mpirun, and the source brings its own main().
function(rehearse_test path)
  cmake_parse_arguments(ARG "" "TIMEOUT" "USES;LABELS;MPI_RANKS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)  # some are slow where other jobs hold the cores
  endif()
  string(REPLACE "/" "_" target "test_${path}")
  rehearse_test_program(${target} ${PROJECT_SOURCE_DIR}/tests/${path}_test.cpp USES ${ARG_USES})
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

# rehearse_embed("a.toml;b.toml" embedded.cpp rehearse::models MachineFile machine_files models/reader/machine_files.hpp)
# Writes a source that holds the text of files as a span of `type`, returned by `function` of `header`.
function(rehearse_embed files output namespace type function header)
  string(REPLACE ";" "," joined "${files}")  # a list would end at its first ;
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFILES=${joined} -DNAMESPACE=${namespace} -DTYPE=${type} -DFUNCTION=${function}
            -DHEADER=${header} -P ${PROJECT_SOURCE_DIR}/cmake/RehearseEmbed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/RehearseEmbed.cmake VERBATIM)
endfunction()
