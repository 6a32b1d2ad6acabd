// Package sample has the programs that connect by address and port through the
// RDMA connection manager, and interoperate with their likes in C: the two
// sample programs of the founding documents, and ping, which is rping of
// librdmacm. Two more, counter and kv, are services of gRPC's, and interoperate
// with any client that reaches them.
//
// A program of verbs is a server and a client; a role runs either:
//
//	serve   Listen, Accept → accept (memory, queue pair, Accept), answer
//	call    dial (memory, Dial), ask, Disconnect
//
// They are samples to read and to test with, and keep nothing when they end.
//
// A program of gRPC's is a service (counter.go, kv.go), a client's work
// (count.go, kv_command.go), and the link between them (service.go).
package sample
