package wire

// StreamID names a stream: bit 0 says which side opened it, bit 1 that it is
// unidirectional, and the rest counts the streams of these (RFC 9000 section
// 2.1).
type StreamID uint64

const (
	streamServer = 1
	streamUni    = 2
)

// MaxStreams is the largest number of streams of one kind, and so the largest
// limit that may be granted.
const MaxStreams = 1 << 60

// MakeStreamID returns the name of the stream number n, from 0, of its kind.
func MakeStreamID(n uint64, server, uni bool) StreamID {
	id := StreamID(n << 2)
	if server {
		id |= streamServer
	}
	if uni {
		id |= streamUni
	}
	return id
}

// Server reports whether the server opened the stream.
func (id StreamID) Server() bool { return id&streamServer != 0 }

// Uni reports whether the stream carries data from its opener only.
func (id StreamID) Uni() bool { return id&streamUni != 0 }

// Number counts the streams of this kind, from 0.
func (id StreamID) Number() uint64 { return uint64(id >> 2) }
