// Package registration opens a transport once, under a name, and gives
// connections with streams and datagrams over it: the program above does not
// know which transport it has.
//
//	r, err := registration.Open(ctx, registration.Config{
//		Transport: registration.Soft{Addr: "10.0.0.1"},
//		TLS:       config,
//	})
//	l, err := r.Listen(ctx, 4433)
//	c, err := l.Accept(ctx)
//
// [Soft] and [Kernel] are RDMA, on the soft RNIC and on the kernel's device;
// [TCP] is TCP. A [Transport] may live elsewhere too. One registration has one
// transport; a program that wants several opens several, side by side.
//
// It is no second QUIC: streams and datagrams are those of package qmux, over a
// byte stream that the transport makes, and TLS runs inside that byte stream.
// Loss, order and congestion are the transport's. It does not choose the
// transport, and falls back to none.
//
// # By task
//
//   - Choose a transport: [Soft], [Kernel], [TCP] in [Config]; write one:
//     [Transport], [Datapath]
//   - Connect: [Registration.Dial], [Registration.Listen], [Listener.Accept]
//   - Open and take streams: [Conn.OpenStreamSync], [Conn.AcceptStream]; of one
//     direction: [Conn.OpenUniStreamSync], [Conn.AcceptUniStream]
//   - Send datagrams: [Conn.SendDatagram], [Conn.ReceiveDatagram]
//   - End: [Conn.CloseWithError], [Registration.Close]; see why one ended:
//     [Conn.Context], [Error]
//   - Watch: [Registration.Stats], [Conn.ConnectionState], [Conn.Counters]
//
// # How a call flows
//
// Open checks the configuration (check.go), opens the transport's [Datapath],
// and thereby finds a wrong address or a port that is down. Dial asks the
// datapath for a [Session]; a listener's goroutine takes connections and
// shakes hands beside each other (acceptor.go). Soft, Kernel and TCP share one
// datapath, muxed (muxed.go), which puts TLS and qmux on a carrier's byte
// streams (rdma.go, tcp.go). Conn and its streams put the names of the
// registration and the transport on errors (conn.go, stream.go).
//
// Without TLS, the hello of an RDMA connection carries a hash of
// Config.Protocol, and the acceptor refuses another one. That is a private
// binding, of this package alone; with TLS it is ALPN.
package registration
