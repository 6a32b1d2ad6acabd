// Package flow follows the connections of a capture: which queue pairs talk to
// which, what was sent again and why, what NAKs mean, and how long answers
// took.
//
// It sees what the capture saw, and no more: what was lost before the point of
// capture is known by gaps only, and the round trip is that from this point.
// Nothing in it is trusted, and what it keeps is bounded.
//
// A packet flows: Tracker.Add finds its way (way.go), which is one direction to
// one queue pair; a packet of reliable connections carries no number of the
// queue pair that sent it, so a way finds its way back by what answers it
// (pairing.go); requests go through the sequence of PSNs (request.go,
// sequence.go), answers are put beside the requests that they answer
// (response.go). Each returns remarks for who reads along; Tracker.Pairs has
// the sums.
package flow
