// Package capi is the command 'rdmashim capi', which installs the C library of
// rdma.h. It is a command line and no more: uapi/capi builds the library and
// moves its files to where they belong.
//
// Command passes on the prefix and the directory before it, and prints the
// paths of the files.
package capi
