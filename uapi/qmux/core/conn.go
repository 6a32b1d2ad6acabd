package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// Conn is one side of a connection. Its methods must not be called
// concurrently, and now must not fall from call to call.
//
// Once cause is set, nothing of the peer but its CONNECTION_CLOSE is heeded and
// nothing is sent but the rest of the control frames and an own
// CONNECTION_CLOSE. outEnded means that Transmit returns 0 for good, over that
// nothing at all is left to do; over implies outEnded.
type Conn struct {
	cfg   Config
	peer  wire.Parameters
	ready bool // peer is known

	cause    *Cause
	closing  wire.Frame // the CONNECTION_CLOSE to be sent; Type 0: none
	outEnded bool
	inEnded  bool // the peer's stream ended
	over     bool

	part  []byte     // an incomplete record
	deaf  bool       // no record can be found any more
	frame wire.Frame // the frame being received
	out   wire.Frame // the frame being sent
	tail  tail       // of the record being received
	began bool       // the own parameters were sent

	least  int     // bytes of data that the record being sent need not copy
	lent   []byte  // … which it does not
	lender *stream // … and whose they are

	streams map[wire.StreamID]*stream
	kinds   [4]kind // by the low two bits of the streams' IDs
	blocks  blocks
	window  window // for all streams of the peer
	credit  credit // from the peer, for all streams

	control   []*stream // streams with control frames to be sent
	sched     scheduler
	raiseData bool // MAX_DATA is to be sent

	datagrams datagrams
	ping      ping
	timers    timers
	waste     waste
	events    events
	counters  Counters
}

// Counters count since the connection began. They only grow.
type Counters struct {
	RecordsSent, RecordsReceived uint64
	BytesSent, BytesReceived     uint64 // of records, their Sizes included
	DataSent, DataReceived       uint64 // bytes of streams
	DatagramsSent                uint64
	DatagramsReceived            uint64
	DatagramsDropped             uint64 // received, and pushed out by younger ones
	PingsSent, PingsReceived     uint64

	FramesSent, FramesReceived wire.Counts
	TimersArmed                [timerKinds]uint64 // by TimerKind
	RTTSamples                 uint64             // of answered pings
}

// New makes a connection whose byte stream can carry records from now on. The
// error is EINVAL with the field that is out of its range.
func New(cfg Config, now Time) (*Conn, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	c := &Conn{
		cfg:     cfg,
		streams: map[wire.StreamID]*stream{},
		window:  newWindow(now, cfg.Window, cfg.MaxWindow),
	}
	for i := range c.kinds {
		id := wire.StreamID(i)
		c.kinds[i].ours = id.Server() == cfg.Server
		if !c.kinds[i].ours {
			c.kinds[i].most = cfg.MaxStreamsBidi
			if id.Uni() {
				c.kinds[i].most = cfg.MaxStreamsUni
			}
			c.kinds[i].limit = c.kinds[i].most
		}
	}
	c.timers.start(c, now)
	return c, nil
}

// Peer returns the peer's parameters. They are zero until EventReady.
func (c *Conn) Peer() wire.Parameters { return c.peer }

// Cause is why the connection ended, nil while it has not.
func (c *Conn) Cause() *Cause { return c.cause }

// OutputEnded reports that Transmit has nothing more for good: the caller ends
// its direction of the byte stream.
func (c *Conn) OutputEnded() bool { return c.outEnded }

// Over reports that nothing is left to be sent, received or waited for: the
// caller closes the byte stream. Received data can still be read.
func (c *Conn) Over() bool { return c.over }

// Counters returns the counters.
func (c *Conn) Counters() Counters { return c.counters }

// failed is the error of a call on a connection that has ended, else nil.
func (c *Conn) failed() error {
	if c.cause != nil {
		return c.cause
	}
	return nil
}
