package uapi

import (
	"io"
	"log/slog"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// None in a field of a configuration asks for nothing where 0 means the
// default: no repeats, no READs at a time, no timeout, no signs of life.
const None = -1

// OpenConfig says how to open a device. The zero value of every field means the
// default in parentheses. Options of the device itself (faults, UDP port, MTU
// of its packets) are part of its name instead.
type OpenConfig struct {
	// Logger takes notices of automatic choices and of faults that fail no call
	// (none): among others, once for each wait, of a message that has waited a
	// second for a receive of the peer's (soft devices; the kernel does not
	// tell of its own). A soft device tells the logger of the Open that started
	// it.
	Logger *slog.Logger
	// Port is the device's port, from 1 (the first active one).
	Port int
	// GIDIndex is the entry of the port's address table (nil: the one that
	// QueryDevice explains). new(3) is entry 3.
	GIDIndex *int
	// MTU is the largest path MTU in bytes that is offered to peers: 256, 512,
	// 1024, 2048 or 4096 (the port's active MTU).
	MTU int
	// Kinds are the kinds of devices that OpenLocal and OpenRoute choose among,
	// KindHost (the kernel's) and KindSoft (both, the kernel's first). A device
	// that was named, to Open or by RDMASHIM_DEVICE, and is of another kind is
	// EINVAL.
	Kinds []Kind
	// Device is the device that OpenLocal and OpenRoute open, as a name for
	// Open (what RDMASHIM_DEVICE names, else they choose).
	Device string

	// Trace gets every call to the device's kernel, a line and a Write each, as
	// strace prints them and RDMASHIM_TRACE in the environment asks for (none).
	Trace io.Writer

	wrap func(kshim.Kernel) kshim.Kernel // puts something between client and kernel
}

func (c *OpenConfig) kinds() (list device.Kinds) {
	for _, k := range c.Kinds {
		list = append(list, string(k))
	}
	return list
}

// logger is where the device's notices go.
func (c *OpenConfig) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// QPConfig says how to make a queue pair. The zero value of every field means
// the default in parentheses.
type QPConfig struct {
	// Type is the transport service (TypeRC). Queue pairs of TypeUD are ready
	// when they are made; of the fields below, Access and MTU mean nothing for
	// them, and those from Timeout on nothing for them and for TypeUC.
	Type QPType
	// QKey is the key that datagrams must carry to be received (0); of TypeUD
	// only.
	QKey uint32
	// PD is the protection domain (the device's own): the peer reaches the
	// regions that are in it and no others. Peers whose queue pairs are in one
	// domain share its regions, given the keys: see CreatePD.
	PD PD
	// SendCQ and RecvCQ take the completions and may be shared by many queue
	// pairs. Both zero: the queue pair gets one completion queue of its own
	// for both directions, with room for everything that can be outstanding.
	// One of them zero: the other one takes both directions.
	SendCQ, RecvCQ CQ
	// SRQ is the shared receive queue whose receives it takes (none: it has
	// receives of its own); RecvDepth and RecvSGE stay 0 then.
	SRQ SRQ
	// SendDepth and RecvDepth are how many requests may be outstanding (0
	// sends, 0 receives).
	SendDepth, RecvDepth int
	// SendSGE and RecvSGE are how long a request's scatter/gather list may be
	// (1).
	SendSGE, RecvSGE int
	// Inline is how many bytes a request with the flag Inline, or with WR.Data,
	// may carry, at most 512 (0).
	Inline int
	// SignalAll makes every request complete as if it were Signaled.
	SignalAll bool
	// Access is the set of operations that peers may do through this queue
	// pair; the region must allow them too
	// (AccessRemoteWrite|AccessRemoteRead|AccessRemoteAtomic). None lets them
	// only send.
	Access Access
	// MTU is the largest path MTU in bytes (the device's).
	MTU int

	// Timeout is the time to wait for an acknowledgement (268.435456 ms), from
	// 8.192 µs to 8796.093022208 s, rounded up to 4.096 µs · 2^n (IBA
	// 9.7.6.1.3). None waits for ever.
	Timeout time.Duration
	// Retry is how often a request is repeated after a timeout, 1 … 7 (6). A
	// silent peer is given up, with WCRetryExcErr, after about
	// (Retry+1)·timeout: 1.9 s by default; one in shared memory whose process
	// does not run, after four times as long at most. None repeats never. With
	// 7, rdma_rxe repeats for ever, against the specification.
	Retry int
	// RNRRetry is how often a request is repeated when the peer has no receive
	// posted, 1 … 6, 7 for ever (7). None repeats never.
	RNRRetry int
	// MinRNRTimer is the pause that this side asks for when it has no receive
	// posted (0.64 ms), from 10 µs to 655.36 ms, rounded up to 10 µs · 2^n or
	// 30 µs · 2^n (IBA table 45). None is the longest.
	MinRNRTimer time.Duration
	// MaxRdAtomic is how many READs and atomics may be in flight in each
	// direction (16); the device and the peer may lower it. A READ of 64 KiB
	// each fills no path whose round trip takes more than some milliseconds
	// with 16. None allows none.
	MaxRdAtomic int

	managed bool // for Dial and Request.Accept
}

// ackTime is the timeout of a code: 4.096 µs · 2^code, or 0, for ever, of code
// 0 (IBA 9.7.6.1.3).
func ackTime(code uint8) time.Duration {
	if code == 0 {
		return 0
	}
	return 4096 << code
}

// rnrTime is the RNR timer of a code, which doubles every second code; code 0
// follows 31 (IBA table 45).
func rnrTime(code uint8) time.Duration {
	code = (code-1)%32 + 1
	return time.Duration(2+code%2) << (code / 2) / 2 * 10 * time.Microsecond
}

// timeCode is the code of the shortest of the times that is t or longer; 0
// where t is 0 or longer than the time of code 31.
func timeCode(t time.Duration, times func(code uint8) time.Duration) uint8 {
	for code := uint8(1); code < 32 && t > 0; code++ {
		if times(code) >= t {
			return code
		}
	}
	return 0
}
