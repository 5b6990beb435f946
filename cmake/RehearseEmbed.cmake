# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a source that holds the text of the FILES (separated by commas) as FUNCTION() of HEADER, an array of
# TYPE: the tool finds its machines wherever it is installed.
# Run as cmake -DOUTPUT=... -DFILES=... -DHEADER=... -DTYPE=... -DFUNCTION=... -DNAMESPACE=... -P RehearseEmbed.cmake.
string(REPLACE "," ";" FILES "${FILES}")
set(rows "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  if(text MATCHES "\\)text\"")
    message(FATAL_ERROR "${file} holds the end of a raw string")
  endif()
  string(APPEND rows "    {\"${name}\", R\"text(${text})text\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// SPDX-License-Identifier: Apache-2.0
// Written by cmake/RehearseEmbed.cmake.
#include <array>

#include \"${HEADER}\"

#pragma GCC diagnostic ignored \"-Woverlength-strings\"  // more than the 65536 characters that compilers must take

namespace ${NAMESPACE} {

std::span<const ${TYPE}> ${FUNCTION}() {
    static const auto files = std::to_array<${TYPE}>({
${rows}    });
    return files;
}

}  // namespace ${NAMESPACE}
")
