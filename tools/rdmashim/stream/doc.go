// Package stream has the command proxy, which carries streams of bytes over
// RDMA by uapi/rdmanet, for programs that know TCP alone.
//
// A server is one accept loop. Each connection that it accepts has a target,
// which the proxy dials. The two are joined by a goroutine a direction:
//
//	run    listen, Accept, take a seat → join
//	join   target, carry there, carry back
//	carry  Read → Write until the data ends, then CloseWrite
//
// What ends at one end ends alike at the other: the end of data as the end of
// data (FIN), and anything else as a reset. It is no TLS endpoint: TLS passes
// through as bytes.
package stream
