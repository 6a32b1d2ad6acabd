// Package foreign is a reliable connection's end that shares nothing with
// package engine but the packets' formats: written from the specification
// alone (IBA vol. 1, chapter 9), it is what an implementation by others does
// where rdma_rxe and the soft RNIC happen to agree.
//
//   - It grants end-to-end credits, and sends an ACK for each request.
//   - It repeats nothing before its ACK timeout, and goes back N.
//   - It answers a READ that is repeated from the middle with First.
//   - It keeps no packet that comes early, and knows no selective repeat.
//   - A queue of packets bounds what it has under way; it has no window.
//
// It is no RNIC: it has one region, one connection, and no error state. A
// packet that the other end may not send is a failure of the test.
//
// A Peer stands in a [virtual.World] in place of a node's queue pairs. A packet
// comes to Receive (peer.go), which hands a request to the responder
// (responder.go) and a response to the requester (requester.go).
package foreign
