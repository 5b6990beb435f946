# SPDX-License-Identifier: Apache-2.0
# What the house builds on. Required packages stop the configuration with the package to install; optional ones become
# options that default to what was found, and the summary at the end says what is off and why.

find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(PkgConfig REQUIRED)

function(rehearse_note line)
  set_property(GLOBAL APPEND_STRING PROPERTY REHEARSE_SUMMARY "  ${line}\n")
endfunction()

# rehearse_option(NAME found "what it buys" "what to install")
function(rehearse_option name found buys install)
  if(found)
    set(default ON)
  else()
    set(default OFF)
  endif()
  option(REHEARSE_${name} "${buys}" ${default})
  if(REHEARSE_${name} AND NOT found)
    message(FATAL_ERROR "REHEARSE_${name}=ON, but ${install} was not found")
  endif()
  string(SUBSTRING "${name}       " 0 7 column)
  if(REHEARSE_${name})
    rehearse_note("${column} on   ${buys}")
  elseif(found)
    rehearse_note("${column} off  switched off (REHEARSE_${name}=OFF): no ${buys}")
  else()
    rehearse_note("${column} off  ${install} not found: no ${buys}")
  endif()
endfunction()

# Required by models, cli and trace: small, header-mostly, in Debian.
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Protobuf REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)

pkg_check_modules(simgrid QUIET IMPORTED_TARGET simgrid)
rehearse_option(SIM "${simgrid_FOUND}" "predict: simulated timelines (SimGrid ${simgrid_VERSION})" "SimGrid (libsimgrid-dev)")

# Debian's dnnl-config.cmake stops the whole configuration where OpenCL's headers are missing, which we do not need.
find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
set(dnnl_FOUND FALSE)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  set(dnnl_FOUND TRUE)
  file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" dnnl_VERSION "${lines}")
  string(REPLACE ";" "." dnnl_VERSION "${dnnl_VERSION}")
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
rehearse_option(ONEDNN "${dnnl_FOUND}" "oneDNN ${dnnl_VERSION} kernels (without: the plain reference loops)" "oneDNN (libdnnl-dev)")

pkg_check_modules(hwy QUIET IMPORTED_TARGET libhwy)
find_package(OpenMP QUIET COMPONENTS CXX)
if(hwy_FOUND AND OpenMP_CXX_FOUND)
  set(cpu_FOUND ON)
endif()
rehearse_option(CPU "${cpu_FOUND}" "our own convolutions and products (Highway ${hwy_VERSION})" "Highway (libhwy-dev) and OpenMP")

find_package(ONNX QUIET)
rehearse_option(ONNX "${ONNX_FOUND}" "import of .onnx networks" "libonnx (libonnx-dev)")

find_package(MPI QUIET COMPONENTS CXX)
rehearse_option(MPI "${MPI_CXX_FOUND}" "run: real training over MPI ${MPI_CXX_VERSION}" "an MPI (libopenmpi-dev)")
if(REHEARSE_MPI)
  set(REHEARSE_MPIRUN ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1
      --mca btl_vader_single_copy_mechanism none CACHE INTERNAL "how tests start MPI ranks")
endif()

find_package(benchmark QUIET)
rehearse_option(BENCH "${benchmark_FOUND}" "bench, calibrate (Google Benchmark ${benchmark_VERSION})" "Google Benchmark (libbenchmark-dev)")

find_package(SQLite3 QUIET)
rehearse_option(SQLITE "${SQLite3_FOUND}" "tuned kernels are kept (SQLite ${SQLite3_VERSION})" "SQLite (libsqlite3-dev)")
pkg_check_modules(cairo QUIET IMPORTED_TARGET cairo cairo-pdf)
rehearse_option(CAIRO "${cairo_FOUND}" "pictures as PNG and PDF (cairo ${cairo_cairo_VERSION}; SVG needs nothing)" "cairo (libcairo2-dev)")

option(REHEARSE_CLI "the program rehearse; without it only the libraries and their tests" ON)
if(NOT REHEARSE_CLI)
  rehearse_note("CLI     off  switched off (REHEARSE_CLI=OFF): libraries and their tests only")
endif()

pkg_check_modules(hdf5 QUIET IMPORTED_TARGET hdf5)
rehearse_option(HDF5 "${hdf5_FOUND}" "run: checkpoints and .h5 data (HDF5 ${hdf5_VERSION})" "HDF5 (libhdf5-dev)")

find_package(CUDAToolkit QUIET)
rehearse_option(CUDA "${CUDAToolkit_FOUND}" "our convolutions on NVIDIA GPUs (CUDA ${CUDAToolkit_VERSION}; run where there is one)" "the CUDA toolkit")
if(REHEARSE_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75 80 90 CACHE STRING "compute capabilities; later ones run the last one's PTX")
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it of nvcc 12 and later
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
endif()

# Opened when a GPU is first used, so only their headers and where they lie are needed.
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CUBLAS_INCLUDE_DIR cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUBLAS_LIBRARY NAMES cublas libcublas.so.13 libcublas.so.12 HINTS ${CUDAToolkit_LIBRARY_DIR})
set(cudnn_FOUND FALSE)
if(REHEARSE_CUDA AND CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY AND CUBLAS_INCLUDE_DIR AND CUBLAS_LIBRARY)
  file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  if(NOT lines)
    file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version_v9.h lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  endif()
  string(REGEX REPLACE "[^0-9;]" "" cudnn_VERSION "${lines}")
  string(REPLACE ";" "." cudnn_VERSION "${cudnn_VERSION}")
  if(cudnn_VERSION VERSION_GREATER_EQUAL 9)
    set(cudnn_FOUND TRUE)
  endif()
endif()
rehearse_option(CUDNN "${cudnn_FOUND}" "cuDNN ${cudnn_VERSION} and cuBLAS on NVIDIA GPUs (run where there is one)" "CUDA with cuDNN 9 and cuBLAS")

find_package(Qt6 6.2 QUIET COMPONENTS Widgets Test)
rehearse_option(GUI "${Qt6_FOUND}" "rehearse-gui (Qt ${Qt6_VERSION})" "Qt 6 (qt6-base-dev)")

find_package(GTest QUIET)
rehearse_option(TESTS "${GTest_FOUND}" "ctest" "GoogleTest (libgtest-dev, libgmock-dev)")
if(REHEARSE_TESTS)
  include(GoogleTest)
endif()

function(rehearse_print_summary)
  get_property(summary GLOBAL PROPERTY REHEARSE_SUMMARY)
  message(STATUS "Rehearse ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}:\n${summary}")
endfunction()
