# Functions that keep the build files short: a library per folder, a test program per folder, the embedded catalogue.
include(GNUInstallDirs)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
find_package(TBB REQUIRED)
find_package(Threads REQUIRED)
find_package(dnnl REQUIRED)   # oneDNN: the CPU's kernels
find_package(Gloo REQUIRED)   # the CPU's collectives
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(ZLIB REQUIRED)
find_package(Boost 1.74 REQUIRED)  # Boost.Graph is header-only for what is used here

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # -O3 takes a fifth longer to build; what is hot asks for it below
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)  # lets ccache see through precompiled headers
endif()

add_library(ringside_flags INTERFACE)
target_include_directories(ringside_flags INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ringside>)
target_compile_features(ringside_flags INTERFACE cxx_std_20)
# Warnings are for those who build Ringside, not for those who use it.
target_compile_options(ringside_flags INTERFACE "$<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wpedantic;-Wnon-virtual-dtor;-Woverloaded-virtual>")
install(TARGETS ringside_flags EXPORT ringside-targets)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(ringside_flags INTERFACE $<BUILD_INTERFACE:-Wno-restrict>)  # GCC 12 warns of string concatenation that is fine (GCC bug 105329)
endif()
if(RINGSIDE_WERROR)
  target_compile_options(ringside_flags INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(RINGSIDE_SANITIZE)
  target_compile_options(ringside_flags INTERFACE -fsanitize=${RINGSIDE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ringside_flags INTERFACE -fsanitize=${RINGSIDE_SANITIZE})
endif()
# Third-party headers are used as system headers, so that their warnings are not ours.

# ringside_library(name folder deps…): every .cpp directly in the folder, as ringside::name.
# `traces` also takes its subfolders, which are one target.
function(ringside_library name folder)
  if(name STREQUAL "traces")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  endif()
  if(sources)
    add_library(ringside_${name} STATIC ${sources})
    target_link_libraries(ringside_${name} PUBLIC ringside_flags ${ARGN})
    # Behind -O2 in GCC's command line, so it wins; precompiled headers do not mind.
    if(name MATCHES "^(memory|schedule|strategy|player|resource|collective|comm)$")
      target_compile_options(ringside_${name} PRIVATE $<$<CONFIG:Release>:-O3>)
    endif()
    # The heavy headers are parsed once, for `base`, and shared. The clang preset builds without, so that no file relies on it.
    if(name STREQUAL "base")
      target_precompile_headers(ringside_base PRIVATE <algorithm> <functional> <map> <memory> <optional> <string> <vector>
                                                      <fmt/format.h> <nlohmann/json.hpp> <tl/expected.hpp>)
    elseif(NOT name STREQUAL "comm")  # GCC takes the optimisation level from the precompiled header, and sums need -O3 to be vectorised
      target_precompile_headers(ringside_${name} REUSE_FROM ringside_base)
    endif()
  else()
    add_library(ringside_${name} INTERFACE)
    target_link_libraries(ringside_${name} INTERFACE ringside_flags ${ARGN})
  endif()
  add_library(ringside::${name} ALIAS ringside_${name})
  set_target_properties(ringside_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ringside_${name} EXPORT ringside-targets)
endfunction()

# The same loops, compiled once per instruction set: <prefix>_baseline.cpp, _avx2.cpp and _avx512.cpp. Without the shared
# precompiled header, whose flags differ.
function(ringside_vector_sources prefix)
  set(flags -O3 -fopenmp-simd -fno-math-errno -fno-trapping-math -ffp-contract=fast)
  set(baseline "")
  set(avx2 "")
  set(avx512 "")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(avx2 -mavx2 -mfma -mbmi2)
    set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mbmi2 -mprefer-vector-width=512)
  endif()
  foreach(set IN ITEMS baseline avx2 avx512)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/${prefix}_${set}.cpp PROPERTIES COMPILE_OPTIONS "${flags};${${set}}" SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

# Installs headers and a package that find_package(ringside) finds (tests/install builds a project with it).
function(ringside_install)
  install(DIRECTORY model traces sim kernels calibrate DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ringside FILES_MATCHING PATTERN "*.h")
  install(DIRECTORY tests/data/published DESTINATION ${CMAKE_INSTALL_DATADIR}/ringside FILES_MATCHING PATTERN "*.json")
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ringside)
  install(EXPORT ringside-targets NAMESPACE ringside:: DESTINATION ${package})
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/ringside-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES cmake/ringside-config.cmake ${CMAKE_BINARY_DIR}/generated/ringside-config-version.cmake DESTINATION ${package})
endfunction()

# Compiles every .json below `folder` into the library, so that the program needs no data files at run time.
function(ringside_embed_catalog name folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.json)
  set(output ${CMAKE_BINARY_DIR}/generated/embedded_catalog.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR}/${folder} -DOUTPUT=${output} -P ${CMAKE_SOURCE_DIR}/cmake/EmbedCatalog.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/EmbedCatalog.cmake
    COMMENT "Embedding the catalogue"
    VERBATIM)
  target_sources(ringside_${name} PRIVATE ${output})
endfunction()

# Compiles one file into the library, as the text that a function returns; `header` declares it.
function(ringside_embed_text name file header function)
  set(output ${CMAKE_BINARY_DIR}/generated/${function}.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFILE=${CMAKE_SOURCE_DIR}/${file} -DHEADER=${header} -DFUNCTION=${function} -DOUTPUT=${output} -P ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    COMMENT "Embedding ${file}"
    VERBATIM)
  target_sources(ringside_${name} PRIVATE ${output})
endfunction()

# ringside_test(name folder deps…): one GoogleTest program from every .cpp directly in tests/folder.
function(ringside_test name folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ringside_flags ${ARGN} GTest::gtest GTest::gmock GTest::gtest_main rapidcheck)
  # Tests compile fast rather than run fast: what they test is optimised, they are not.
  target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  if(name STREQUAL "unit_base")
    target_precompile_headers(test_unit_base PRIVATE <map> <memory> <optional> <string> <vector> <fmt/format.h> <nlohmann/json.hpp>
                                                     <gtest/gtest.h> <gmock/gmock.h> <rapidcheck.h> <tl/expected.hpp>)
  else()
    target_precompile_headers(test_${name} REUSE_FROM test_unit_base)
  endif()
  target_compile_definitions(test_${name} PRIVATE RINGSIDE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" RINGSIDE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  gtest_discover_tests(test_${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 300 ENVIRONMENT RC_PARAMS=seed=1609)  # properties repeat; run the program itself to search elsewhere
endfunction()
