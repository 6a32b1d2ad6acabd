// Command rdmashim shows and tests RDMA on any machine, with or without an
// RDMA card, kernel module or root.
//
// It is the root only: root.go puts the command tree together from the packages
// below, one for each subject, and main.go runs it. Here lie the few commands
// that belong to no subject (devices, abi, version, completion, man), and tests
// of the whole program and of the documentation.
//
// Commands that move data know package uapi and not which kernel answers. A
// command's data goes to stdout, all else to stderr. A failure is one line on
// stderr and exit status 1, wrong usage exit status 2 (internal/cli).
package main
