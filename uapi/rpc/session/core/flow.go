package core

import (
	"fmt"
	"math"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// window is an amount of messages and of the bytes in them: metadata and bodies
// that are not offered.
type window struct{ bytes, messages uint32 }

// flow is one end's account of a stream's two windows.
type flow struct {
	send window // may still be sent
	recv window // the peer may still send
	owed window // consumed since the peer was told
}

func newFlow() flow {
	whole := window{WindowBytes, WindowMessages}
	return flow{send: whole, recv: whole}
}

// put takes a message of n bytes out of the window for sending, if it fits.
func (f *flow) put(n int) (ok bool, err error) {
	switch {
	case n < 0 || n > WindowBytes:
		return false, fmt.Errorf("rpc session: a message of a stream with %d bytes beside what it offers; it has at most %d: %w", n, WindowBytes, syscall.EMSGSIZE)
	case f.send.messages == 0 || f.send.bytes < uint32(n):
		return false, nil
	}
	f.send.messages--
	f.send.bytes -= uint32(n)
	return true, nil
}

// arrive takes a message out of the window for receiving. It returns false for
// one that is beyond it.
func (f *flow) arrive(m *wire.Message) bool {
	n := len(m.Metadata) + len(m.Body)
	if f.recv.messages == 0 || uint64(n) > uint64(f.recv.bytes) {
		return false
	}
	f.recv.messages--
	f.recv.bytes -= uint32(n)
	return true
}

// widen takes in a STREAM_WINDOW.
func (f *flow) widen(m *wire.Message) {
	f.send.bytes += min(m.Bytes, math.MaxUint32-f.send.bytes)
	f.send.messages += min(m.Messages, math.MaxUint32-f.send.messages)
}

// consume counts a message of n bytes that was read, and reports whether the
// peer is to be told: of half a window at a time.
func (f *flow) consume(n int) (due bool) {
	if n >= 0 && n <= WindowBytes { // others never arrived
		f.owed.bytes += uint32(n)
		f.owed.messages++
	}
	return f.owed.bytes >= WindowBytes/2 || f.owed.messages >= WindowMessages/2
}

// grantWindow returns the window that the peer is told of now.
func (f *flow) grantWindow() window {
	w := f.owed
	f.recv.bytes += w.bytes
	f.recv.messages += w.messages
	f.owed = window{}
	return w
}
