# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a source that holds the text of the FILES (separated by commas): the tool finds its machines wherever
# it is installed. Run as cmake -DOUTPUT=... -DFILES=... -P embed_machines.cmake.
string(REPLACE "," ";" FILES "${FILES}")
set(rows "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  if(text MATCHES "\\)toml\"")
    message(FATAL_ERROR "${file} holds the end of a raw string")
  endif()
  string(APPEND rows "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// SPDX-License-Identifier: Apache-2.0
// Written by models/embed_machines.cmake from models/machines/.
#include <array>

#include \"models/machine_files.hpp\"

namespace rehearse::models {

std::span<const MachineFile> machine_files() {
    static constexpr auto files = std::to_array<MachineFile>({
${rows}    });
    return files;
}

}  // namespace rehearse::models
")
