# Installs this build into a folder of its own, builds the outside project against it, and runs its programs.
# cmake -D BUILD=... -D SOURCE=... -D WORK=... -D CXX=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    string(REPLACE ";" " " line "${ARGN}")
    message(FATAL_ERROR "exit code ${code}: ${line}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix")
foreach(file bin/gradwire bin/gradwire-server bin/gradwire-client include/gradwire/engine/oracle.h
        include/gradwire/proto/wire/wire.pb.h share/licenses/gradwire/LICENSE)
  if(NOT EXISTS "${WORK}/prefix/${file}")
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
run("${WORK}/prefix/bin/gradwire" --version)
run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
    "-DCMAKE_CXX_COMPILER=${CXX}" -DCMAKE_BUILD_TYPE=Debug)
run(${CMAKE_COMMAND} --build "${WORK}/build")
foreach(program outside compress expression custom_model custom_loss custom_oracle custom_method custom_asynchronous
        custom_compressor custom_transport)
  run("${WORK}/build/${program}")
endforeach()

# Components, where neither SQLite nor Asio can be found: of the packages' descriptions there is that of zstd alone.
execute_process(COMMAND pkg-config --variable=pcfiledir libzstd OUTPUT_VARIABLE descriptions OUTPUT_STRIP_TRAILING_WHITESPACE)
file(COPY "${descriptions}/libzstd.pc" DESTINATION "${WORK}/pkgconfig")
foreach(component engine simulation client)
  set(build "${WORK}/components-${component}")
  run(${CMAKE_COMMAND} -E env "PKG_CONFIG_LIBDIR=${WORK}/pkgconfig" ${CMAKE_COMMAND} -S "${SOURCE}/components" -B "${build}"
      -G Ninja "-DCOMPONENT=${component}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${CXX}"
      -DCMAKE_BUILD_TYPE=Debug)
  run(${CMAKE_COMMAND} --build "${build}")
  if(component STREQUAL "client")
    run(sh "${SOURCE}/components/serve.sh" "${WORK}/prefix/bin/gradwire-server" "${build}/program" "${build}/served")
  else()
    run("${build}/program")
  endif()
endforeach()
# A program with a client in it has no reader of data or of experiment files, and no server's half of a method.
execute_process(COMMAND nm -C "${WORK}/components-client/program" OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
foreach(present "gradwire::make_client<" "gradwire::run_client")
  if(NOT symbols MATCHES "${present}")
    message(FATAL_ERROR "the client has no symbol '${present}', so its symbols say nothing")
  endif()
endforeach()
foreach(absent "toml::" "inflate" "gradwire::read_source" "gradwire::load_experiment" "gradwire::make_server<" "::Server<"
        "ServerHalf<" "CLI::" "sqlite3_")
  if(symbols MATCHES "${absent}")
    string(REGEX MATCH "[^\n]*${absent}[^\n]*" line "${symbols}")
    message(FATAL_ERROR "the client has '${absent}': ${line}")
  endif()
endforeach()
foreach(component server "no-such-component")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env "PKG_CONFIG_LIBDIR=${WORK}/pkgconfig" ${CMAKE_COMMAND} -S "${SOURCE}/components"
                  -B "${WORK}/components-${component}" -G Ninja "-DCOMPONENT=${component}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
                  "-DCMAKE_CXX_COMPILER=${CXX}" RESULT_VARIABLE code ERROR_VARIABLE error OUTPUT_QUIET)
  if(code EQUAL 0 OR NOT error MATCHES "sqlite3|no-such-component")
    message(FATAL_ERROR "component ${component}: exit code ${code}: ${error}")
  endif()
endforeach()
