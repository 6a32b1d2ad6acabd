// Package xprt carries ONC RPC over RDMA, version 1 of the protocol (RFC 8166),
// for servers that were written for TCP.
//
// Listen returns a net.Listener whose connections carry RPC messages as records
// with marks (RFC 5531, 11), so that any server of RPC over TCP can Serve on
// it. What goes by memory and what inline is hidden there, but for one thing:
// the data of an NFS READ go to the client's write chunk (RFC 8267, 4.1), for
// which the reply is looked into (nfs.go).
//
// It has no client, no backchannel (RFC 8167) and no remote invalidation.
//
// A client costs its queue pair, 1.4 MiB and a place of Most. A message that
// breaks the protocol, and a reply that the client gave no room for, is
// answered with an error (RFC 8166, 4.5); a key that opens nothing ends the
// connection. header.go reads and writes headers, chunk.go moves bytes, conn.go
// has the loop of a connection. The headers are held against what Linux's own
// client and server sent (testdata/linux.txt).
package xprt
