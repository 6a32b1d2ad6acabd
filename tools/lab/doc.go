// Lab is the developers' laboratory: it compares this project with references,
// for targets that a release keeps. The script tools/bench builds and runs it,
// and so keeps its name and its place; users measure by 'rdmashim perf'.
//
//	suite    the rows, their rounds and targets, and what prints them
//	netpath  networks with faults, for the rows of --paths
//	rawudp   what UDP gives without RDMA on top, and benchmarks beside it
//
// It has the commands of rdmashim whose processes it measures, since a process
// that it starts is this program again.
package main
