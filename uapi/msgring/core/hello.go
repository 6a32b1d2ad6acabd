package core

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/bits"
)

// Version is the version of the protocol.
const Version = 1

// Lengths of a hello on the wire, in bytes.
const (
	HelloLen  = 56 // of a request, and of an answer in byte mode
	AnswerLen = 69 // of an answer in RPC mode
)

// Controls is how many receives an end keeps for control messages, beyond one
// for each quantum of its ring. At most 7 are ever used: 5 CREDIT, FIN and
// RESET.
const Controls = 16

// Limits of a ring, in bytes and quanta.
const (
	MinRing   = 16 << 10
	MaxRing   = 64 << 20
	MinQuanta = 16
	MaxQuanta = 4096
	// MaxChunk is rdma_rxe's longest message; soft devices carry longer ones.
	MaxChunk = 8 << 20
)

// Mode says what the connection carries.
type Mode uint8

const (
	Bytes Mode = 1 // a byte stream; chunks have no meaning
	RPC   Mode = 3 // messages, one a chunk
)

// String names what programs of the mode speak.
func (m Mode) String() string {
	switch m {
	case Bytes:
		return "byte streams (rdmanet, QMux)"
	case RPC:
		return "calls (rpc)"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// SessionState is the fate of an RPC session that a hello asked for.
type SessionState uint8

const (
	SessionNew     SessionState = 1
	SessionResumed SessionState = 2
	SessionUnknown SessionState = 3 // a new one under the same id
)

// Hello is each end's description of itself, in the private data of the
// connection manager's REQ and REP. Ring, quantum, controls and longest chunk
// describe the ring and the receives of the end that says them. Fields that a
// mode does not use are zero.
type Hello struct {
	Mode     Mode
	Quantum  uint32 // bytes, a power of two
	Addr     uint64 // of the ring, as the sender's device names it
	RKey     uint32
	Ring     uint32 // bytes, a power of two, MinRing … MaxRing
	Controls uint16 // Controls
	Slots    uint16 // of an RPC session
	Longest  uint32 // longest chunk in bytes, 1 … Ring/4
	Service  uint32 // ServiceHash of a name; 0 is any
	Session  [16]byte
	Epoch    uint32

	// Only an answer in RPC mode has these.
	Instance uint64 // of the server
	Lifetime uint32 // of the session, in seconds
	State    SessionState
}

const magic = "RDMS"

// Append appends a hello to b: HelloLen bytes, or AnswerLen for an answer in
// RPC mode. Numbers are big-endian:
//
//	 0 "RDMS"    4 version    5 length    6 mode    7 log2 of the quantum
//	 8 u64 address of the ring      16 u32 rkey     20 u32 length of the ring
//	24 u16 control receives         26 u16 slots    28 u32 longest chunk
//	32 u32 service   36 session   52 u32 epoch
//	56 u64 instance  64 u32 lifetime  68 state of the session
func (h *Hello) Append(b []byte, answer bool) []byte {
	b = append(b, magic...)
	b = append(b, Version, byte(h.length(answer)), byte(h.Mode), byte(bits.TrailingZeros32(h.Quantum)))
	b = binary.BigEndian.AppendUint64(b, h.Addr)
	b = binary.BigEndian.AppendUint32(b, h.RKey)
	b = binary.BigEndian.AppendUint32(b, h.Ring)
	b = binary.BigEndian.AppendUint16(b, h.Controls)
	b = binary.BigEndian.AppendUint16(b, h.Slots)
	b = binary.BigEndian.AppendUint32(b, h.Longest)
	b = binary.BigEndian.AppendUint32(b, h.Service)
	b = append(b, h.Session[:]...)
	b = binary.BigEndian.AppendUint32(b, h.Epoch)
	if h.length(answer) == HelloLen {
		return b
	}
	b = binary.BigEndian.AppendUint64(b, h.Instance)
	b = binary.BigEndian.AppendUint32(b, h.Lifetime)
	return append(b, byte(h.State))
}

func (h *Hello) length(answer bool) int {
	if answer && h.Mode == RPC {
		return AnswerLen
	}
	return HelloLen
}

// Parse reads private data, behind which the connection manager puts zeroes.
// Bytes behind the length that the hello names are ignored. The error is a
// *Refusal, of the first thing that is wrong in the order magic, version,
// length, mode, limits.
func (h *Hello) Parse(b []byte, answer bool) error {
	switch {
	case len(b) < 5 || string(b[:4]) != magic:
		return refuse(ReasonMagic, "the other end speaks another protocol: its private data is no hello of rdmanet, QMux or rpc")
	case b[4] != Version:
		return refuse(ReasonVersion, "the peer speaks version %d, this end %d", b[4], Version)
	case len(b) < HelloLen || b[5] < HelloLen || int(b[5]) > len(b):
		return refuse(ReasonLimits, "a hello of %d bytes that says it has %d; it has at least %d", len(b), lengthByte(b), HelloLen)
	}
	h.Mode = Mode(b[6])
	if h.Mode != Bytes && h.Mode != RPC {
		return refuse(ReasonMode, "mode %d; this end knows %d (bytes) and %d (rpc)", h.Mode, Bytes, RPC)
	}
	if need := h.length(answer); int(b[5]) < need {
		return refuse(ReasonLimits, "an answer of %d bytes; in mode %d it has %d", b[5], h.Mode, need)
	}
	if b[7] > 31 {
		return refuse(ReasonLimits, "a quantum of 2^%d bytes", b[7])
	}
	h.Quantum = 1 << b[7]
	h.Addr = binary.BigEndian.Uint64(b[8:])
	h.RKey = binary.BigEndian.Uint32(b[16:])
	h.Ring = binary.BigEndian.Uint32(b[20:])
	h.Controls = binary.BigEndian.Uint16(b[24:])
	h.Slots = binary.BigEndian.Uint16(b[26:])
	h.Longest = binary.BigEndian.Uint32(b[28:])
	h.Service = binary.BigEndian.Uint32(b[32:])
	h.Session = [16]byte(b[36:52])
	h.Epoch = binary.BigEndian.Uint32(b[52:])
	h.Instance, h.Lifetime, h.State = 0, 0, 0
	if h.length(answer) == AnswerLen {
		h.Instance = binary.BigEndian.Uint64(b[56:])
		h.Lifetime = binary.BigEndian.Uint32(b[64:])
		h.State = SessionState(b[68])
	}
	return h.Check()
}

func lengthByte(b []byte) int {
	if len(b) < 6 {
		return 0
	}
	return int(b[5])
}

// Check reports a ring that no end may have: a *Refusal with ReasonLimits.
func (h *Hello) Check() error {
	quanta := uint32(0)
	if h.Quantum != 0 {
		quanta = h.Ring / h.Quantum
	}
	switch {
	case !powerOfTwo(h.Ring) || h.Ring < MinRing || h.Ring > MaxRing:
		return refuse(ReasonLimits, "a ring of %d bytes; it is a power of two, %d … %d", h.Ring, MinRing, MaxRing)
	case !powerOfTwo(h.Quantum) || quanta < MinQuanta || quanta > MaxQuanta:
		return refuse(ReasonLimits, "a ring of %d bytes in quanta of %d; it is %d … %d quanta", h.Ring, h.Quantum, MinQuanta, MaxQuanta)
	case h.Addr+uint64(h.Ring) < h.Addr:
		return refuse(ReasonLimits, "a ring of %d bytes at address %#x, beyond the last address", h.Ring, h.Addr)
	case h.Controls != Controls:
		return refuse(ReasonLimits, "%d receives for control messages; they are %d", h.Controls, Controls)
	case h.Longest < 1 || h.Longest > LongestChunk(h.Ring):
		return refuse(ReasonLimits, "a longest chunk of %d bytes for a ring of %d; it is 1 … %d", h.Longest, h.Ring, LongestChunk(h.Ring))
	}
	return nil
}

func powerOfTwo(n uint32) bool { return n != 0 && n&(n-1) == 0 }

// LongestChunk is the longest chunk that a ring of that many bytes takes. A
// quarter of the ring cannot deadlock: a receiver that has read everything
// keeps back less than a quarter that it has not told of, and less than a
// quarter is skipped at the ring's end.
func LongestChunk(ring uint32) uint32 { return min(ring/4, MaxChunk) }

// DefaultQuantum is the quantum of a ring of that many bytes: a 64th of it, at
// most 32 KiB. Each quantum costs a connection a receive: the time to post and
// to flush it, and 64 bytes of its queue though the connection is silent. With
// 128 of them a connection took a twentieth more processor time; streams,
// messages and calls do not tell 64 from 128.
func DefaultQuantum(ring uint32) uint32 { return min(ring/64, 32<<10) }

// ServiceHash is the hash by which a hello names a service: FNV-1a of the
// name's bytes, never 0. The empty name is 0, any service.
func ServiceHash(name string) uint32 {
	if name == "" {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return max(h.Sum32(), 1)
}

// Meets reports whether an acceptor, whose own hello h is, takes a request: a
// *Refusal with ReasonMode or ReasonService if it does not. Both ends show its
// text, so that it calls neither the peer.
func (h *Hello) Meets(request *Hello) error {
	switch {
	case h.Mode != request.Mode:
		return refuse(ReasonMode, "the client speaks %v, the server %v", request.Mode, h.Mode)
	case h.Service != 0 && request.Service != 0 && h.Service != request.Service:
		return refuse(ReasonService, "the client asks for service %08x, the server has %08x", request.Service, h.Service)
	}
	return nil
}
