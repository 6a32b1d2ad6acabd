// Package capi installs librdmashim, the C library of the founding document's
// calls: rdma.h and its two headers, the library to link with at run time or
// for good, and a file for pkg-config. Package lib is the library itself.
//
// Install has a C compiler and the go command build it in a directory of its
// own, and then moves the files to where they belong. It is no part of the
// library, and no package manager: it removes nothing.
package capi
