// Package sample has the programs that connect by address and port through the
// RDMA connection manager, and interoperate with their likes in C: the two
// sample programs of the founding documents, and ping, which is rping of
// librdmacm.
//
// A program is a server and a client; a role runs either:
//
//	serve   Listen, Accept → accept (memory, queue pair, Accept), answer
//	call    dial (memory, Dial), ask, Disconnect
package sample
