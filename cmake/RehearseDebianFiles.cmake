# SPDX-License-Identifier: Apache-2.0
# Run by cpack on the staged files of each package, before they are packed: manual pages are compressed, and each package
# gets its changelog and its copyright file.
find_program(gzip gzip REQUIRED)

function(compress)
  foreach(file ${ARGN})
    execute_process(COMMAND ${gzip} -9nf "${file}" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

string(TIMESTAMP year "%Y" UTC)  # that of SOURCE_DATE_EPOCH, where it is set
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(stage "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr")
  set(doc "${stage}/share/doc/${name}")
  file(GLOB pages "${stage}/share/man/man1/*.1")
  compress(${pages})
  if(EXISTS "${stage}/share/zsh/site-functions")  # Debian's zsh looks there below /usr/local alone
    file(RENAME "${stage}/share/zsh/site-functions" "${stage}/share/zsh/vendor-completions")
  endif()
  file(MAKE_DIRECTORY "${doc}")
  file(REMOVE "${doc}/LICENSE")  # the copyright file says it
  file(WRITE "${doc}/copyright"
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
    "Upstream-Name: rehearse\n\n"
    "Files: *\nCopyright: ${year} ${CPACK_PACKAGE_VENDOR}\nLicense: Apache-2.0\n"
    " On Debian systems the full text of the Apache License, Version 2.0, is in\n"
    " /usr/share/common-licenses/Apache-2.0.\n")
  file(WRITE "${doc}/changelog.Debian"
    "rehearse (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Built from the sources by cpack; what changed in them: CHANGELOG.md of\n    package rehearse.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  compress("${doc}/changelog.Debian")
  if(EXISTS "${doc}/CHANGELOG.md")
    file(RENAME "${doc}/CHANGELOG.md" "${doc}/changelog")
    compress("${doc}/changelog")
  endif()
endforeach()
file(GLOB_RECURSE headers LIST_DIRECTORIES true "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/development/usr/include/*")
foreach(folder ${headers})  # those without headers
  if(IS_DIRECTORY "${folder}")
    file(GLOB inside "${folder}/*")
    if(NOT inside)
      file(REMOVE_RECURSE "${folder}")
    endif()
  endif()
endforeach()
