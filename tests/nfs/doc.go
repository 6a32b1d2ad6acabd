// Nfs exports a directory by NFS over RDMA from an unprivileged process, so
// that Linux's own client mounts it:
//
//	go -C tests/nfs run . [--device NAME] DIRECTORY
//
// NFS is go-nfs, a library that serves version 3 by TCP; package xprt puts RDMA
// in the place of TCP (RFC 8166, RFC 8267). The tests with Linux's client as
// the judge are in guesttest.
//
// It is a double for tests of clients, not a server for files: there are no
// locks, no users (all calls are the server's user), no NFSv4, and a
// connection's calls are carried out one after the other.
//
// It is a module of its own, so that the tool needs no NFS library; tools/test
// runs it after the rest:
//
//	go -C tests/nfs test ./...
//
// A call flows: the client's SEND has a header with lists of its memory, then
// the RPC message without its long part; xprt fetches that part by RDMA READ
// and hands the whole message to go-nfs, as a record of a connection; the reply
// comes back as a record, from which xprt takes the data of a READ, writes them
// to the client's memory by RDMA WRITE, and sends the rest.
package main
