package xprt

import (
	"encoding/binary"
	"fmt"
)

var be = binary.BigEndian

// The procedures of a header (RFC 8166, 4.2.4).
const (
	procMsg   = 0 // the RPC message follows
	procNoMsg = 1 // the RPC message is in a chunk
	procDone  = 3 // the client needs its chunks no more; ignored
	procError = 4 // the message was refused; ignored by the server
)

// refusal is the reason for an error that answers a message (RFC 8166, 4.5).
type refusal struct {
	code uint32
	text string
}

// The codes of an error (enum rpc_rdma_errcode).
const (
	errVersion = 1
	errChunk   = 2
)

func (r *refusal) Error() string { return r.text }

// badChunk refuses a message.
func badChunk(format string, args ...any) error {
	return &refusal{errChunk, fmt.Sprintf(format, args...)}
}

// message is the error that answers the message with this number.
func (r *refusal) message(xid uint32) (b []byte) {
	for _, v := range []uint32{xid, version, credits, procError, r.code} {
		b = be.AppendUint32(b, v)
	}
	if r.code == errVersion { // the lowest and the highest
		b = be.AppendUint32(be.AppendUint32(b, version), version)
	}
	return b
}

// version is that of the protocol.
const version = 1

// segment is memory of the client's (struct xdr_rdma_segment).
type segment struct {
	key, length uint32
	addr        uint64
}

// readChunk is a part of the call that the server fetches, and which belongs at
// a position of the message. Parts of one position follow each other.
type readChunk struct {
	at uint32
	segment
}

// header is what comes in front of the RPC message.
type header struct {
	xid, proc uint32
	reads     []readChunk
	writes    [][]segment // for the data of replies
	reply     []segment   // for a reply that is too long to be sent; nil: none
}

// parse reads a header, of which those of procDone and procError have no lists;
// rest is what follows it. The error is a refusal.
func parse(b []byte) (h header, rest []byte, err error) {
	r := reader{b: b}
	h.xid = r.number()
	if v := r.number(); v != version && !r.bad {
		return h, nil, &refusal{errVersion, fmt.Sprintf("RPC over RDMA version %d, want %d", v, version)}
	}
	r.number() // the credits that the client wishes
	switch h.proc = r.number(); h.proc {
	case procMsg, procNoMsg:
	case procDone, procError:
		return h, nil, nil
	default:
		return h, nil, badChunk("RPC over RDMA procedure %d, want 0 or 1", h.proc)
	}
	for r.more() {
		h.reads = append(h.reads, readChunk{r.number(), r.segment()})
	}
	for r.more() {
		h.writes = append(h.writes, r.segments())
	}
	if r.more() {
		h.reply = r.segments()
	}
	if r.bad {
		return h, nil, badChunk("RPC over RDMA header ends early, or has lists that are no lists")
	}
	return h, r.b, nil
}

// reader reads XDR. From where it ends or is wrong, zeroes are read.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) end() { r.bad, r.b = true, nil }

func (r *reader) number() uint32 {
	if len(r.b) < 4 {
		r.end()
		return 0
	}
	v := be.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

// more says whether an element of a list follows, of which 1 says yes and 0 no.
func (r *reader) more() bool {
	v := r.number()
	if v > 1 {
		r.end()
	}
	return v == 1
}

func (r *reader) segment() segment {
	s := segment{key: r.number(), length: r.number()}
	s.addr = uint64(r.number())<<32 | uint64(r.number())
	return s
}

func (r *reader) segments() []segment {
	list := []segment{}
	for n := r.number(); n > 0 && !r.bad; n-- {
		list = append(list, r.segment())
	}
	return list
}

// answer is the header of a reply to h: of the client's write chunks the first
// has written bytes, of its reply chunk all has as many as the reply is long,
// if it goes by that.
func (h *header) answer(written, reply int) []byte {
	proc := uint32(procMsg)
	if reply > 0 {
		proc = procNoMsg
	}
	var b []byte
	for _, v := range []uint32{h.xid, version, credits, proc, 0} {
		b = be.AppendUint32(b, v)
	}
	for _, w := range h.writes {
		b, written = appendSegments(be.AppendUint32(b, 1), w, written), 0
	}
	b = be.AppendUint32(b, 0)
	if h.reply == nil {
		return be.AppendUint32(b, 0)
	}
	return appendSegments(be.AppendUint32(b, 1), h.reply, reply)
}

// appendSegments appends a chunk of which n bytes were used.
func appendSegments(b []byte, list []segment, n int) []byte {
	b = be.AppendUint32(b, uint32(len(list)))
	for _, s := range list {
		used := min(uint64(n), uint64(s.length))
		n -= int(used)
		b = be.AppendUint32(be.AppendUint32(b, s.key), uint32(used))
		b = be.AppendUint64(b, s.addr)
	}
	return b
}

// Private data of a connection request and its answer (Linux's
// rpcrdma_connect_private): how long a message either side may send.
const (
	privateMagic = 0xf6ab0e18
	privateLen   = 8
	plainInline  = 1024 // of a client without
)

// inlineOf is how long a message a client takes, by its private data, in bytes.
func inlineOf(private []byte) int {
	if len(private) < privateLen || be.Uint32(private) != privateMagic || private[4] != 1 {
		return plainInline
	}
	return min((int(private[7])+1)<<10, inline)
}

// private is the answer.
func private() []byte {
	return append(be.AppendUint32(nil, privateMagic), 1, 0, inline>>10-1, inline>>10-1)
}
