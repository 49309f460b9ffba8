# Run by cpack. The unit of the server says --metrics, which needs libmicrohttpd. Tests, which install what they have built on this machine, say -D CPACK_GRADWIRE_FOR_HERE=ON.
if(CPACK_GRADWIRE_MARCH STREQUAL "native" AND NOT CPACK_GRADWIRE_FOR_HERE)
  message(FATAL_ERROR "these programs are built for the processor of this machine alone: use tools/packages, or configure with "
                      "`cmake --preset package`")
endif()
if(NOT CPACK_GRADWIRE_PAGES AND NOT CPACK_GRADWIRE_FOR_HERE)
  message(FATAL_ERROR "gradwire-server was built without libmicrohttpd, and its unit says --metrics: run tools/setup, "
                      "configure and build again")
endif()
