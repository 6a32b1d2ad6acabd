// Package run is the command 'rdmashim run': C programs of libibverbs, as they
// are, on soft devices. It is a command line and no more: kshim/preload finds
// the libraries and becomes the program.
//
// Command checks the devices' names and the program's file, has the libraries
// found or built, and starts the program in place of this process.
package run
