// Package rules decides by rules which packets of a device a link misbehaves
// on: the third READ response of each connection, say, in every run.
//
//	drop op=READ_RESPONSE_MIDDLE nth=3
//	delay=2ms op=ACK every=10
//	blackhole psn=+50 for=100ms
//
// A rule is an action and conditions, in any order, between spaces or commas.
// The words are those of Grammar; docs and 'rdmashim explain' print it.
//
// # How a packet meets the rules
//
//  1. See reads its headers: kind, connection, number (kind.go).
//  2. The connection tells whether it is new or repeated (connection.go).
//  3. Each rule compares its conditions, counts, and may act (rules.go).
//
// The package knows neither clocks nor links: time is an argument, and the fate
// of a packet is carried out by rnic/link. Shares with a seed are there as
// well.
//
// # What is counted
//
// A rule counts for each connection by itself, and packets that are sent for
// the first time only: a repeated packet of a reliable connection has its
// number already, so that neither a timeout nor the load of the machine moves
// the third to another place. A connection is two addresses and a queue pair.
// Acknowledgements have no number of their own; each counts.
package rules
