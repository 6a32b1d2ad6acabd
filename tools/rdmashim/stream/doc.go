// Package stream has the commands that carry streams of bytes over RDMA by
// uapi/rdmanet: proxy, for programs that know TCP alone, and echo, which checks
// and times a stream.
//
// Both have one server. Each connection that it accepts has a target: the proxy
// dials it, and an echo's is the connection itself. The two are joined by a
// goroutine a direction:
//
//	run    listen, Accept, take a seat → serve
//	join   target, carry there, carry back
//	carry  Read → Write until the data ends, then CloseWrite
//
// The proxy carries the end of a connection over: the end of data as the end
// of data (FIN), and anything else as a reset. It is no TLS endpoint: TLS
// passes through as bytes.
package stream
