// Package qmux is QUIC's streams and datagrams over any ordered byte stream: a
// TCP or TLS connection, a UNIX socket, net.Pipe, or a stream over RDMA. It
// speaks QMux, draft-ietf-quic-qmux-02, and -01.
//
//	conn, err := net.Dial("tcp", address)
//	c, err := qmux.Client(conn, nil)
//	s, err := c.OpenStreamSync(ctx)
//	s.Write(request)
//	s.Close()
//	answer, err := io.ReadAll(s)
//	c.CloseWithError(0, "")
//
// The names and their meanings are those of quic-go, so that a program changes
// from one to the other by its import and its dial. Streams are as there: one
// goroutine may read and another write, deadlines end calls and not streams,
// Close ends the sending half, CancelRead and CancelWrite give a half up.
//
// It is no transport: order, delivery, congestion and secrecy are the byte
// stream's. An unread stream stops itself only, but a byte that the byte stream
// loses stops all. It has no Transport, listener, migration, 0-RTT or tracer.
//
// # By task
//
//   - Make a connection of a byte stream: [Client], [Server]; its limits and
//     times: [Config]
//   - Open a stream: [Conn.OpenStream], [Conn.OpenUniStream]; wait for the
//     peer's grant: [Conn.OpenStreamSync], [Conn.OpenUniStreamSync]
//   - Take the peer's: [Conn.AcceptStream], [Conn.AcceptUniStream]
//   - Write, read and end a stream: [SendStream], [ReceiveStream], and [Stream],
//     which is both; give a half up: [SendStream.CancelWrite],
//     [ReceiveStream.CancelRead]; urgent streams first:
//     [SendStream.SetPriority]
//   - Send datagrams: [Conn.SendDatagram], [Conn.ReceiveDatagram]
//   - End a connection, and see why one ended: [Conn.CloseWithError],
//     [Conn.Context], [ApplicationError], [TransportError], [IdleTimeoutError]
//   - Watch: [Conn.ConnectionState], [Conn.ConnectionStats]
//
// # How a call flows
//
// The state of a connection is a core.Conn behind one lock. One goroutine at a
// time sends the records that it has, and one gives it the bytes that arrive. A
// Write lends its bytes and sends them itself if no goroutine sends (send.go,
// outgoing.go); the writer sends all else. Either sends long data out of the
// memory of the Write, which waits for that. A
// Read takes what is there or waits; of Reads that wait one after another, each
// reads the byte stream itself (receive.go, readturn.go). The reader does when
// none has for two milliseconds, or when another call waits: whatever the
// program does, the peer is heard. Events of the core wake the callers that
// wait (conn.go). A timer does the work that is due.
package qmux
