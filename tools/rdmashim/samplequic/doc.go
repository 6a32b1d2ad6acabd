// Package samplequic is 'rdmashim sample quic': one program over several
// registrations of package registration at once, a transport each.
//
// It is not a benchmark, and its server does nothing but echo; measurements are
// in docs/transports.md.
//
// A command flows: open (transports.go) opens a registration for each word of
// --on; the server echoes what comes on each, the client runs the same exchange
// of package echo over each at the same time, which compares every byte, and
// prints what the connections were and which machinery was at work (report.go).
package samplequic
