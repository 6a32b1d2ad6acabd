// Package msgring carries ordered bytes, or messages, between two programs
// through rings in the receiver's memory, over a reliable queue pair.
//
//	c, err := msgring.Dial(ctx, device, "10.0.0.2:7471", msgring.Config{})
//	n, err := c.Write(data)
//
//	request, err := listener.Accept(ctx)                  // uapi.Listener
//	c, err := msgring.Accept(ctx, request, msgring.Config{})
//	n, err := c.Read(buf)
//
// It is not a net.Conn: it has no addresses, and its errors are those of this
// module, not of package net. It neither encrypts nor authenticates, and does
// not multiplex.
//
// # By task
//
//   - Connect by address: [Dial], [Accept]; choose bytes or messages, and sizes:
//     [Config]
//   - Write and read with copies: [Conn.Write], [Conn.Read]; in place:
//     [Conn.Reserve], [Conn.TryReserve], [Conn.Commit], [Conn.Peek],
//     [Conn.Discard]
//   - End a wait: [Conn.SetDeadline], [Conn.Interrupt]
//   - READ the peer's memory beside the ring: [Conn.RegMR], [Conn.PostRead]
//   - Close: [Conn.Close], [Conn.CloseWrite], [Conn.CloseContext], [Conn.Abort],
//     [Conn.OnClosed]
//   - Agree on an RPC session when connecting: [Session], [Conn.PeerSession]
//   - Watch: [Conn.Info], [Conn.Stats]
//
// # How a Write travels
//
//  1. Write waits until the peer's ring, the send queue and staging have room,
//     and copies the bytes of a chunk into staging, which is registered
//     (Reserve and Commit leave the copy out).
//  2. It posts an RDMA WRITE with immediate into the peer's ring. The immediate
//     tells how far this end has read its own ring.
//  3. At the peer a receive completes, and the goroutine that works for the
//     completion queue queues the chunk to the reader.
//  4. Read copies it out (Peek and Discard read it in place). When a quarter of
//     the ring was read and the peer not told, a control message tells it.
//
// package core has the protocol and keeps the accounts; this package has the
// queue pair, the memory, the locks and the waiting.
//
// # Who works
//
// No goroutine stands behind a connection; those that have closed some, up to
// 8 a device, wait for the next one to close. Of the goroutines that wait in a
// connection, one at a time waits for completions and hands them to the
// others. So a program that neither reads nor waits to write is deaf: its peer
// stops when the ring is full, and sees it close only when its own calls fail.
// A dead peer is noticed by the keepalive of package uapi.
//
// # Memory
//
// A connection has its ring and as much staging (2 MiB together by default),
// 64 bytes for each receive (5 KiB), and a protection domain of its own, so
// that the peer's key opens the ring and nothing else. What a peer knows, the
// ring, its key and the queue pair, goes with the connection. The rest is left
// to the next connection on the device: up to 8 are kept, and none beyond the
// device's last connection. On a soft device their pages are memory once they
// are used: an idle connection takes about 50 KiB an end. Memory of a
// connection that ended is cleared before the next one has it.
package msgring
