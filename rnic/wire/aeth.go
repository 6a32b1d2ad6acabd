package wire

import (
	"encoding/binary"
	"fmt"
)

// AETHLen is the length of an [AETH].
const AETHLen = 4

// AETH is the acknowledge extended header (IBA 9.3.5).
type AETH struct {
	Syndrome Syndrome
	MSN      MSN // messages completed by the responder
}

func (h *AETH) parse(b []byte) []byte {
	v := binary.BigEndian.Uint32(b)
	h.Syndrome = Syndrome(v >> 24)
	h.MSN = MSN(v & mask24)
	return b[AETHLen:]
}

func (h *AETH) append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(h.Syndrome)<<24|uint32(h.MSN&mask24))
}

// Syndrome is the first byte of an AETH: an acknowledgement with a credit
// count, a receiver-not-ready with a timer code, or a negative acknowledgement
// with its code (IBA 9.7.5.1).
type Syndrome uint8

// The kinds, bits 7 to 5 of the syndrome. Everything else is reserved.
const (
	syndromeMask = 0xe0
	syndromeACK  = 0x00
	syndromeRNR  = 0x20
	syndromeNAK  = 0x60
	codeMask     = 0x1f
)

// NoCredits is the credit code of a responder that gives no end-to-end credits:
// the requester is not limited by them (IBA 9.7.7.2).
const NoCredits uint8 = 31

// SyndromeACK returns a positive acknowledgement with a credit code of 0 … 31.
func SyndromeACK(credits uint8) Syndrome { return syndromeACK | Syndrome(credits&codeMask) }

// SyndromeRNR returns a receiver-not-ready NAK that asks to wait for t.
func SyndromeRNR(t RNRTimer) Syndrome { return syndromeRNR | Syndrome(t&codeMask) }

// SyndromeNAK returns a negative acknowledgement.
func SyndromeNAK(c NAKCode) Syndrome { return syndromeNAK | Syndrome(c&codeMask) }

// IsACK reports whether s is a positive acknowledgement.
func (s Syndrome) IsACK() bool { return s&syndromeMask == syndromeACK }

// IsRNR reports whether s is a receiver-not-ready NAK.
func (s Syndrome) IsRNR() bool { return s&syndromeMask == syndromeRNR }

// IsNAK reports whether s is a NAK with a code; a receiver-not-ready is not.
func (s Syndrome) IsNAK() bool { return s&syndromeMask == syndromeNAK }

// IsReserved reports whether s is of no defined kind, or a NAK with a reserved
// code. A requester drops a packet that brings one.
func (s Syndrome) IsReserved() bool {
	return !s.IsACK() && !s.IsRNR() && !(s.IsNAK() && s.NAK() < numNAKCodes)
}

// Credits returns the credit code of an ACK; see [CreditCount].
func (s Syndrome) Credits() uint8 { return uint8(s & codeMask) }

// RNRTimer returns the timer code of a receiver-not-ready NAK.
func (s Syndrome) RNRTimer() RNRTimer { return RNRTimer(s & codeMask) }

// NAK returns the code of a NAK.
func (s Syndrome) NAK() NAKCode { return NAKCode(s & codeMask) }

// String returns the syndrome in words, such as "RNR NAK timer 12 (0.64ms)".
func (s Syndrome) String() string {
	switch {
	case s.IsACK() && s.Credits() == NoCredits:
		return "ACK"
	case s.IsACK():
		return fmt.Sprintf("ACK credits %d", s.Credits())
	case s.IsRNR():
		return fmt.Sprintf("RNR NAK timer %d (%s)", uint8(s.RNRTimer()), s.RNRTimer())
	case s.IsReserved():
		return fmt.Sprintf("reserved syndrome 0x%02x", uint8(s))
	}
	return "NAK " + s.NAK().String()
}

// NAKCode is the responder's reason to refuse a request (IBA 9.7.5.2).
type NAKCode uint8

const (
	NAKPSNSequence       NAKCode = 0
	NAKInvalidRequest    NAKCode = 1
	NAKRemoteAccess      NAKCode = 2
	NAKRemoteOperational NAKCode = 3
	NAKInvalidRD         NAKCode = 4

	numNAKCodes = 5
)

var nakText = [numNAKCodes]string{
	"PSN sequence error", "invalid request", "remote access error", "remote operational error", "invalid RD request",
}

// String returns the code's name in the specification.
func (c NAKCode) String() string { return name(nakText[:], c, "reserved code") }

// CreditCount returns how many requests that consume a receive the responder
// grants with a credit code (IBA 9.7.7.2): 0 … 32768.
// limited is false for [NoCredits].
func CreditCount(code uint8) (n int, limited bool) {
	code &= codeMask
	switch {
	case code == NoCredits:
		return 0, false
	case code < 4:
		return int(code), true
	}
	// From 4 on the counts double every second code: 4, 6, 8, 12, 16, 24 …
	return (4 + int(code&1)*2) << (code/2 - 2), true
}
