package uapi

import (
	"log/slog"

	"github.com/rdmashim/rdmashim/kshim"
)

// Option changes what Open does. What belongs to the device (faults, UDP
// port, MTU) is part of its name instead.
type Option func(*openConfig)

type openConfig struct {
	log      *slog.Logger
	port     int // 0: the first active one
	gidIndex int // -1: choose
	mtu      int // 0: the port's active MTU
	kinds    deviceKinds
	dials    bool // see Context.dials
	wrap     func(kshim.Kernel) kshim.Kernel
}

// WithLogger reports what is chosen automatically, and what goes wrong without
// failing a call: among others, once for each, a message that has waited for a
// receive of the peer's for a second (soft devices; the kernel does not tell of
// its own). A soft device tells the logger of the Open that started it. Without
// it the package is silent.
func WithLogger(log *slog.Logger) Option {
	return func(c *openConfig) {
		if log != nil {
			c.log = log
		}
	}
}

// WithPort uses this port of the device, from 1, instead of the first active
// one.
func WithPort(port int) Option { return func(c *openConfig) { c.port = port } }

// WithGIDIndex uses this entry of the port's address table instead of the one
// that QueryDevice explains.
func WithGIDIndex(index int) Option { return func(c *openConfig) { c.gidIndex = index } }

// WithMTU offers at most this path MTU (256, 512, 1024, 2048 or 4096 bytes) to
// peers, instead of the port's active MTU.
func WithMTU(bytes int) Option { return func(c *openConfig) { c.mtu = bytes } }

// WithKinds lets OpenLocal and OpenRoute choose among devices of these kinds
// only, "host" (the kernel's) and "soft"; without it the kernel's come first. A
// device that was named, by Open or RDMASHIM_DEVICE, and is of another kind is
// EINVAL.
func WithKinds(kinds ...string) Option { return func(c *openConfig) { c.kinds = kinds } }

// withKernel puts something between the client and the kernel.
func withKernel(wrap func(kshim.Kernel) kshim.Kernel) Option {
	return func(c *openConfig) { c.wrap = wrap }
}

func newOpenConfig(opts []Option) openConfig {
	c := openConfig{log: slog.New(slog.DiscardHandler), gidIndex: -1}
	for _, o := range opts {
		if o != nil {
			o(&c)
		}
	}
	return c
}

// QPConfig says how to make a queue pair. The zero value of every field means
// the default in parentheses; where 0 itself has a meaning in verbs, -1 asks
// for it.
type QPConfig struct {
	// Type is the transport service (TypeRC). Queue pairs of TypeUD are ready when
	// they are made; of the fields below, Access, MTU and those from Timeout on mean
	// nothing for them.
	Type QPType
	// QKey is what datagrams must carry to be received (0); of TypeUD only.
	QKey uint32
	// PD is the protection domain (the context's own): the peer reaches the regions
	// that are in it and no others. Peers whose queue pairs are in one domain share
	// its regions, given the keys: see CreatePD.
	PD PD
	// SendCQ and RecvCQ take the completions and may be shared by many queue
	// pairs. Both zero: the queue pair gets one completion queue of its own
	// for both directions, with room for everything that can be outstanding.
	// One of them zero: the other one takes both directions.
	SendCQ, RecvCQ CQ
	// SendDepth and RecvDepth are how many requests may be outstanding (0
	// sends, 0 receives).
	SendDepth, RecvDepth int
	// SendSGE and RecvSGE are how long a request's scatter/gather list may be
	// (1).
	SendSGE, RecvSGE int
	// Inline is how many bytes an Inline request may carry (0).
	Inline int
	// SignalAll makes every request complete as if it were Signaled.
	SignalAll bool
	// Access is what peers may do through this queue pair; the region must
	// allow it too (AccessRemoteWrite|AccessRemoteRead|AccessRemoteAtomic).
	// NoAccess allows nothing.
	Access Access
	// MTU is the largest path MTU in bytes (the context's).
	MTU int

	// Timeout is the time to wait for an acknowledgement, 4.096 µs · 2^Timeout,
	// 1 … 31 (16: 268 ms). -1 waits for ever.
	Timeout int
	// Retry is how often a request is repeated after a timeout, 1 … 7 (6). A
	// silent peer is given up, with WCRetryExcErr, after about
	// (Retry+1)·timeout: 1.9 s by default. -1 repeats never. With 7, rdma_rxe
	// repeats for ever, against the specification.
	Retry int
	// RNRRetry is how often a request is repeated when the peer has no receive
	// posted, 1 … 6, 7 for ever (7). -1 repeats never.
	RNRRetry int
	// MinRNRTimer is the pause that this side asks for when it has no receive
	// posted, in IBA's code (table 45), 1 … 31 (12: 0.64 ms). -1 is code 0,
	// 655.36 ms.
	MinRNRTimer int
	// MaxRdAtomic is how many READs and atomics may be in flight in each
	// direction (16); the device and the peer may lower it. -1 allows none.
	MaxRdAtomic int

	managed bool // for Dial and Request.Accept
}

// NoAccess in QPConfig.Access lets peers do nothing but send.
const NoAccess = ^Access(0)
