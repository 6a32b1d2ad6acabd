// Package qmux has the command qmux: a server that echoes the streams and
// datagrams of QMux, a client that checks and times it, and netcat on one
// stream, over TCP or RDMA, plain or TLS.
//
// It is no library of QMux, which is uapi/qmux; 'rdmashim dump --qmux' reads
// what --record writes.
//
// A connection is made alike in all commands: the link dials or accepts a byte
// stream (link.go), TLS goes over it (secure.go), a tap looks at the peer's
// first bytes and records both directions (tap.go, record.go), and QMux stands
// on the tap. Then server.go, client.go or cat.go has it.
package qmux
