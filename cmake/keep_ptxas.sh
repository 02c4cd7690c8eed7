#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiler launcher of the Blackwell kernels: keep_ptxas.sh FOLDER COMMAND... runs the command and
# keeps what ptxas said about each source as FOLDER/NAME.ptxas, for the table of ptxas_table.cmake.
folder=$1
shift
name=unknown
for argument; do
  case $argument in *.cu) name=$(basename "$argument" .cu) ;; esac
done
mkdir -p "$folder"
"$@" > "$folder/$name.all" 2>&1
status=$?
grep '^ptxas info\|bytes stack frame' "$folder/$name.all" > "$folder/$name.ptxas"
grep -v '^ptxas info\|bytes stack frame' "$folder/$name.all"
rm -f "$folder/$name.all"
exit $status
