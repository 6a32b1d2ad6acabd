// Package suite compares this project with references, by turns: the rows of a
// table are each a series of ours, a series of the reference, and a target for
// their ratio.
//
//	table, streamTable, guestTable
//	                    the rows: what is measured by which words
//	measure             rounds: each series once, every other round backwards
//	row, print          medians, the ratio's spread, and whether the target is met
//
// A series is a command line of 'rdmashim perf', a reference that is built in
// (raw UDP, Go's TCP), or another project's program where it is installed. A
// reference's other side is a process of its own, as ours is ('other').
//
// A ratio is of one round. Rows of many queue pairs move the same 64 KiB, so
// that they tell of queue pairs and not of caches. A queue pair's memory is the
// growth of heap and stacks, less the rings. Goroutine switches come from the
// runtime's histogram of how long goroutines waited to run, in which system
// calls have no time. A carrier's other side tells its processor time, too.
//
// It is not a benchmark of the parts: those lie beside the packages.
package suite
