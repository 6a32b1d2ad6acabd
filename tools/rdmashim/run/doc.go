// Package run is the command 'rdmashim run': programs of libibverbs, as they
// are, on soft devices. It is a command line and no more: kshim/preload puts a
// library into C programs, kshim/supervise answers the system calls of all.
//
// Command checks the devices' names, and choose the way to the program's file
// (way.go). By the library this process becomes the program; by the supervisor
// it waits for it, with a kernel in its child, and ends as the program does
// (supervised_linux.go).
package run
