// Command lib is the C shared library behind kshim/preload's stub: the mini
// kernel and its soft RNICs in a C program's process. It is no library to link
// with, and no C API of this project: its functions serve the stub alone.
//
// The stub calls an exported function (export.go) for each call of the program
// on RDMA's files. It finds the open file by its descriptor and hands the call
// to kshim/emu, whose host the program is (program.go): its memory is user
// memory, its descriptors are the system's. A result below zero is an errno.
package main

func main() {}
