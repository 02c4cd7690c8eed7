# SPDX-License-Identifier: Apache-2.0
# Collects what ptxas said about each Blackwell kernel into one table and prints it.
# Called after the kernels are built: cmake -DLOGS=folder -DTABLE=file -P ptxas_table.cmake
file(GLOB logs ${LOGS}/*.ptxas)
list(SORT logs)
set(table "kernel                            arch     registers  stack  spill stores  spill loads\n")
foreach(log ${logs})
  get_filename_component(name ${log} NAME_WE)
  file(READ ${log} text)
  string(REGEX MATCH "for '(sm_[0-9a-z]+)'" found "${text}")
  set(arch "${CMAKE_MATCH_1}")
  string(REGEX MATCH "Used ([0-9]+) registers" found "${text}")
  set(registers "${CMAKE_MATCH_1}")
  string(REGEX MATCH "([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads" found "${text}")
  string(APPEND table "${name}  ${arch}  ${registers}  ${CMAKE_MATCH_1}  ${CMAKE_MATCH_2}  ${CMAKE_MATCH_3}\n")
endforeach()
file(WRITE ${TABLE} "${table}")
message("${table}")
