// Package flow follows the connections of a capture: it pairs the queue pairs
// that talk, and finds packets that were sent again, with the reason, the
// meaning of NAKs, and the times of answers.
//
// It sees the capture's packets, and no more: packets lost before the point of
// capture are known by gaps only, and the round trip is that from this point.
// It trusts nothing in a capture, and the state that it keeps is bounded.
//
// A packet flows: Tracker.Add finds its way (way.go), which is one direction to
// one queue pair; a packet of reliable connections carries no number of the
// queue pair that sent it, so a way finds its way back by the answers to its
// packets (pairing.go); requests go through the sequence of PSNs (request.go,
// sequence.go), answers are put beside the requests that they answer
// (response.go). Each returns remarks for a reader of the packets;
// Tracker.Pairs has the sums.
package flow
