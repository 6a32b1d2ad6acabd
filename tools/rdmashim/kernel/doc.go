// Package kernel implements 'rdmashim kernel': a console on the mini kernel of
// its own process, and a runner of scripts of its commands. It is no shell, and
// it does not touch the machine's kernel.
//
// A line is split into words and found in a table (table.go), by which the
// words become queue pairs, regions and numbers (args.go). Then it goes to the
// machine's modules and files (system.go) or to the calls of package uapi
// (verbs.go), whose system calls are printed while tracing is on.
package kernel
