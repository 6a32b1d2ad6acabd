// Package peer connects two processes of this tool, a client and a server, and
// bounds the server's use of memory and time.
//
// The two talk over a control connection: TCP, with JSON messages, each behind
// its length. The data itself moves by RDMA only. When the other process goes
// the connection breaks, so that a side learns it at once.
//
//	Client                          Session of a Server
//	Dial      connect, open device  accept, take a seat
//	Greet     Hello ───────────────▶ check the job, charge the memory
//	                                 open the device of the address
//	          ◀──────────── Welcome  Welcome
//	          introductions by uapi.ConnectOver, then the job's own messages
//
// Each job (package demo's, package perf's) adds its own messages to these. A
// client may be hostile: a message has a bound, an answer a time, and memory
// and the number of clients have budgets.
//
// Servers that are reached by address and port through the connection manager
// (package sample) have no control connection; they use the Endpoint, the Seats
// and the FailureLog.
package peer
