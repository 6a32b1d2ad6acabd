package wire

import "fmt"

const mask24 = 1<<24 - 1

// PSN is a packet sequence number: 24 bits, which wrap (IBA 9.7.1). A PSN made
// by this package never has a bit above the 24th set, so == compares them.
type PSN uint32

// MaxPSN is the largest packet sequence number; the next one is 0.
const MaxPSN PSN = mask24

// Add returns the number n packets after p, or before it where n is negative.
func (p PSN) Add(n int) PSN { return (p + PSN(n)) & mask24 }

// Next returns p.Add(1).
func (p PSN) Next() PSN { return (p + 1) & mask24 }

// Sub returns the signed distance from q to p: the n in -2^23 … 2^23-1 with
// q.Add(n) == p.
func (p PSN) Sub(q PSN) int32 { return int32((p-q)<<8) >> 8 }

// Before reports whether p lies in the half of the sequence space before q.
func (p PSN) Before(q PSN) bool { return p.Sub(q) < 0 }

// After reports whether p lies in the half of the sequence space after q. Of
// the number exactly opposite, Before holds and After does not.
func (p PSN) After(q PSN) bool { return p.Sub(q) > 0 }

// In reports whether p is one of the n numbers that start with first; n is in
// 0 … 2^24.
func (p PSN) In(first PSN, n int) bool { return int((p-first)&mask24) < n }

// MSN is a message sequence number: 24 bits, which wrap. A responder counts the
// messages that it completed in it (IBA 9.7.7.1).
type MSN uint32

// Next returns the number after m.
func (m MSN) Next() MSN { return (m + 1) & mask24 }

// Sub returns the signed distance from q to m, as [PSN.Sub] does.
func (m MSN) Sub(q MSN) int32 { return int32((m-q)<<8) >> 8 }

// QPN is a queue pair number: 24 bits.
type QPN uint32

const (
	// SMIQPN is the subnet management queue pair; RoCE does not use it.
	SMIQPN QPN = 0
	// GSIQPN is the general services queue pair, which carries the
	// communication manager's datagrams (IBA 16).
	GSIQPN QPN = 1
	// MulticastQPN is the destination of a multicast datagram.
	MulticastQPN QPN = mask24
)

// Valid reports whether q fits 24 bits.
func (q QPN) Valid() bool { return q <= mask24 }

// String returns q as 0x with six digits.
func (q QPN) String() string { return fmt.Sprintf("0x%06x", uint32(q)) }

// PKey is a partition key: 15 bits of partition, and above them the membership
// bit (IBA 10.9).
type PKey uint16

// DefaultPKey is full membership of the default partition, the only key that
// RoCE uses.
const DefaultPKey PKey = 0xffff

// Match reports whether a packet with key k may enter a port with key q: the
// same partition, not 0, and at least one full member (IBA 10.9).
func (k PKey) Match(q PKey) bool {
	return k&0x7fff == q&0x7fff && k&0x7fff != 0 && (k|q)&0x8000 != 0
}

// RNRTimer is the five-bit code of a time for which a requester waits after a
// receiver-not-ready NAK (IBA table 45). Code 0 is the longest.
type RNRTimer uint8

// rnrTimes is IBA table 45, in units of ten microseconds.
var rnrTimes = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12,
	16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072,
	4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// Nanoseconds returns the time that the code stands for, 10 µs … 655.36 ms.
// Bits above the fifth are ignored.
func (t RNRTimer) Nanoseconds() int64 { return int64(rnrTimes[t&codeMask]) * 10_000 }

// String returns the time in milliseconds.
func (t RNRTimer) String() string {
	return fmt.Sprintf("%d.%02dms", rnrTimes[t&codeMask]/100, rnrTimes[t&codeMask]%100)
}

// AckTimeout is the five-bit code of a queue pair's local ACK timeout (IBA
// 9.7.6.1.3): 4.096 µs times two to its power. Code 0 turns the
// timeout off.
type AckTimeout uint8

// Nanoseconds returns the time that the code stands for, 8.192 µs … 8796 s, and
// 0 where there is none. Bits above the fifth are ignored.
func (t AckTimeout) Nanoseconds() int64 {
	if t&codeMask == 0 {
		return 0
	}
	return 4096 << (t & codeMask)
}
