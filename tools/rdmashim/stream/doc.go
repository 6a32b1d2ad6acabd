// Package stream has the command proxy, which carries the streams of programs
// that know TCP alone over RDMA by uapi/rdmanet, and the places and devices by
// which commands reach a stream's other end.
//
// Each connection that the proxy accepts has a target, which it dials. The two
// are joined by a goroutine a direction:
//
//	run    listen, Accept, take a seat → join
//	join   dial the target, carry there, carry back
//	carry  Read → Write until the data ends, then CloseWrite
//
// The proxy carries the end of a connection over: the end of data as the end
// of data (FIN), and anything else as a reset. It is no TLS endpoint: TLS
// passes through as bytes.
package stream
