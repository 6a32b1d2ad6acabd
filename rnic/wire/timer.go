package wire

import "fmt"

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
