file(REMOVE_RECURSE ${SCRATCH})
set(prefix ${SCRATCH}/prefix)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CONSUMER} -B ${SCRATCH}/build -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix} -Dwanted_version=${VERSION} -Dexample=${EXAMPLE}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/build COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${SCRATCH}/build/consumer ${prefix}/share/foretoken/data
  OUTPUT_VARIABLE predicted COMMAND_ERROR_IS_FATAL ANY)
foreach(answer "decode step" "mean TTFT" "training step" "best plan" "requests/s")
  if(NOT predicted MATCHES "${answer}")
    message(FATAL_ERROR "the example does not tell its ${answer}:\n${predicted}")
  endif()
endforeach()

# The installed program must find the installed data by itself.
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=FORETOKEN_LIBRARY ${prefix}/bin/foretoken demo
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
