// Package echo has the command echo: a server that sends back what it is sent,
// a client that checks and times it, and netcat. Streams go over RDMA or TCP,
// where each is a connection of its own, or over QMux on either or QUIC, where
// a connection has many.
//
// It is no library of them, which are uapi/rdmanet, uapi/qmux and
// uapi/registration; 'rdmashim dump --qmux' reads what --record writes.
//
// A connection is made alike in all commands (link.go): a byte stream is
// dialled or accepted, TLS goes over it (secure.go), a tap looks at the peer's
// first bytes and records both directions (tap.go, record.go), and QMux stands
// on the tap. QUIC comes whole from uapi/registration. Either way the result is
// a Session (session.go), which server.go, exchange.go or cat.go has. 'rdmashim
// sample quic' runs the same Exchange and Echo on its registrations.
package echo
