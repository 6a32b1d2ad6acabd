// Package sample has the programs that connect by address and port through the
// RDMA connection manager, and interoperate with their likes in C: the two
// sample programs of the founding documents, and ping, which is rping of
// librdmacm. One more, counter, is a service of gRPC's, and interoperates with
// any client that reaches it.
//
// A program of verbs is a server and a client; a role runs either:
//
//	serve   Listen, Accept → accept (memory, queue pair, Accept), answer
//	call    dial (memory, Dial), ask, Disconnect
//
// They are samples to read and to test with, and keep nothing when they end.
//
// The program of gRPC's is a service (counter.go), a client's work (count.go),
// and the link between them (service.go).
package sample
