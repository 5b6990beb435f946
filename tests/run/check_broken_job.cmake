# SPDX-License-Identifier: Apache-2.0
# Runs JOB and checks that it ends by itself, with exit code CODE and, unless TEXT is empty, exactly one line of its own
# on stderr, which is TEXT.
execute_process(COMMAND ${JOB} TIMEOUT 40 RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT "${code}" STREQUAL "${CODE}")
  message(FATAL_ERROR "exit code ${code}, not ${CODE}\nstdout:\n${out}\nstderr:\n${err}")
endif()
string(REGEX MATCHALL "rehearse run: [^\n]*" lines "${err}")
if(NOT "${lines}" STREQUAL "${TEXT}")
  message(FATAL_ERROR "said '${lines}', not '${TEXT}'\nstderr:\n${err}")
endif()
