// Package qmux holds uapi/qmux against others: the methods, fields and errors
// of quic-go at compile time, and the implementation of QMux in @moq/qmux on
// the wire, over TCP and TLS, and through RDMA by 'rdmashim proxy'. It runs
// QMux over uapi/rdmanet, too. They are tests only, and here rather than in
// uapi/qmux, so that a module that imports uapi/qmux is not made to download
// what they need.
package qmux
