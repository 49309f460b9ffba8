# cpack runs this file. It checks that the programs run on any processor, and that the server has --metrics, which its unit
# uses and which needs libmicrohttpd. Tests pass -D CPACK_GRADWIRE_FOR_HERE=ON, because they install on this machine.
if(CPACK_GRADWIRE_MARCH STREQUAL "native" AND NOT CPACK_GRADWIRE_FOR_HERE)
  message(FATAL_ERROR "these programs run only on the processor of this machine: use tools/packages, or configure with "
                      "`cmake --preset package`")
endif()
if(NOT CPACK_GRADWIRE_PAGES AND NOT CPACK_GRADWIRE_FOR_HERE)
  message(FATAL_ERROR "gradwire-server was built without libmicrohttpd, but its unit uses --metrics: run tools/setup, "
                      "configure and build again")
endif()
