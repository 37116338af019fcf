# A wheel of an installed prefix, installed into an empty environment, must answer by itself.
file(REMOVE_RECURSE ${SCRATCH})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PYTHON} ${SOURCE}/scripts/wheel.py --prefix ${SCRATCH}/prefix --out ${SCRATCH}/out
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB wheel ${SCRATCH}/out/foretoken-*.whl)
execute_process(COMMAND ${PYTHON} -m venv --without-pip ${SCRATCH}/env COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PYTHON} -m pip --python ${SCRATCH}/env/bin/python install --no-index --no-deps --quiet ${wheel}
  COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${SCRATCH}/prefix)  # nothing but the wheel is left
set(clean /usr/bin/env -i PATH=/usr/bin:/bin HOME=${SCRATCH})
execute_process(COMMAND ${clean} ${SCRATCH}/env/bin/foretoken demo OUTPUT_VARIABLE demo TIMEOUT 60 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${clean} ${SCRATCH}/env/bin/python -c
    "import foretoken; print(foretoken.step(model='Llama-3.1-8B', device='h100_sxm', batch=8)['seconds'])"
  OUTPUT_VARIABLE step COMMAND_ERROR_IS_FATAL ANY)
if(NOT demo MATCHES "H100|h100" OR NOT step MATCHES "value")
  message(FATAL_ERROR "the wheel does not answer:\n${demo}\n${step}")
endif()
