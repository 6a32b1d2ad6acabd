// Package echo has the command echo: a server that sends back what it is sent,
// and a client that checks and times it. Streams go over RDMA or TCP, where
// each is a connection of its own, or over QMux on either or QUIC, where a
// connection has many. 'rdmashim sample quic' (sample.go) is the same over
// several registrations of uapi/registration at once.
//
// It is no library of them, which are uapi/rdmanet, uapi/qmux and
// uapi/registration.
//
// A connection is made alike in both commands (link.go): a byte stream is
// dialled or accepted, TLS goes over it (secure.go), the peer's first bytes are
// looked at (opening.go), and QMux stands on that. QUIC, and what the sample
// has, come whole from uapi/registration (registrations.go). Either way the
// result is a Session (session.go), which server.go or exchange.go has.
package echo
