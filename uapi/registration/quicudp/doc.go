// Package quicudp is the transport of real QUIC over UDP for package
// registration, by quic-go: the yardstick of the other transports.
//
//	r, err := registration.Open(ctx, registration.Config{
//		Transport: quicudp.UDP{Addr: "10.0.0.1"}, TLS: tlsConfig})
//
// It is not for RDMA and has nothing of it; programs that do not import it do
// not have quic-go in them. QUIC is always encrypted, so that
// registration.Config.Insecure is refused.
//
// # How a call flows
//
// Open binds a UDP socket that all dials leave from; each listener has another
// one. A session is a quic.Conn with this module's faces: streams are
// quic-go's, and their errors are package qmux's types with quic-go's inside.
// The counters are filled from the events that quic-go records for qlog.
package quicudp
