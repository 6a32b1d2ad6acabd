// Package rdmanet is net.Conn and net.Listener over RDMA: a program that speaks
// over net.Conn (crypto/tls, net/http, gRPC, a database driver) runs over RDMA
// when its dialer and its listener are replaced.
//
//	l, err := rdmanet.Listen("127.0.0.1:8080", rdmanet.Config{})
//	go http.Serve(l, handler)
//
//	var dialer rdmanet.Dialer
//	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
//
// # By task
//
//   - Dial: [Dial]; from a device that is open, for net/http, with TCP as a
//     fallback: [Dialer]; for grpc-go: [Dialer.GRPC]
//   - Listen: [Listen]; on a device that is open: [ListenOn]
//   - Size rings and chunks: [Config]
//   - Test: package rdmanettest has two connections in a line
//   - Copy from and to readers and writers without a buffer between:
//     [Conn.ReadFrom], [Conn.WriteTo], [Conn.WriteBuffers]
//   - Close one direction: [Conn.CloseWrite], [Conn.CloseRead]; wait for what
//     was written, or not: [Conn.CloseContext], [Conn.SetLinger]
//   - End a program without losing data: [Flush], [FlushDevice]
//   - See what a connection does: [Conn.Info], [Conn.Stats]; why peers were not
//     accepted: [Listener.Failed], [HandshakeError]
//
// # How a call flows
//
// Write copies into memory that msgring sends from, and
// returns when the bytes are posted; the device writes them into the peer's
// ring; Read copies them out of there. No goroutine works for a connection: the
// one that waits in Read, Write or Close takes in what arrives.
//
// It is not TCP: no TCP peer can be reached, there is no urgent data and no
// SyscallConn, and nothing is encrypted, as everywhere in RDMA; crypto/tls runs
// on top. A soft device ends with its process: a program that is about to exit
// calls Flush, or data that it has just written may not arrive.
package rdmanet
