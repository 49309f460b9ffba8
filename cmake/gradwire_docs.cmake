# Target docs, not part of `all`: HTML pages of the installed headers in the build folder's docs/; warnings are errors.
find_package(Doxygen QUIET)
if(NOT DOXYGEN_FOUND)
  add_custom_target(docs COMMAND "${CMAKE_COMMAND}" -E echo "docs: no Doxygen found; run tools/setup --dev and configure again"
                         COMMAND "${CMAKE_COMMAND}" -E false VERBATIM)
  return()
endif()

# The comments are plain ones; a filter writes them as Doxygen reads them. It runs once per header, and would run again
# for those that are searched for includes. `python3` may be a script that looks for Python, which takes longer than all.
execute_process(COMMAND python3 -c "import sys; print(sys.executable)" OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE)
set(DOXYGEN_FILTER_PATTERNS "\"*.h=${python} -I -S tools/doxygen_comments.py\"")
set(DOXYGEN_SEARCH_INCLUDES NO)
set(DOXYGEN_FILE_PATTERNS *.h)
set(DOXYGEN_EXCLUDE_PATTERNS */*_impl.h)
set(DOXYGEN_EXCLUDE_SYMBOLS gradwire::GRADWIRE_ISA)  # the kernels themselves
set(DOXYGEN_EXAMPLE_PATH tests/package)
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_MARKDOWN_SUPPORT NO)
set(DOXYGEN_EXTRACT_ALL YES)
set(DOXYGEN_SORT_MEMBER_DOCS NO)
set(DOXYGEN_MACRO_EXPANSION YES)
set(DOXYGEN_EXPAND_ONLY_PREDEF YES)
set(DOXYGEN_PREDEFINED "GRADWIRE_INLINE=inline")
set(DOXYGEN_STRIP_FROM_PATH "${PROJECT_SOURCE_DIR}")
set(DOXYGEN_STRIP_FROM_INC_PATH "${PROJECT_SOURCE_DIR}")
set(DOXYGEN_HTML_OUTPUT docs)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_GENERATE_TREEVIEW YES)
set(DOXYGEN_QUIET YES)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
doxygen_add_docs(docs ${gradwire_rooms} docs/reference.dox COMMENT "HTML pages of the headers: ${PROJECT_BINARY_DIR}/docs/index.html")
