// Command rdmashim shows and tests RDMA on any machine, with or without an
// RDMA card, kernel module or root.
//
// It is a user of package uapi and nothing below: it does not know which
// kernel answers. Each subcommand has a file; what a subcommand prints as data
// goes to stdout, all else to stderr. A failure is one line on stderr and exit
// status 1, wrong usage exit status 2.
//
// A run of perf flows alike: perf.go starts the server process, perf_client.go and
// perf_control.go are the two sides, package perf below measures.
//
// A run of demo flows: demo.go starts a server process and becomes
// the client; session_client.go drives the transfer against
// session_server.go; the two talk over a TCP control connection (control.go)
// about sizes and results only, all data moves by RDMA; report.go prints.
package main
