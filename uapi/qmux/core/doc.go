// Package core is one side of a QMux connection as a state machine: streams
// with flow control and priorities, datagrams, pings, idle time and closing,
// after draft-ietf-quic-qmux-02 and the parts of RFC 9000 that it keeps.
//
// It is not a transport: it has no goroutine, clock, socket, lock or log. Time
// is an argument, the byte stream goes in by Receive and out by Transmit, and
// the caller serialises all calls. Loss, order and congestion are the byte
// stream's business: nothing is acknowledged and nothing sent twice.
//
// The caller drives it through these calls. Each says which of the others are
// worth making after it:
//
//	Receive         bytes of the peer arrived → Events, Transmit, NextTimeout
//	ReceiveEnd      the peer's stream ended → Events, Transmit
//	Transmit        writes the next record that may leave now → itself, Events, NextTimeout
//	TransmitLent    the same, with long data in the memory of its Write
//	NextTimeout     when HandleTimeout must be called
//	HandleTimeout   that time has come → Events, Transmit, NextTimeout
//	Events          which of the program's calls are worth making again
//
// and the program's: Open, Accept, Write, Read, AwaitRead, Reset, Stop,
// SendDatagram, ReceiveDatagram, Close → Transmit. None blocks.
//
// # The path of a Write
//
//  1. Write lends the program's memory to the stream (send.go), which takes its
//     place in the scheduler (scheduler.go).
//  2. Transmit fills a record: control frames, datagrams, then the streams'
//     bytes, as far as credit goes (transmit.go). TransmitLent copies no long
//     data.
//  3. The peer's Receive finds the record, wherever the byte stream was cut
//     (receive.go), checks order, final size and credit, and keeps the data
//     (receivehalf.go, fifo.go), or puts it where AwaitRead says. Data that
//     fills its record is taken as it comes (tail.go). A slow reader stops its
//     own stream only.
//  4. Read moves the bytes out. When half a window is read, the peer is granted
//     another, a larger one if the path needs it (window.go).
//
// # Ends
//
// A stream ends by its halves: the sender's by FIN or RESET_STREAM, the
// receiver's when the program knows how. Only then is the peer granted another
// stream (stream.go). The connection ends by a Cause (close.go); a mistake of
// the peer closes it with the code of RFC 9000 (error.go), and Transmit still
// says so.
//
// # What is left out
//
// 0-RTT, which needs early data of TLS, and everything that QMux takes away
// from QUIC: packets, connection IDs, migration, acknowledgements, loss
// recovery and congestion control.
package core
