// Package far is the memory of another process, reached by the descriptor of
// its /proc/PID/mem: a capability, which neither execve nor another process
// with the same PID inherits.
//
// It keeps nothing of what it copies and holds no page: memory that the process
// unmaps is an error from then on.
//
// A call flows: rnic/mem copies packets by Read and Write, kshim/emu asks by
// Probe what a new region may be, and kshim/supervise reads commands and paths.
package far
