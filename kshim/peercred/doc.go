// Package peercred identifies the process and the user at the other end of a
// UNIX connection, by the credentials that the kernel noted when it was made: a
// name or a mode of a file proves less. Of asks the connection, once it stands,
// for the process and the user; the caller compares. It is there on Linux and
// macOS only, whose kernels tell.
package peercred
