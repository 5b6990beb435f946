# SPDX-License-Identifier: Apache-2.0
# cmake -DOUT=revision.cpp "-DFLAGS=compiler and flags" -DFOLDER=kernels/cpu -P RehearseRevision.cmake
# Writes the digest of a folder's sources: what was measured with other kernels, or the same ones compiled otherwise, is
# not true of these.
file(GLOB_RECURSE sources ${FOLDER}/*.cpp ${FOLDER}/*.hpp)
list(SORT sources)
set(all "${FLAGS}")
foreach(source ${sources})
  file(SHA256 ${source} digest)
  string(APPEND all ${digest})
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 12 digest)
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#include "kernels/cpu/revision.hpp"
std::string_view rehearse::kernels::cpu::revision() { return "@digest@"; }
]])
