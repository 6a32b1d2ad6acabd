package stats

import (
	"fmt"
	"maps"
	"net/netip"
	"time"
)

// Device is a reading of a device: its counters from its start to Time, and the
// present state of its queue pairs. The JSON keys are stable.
type Device struct {
	Name    string         `json:"name"`             // the kernel's name: "soft0", "rxe0"
	Device  string         `json:"device"`           // its name for uapi.Open: "soft:127.0.0.1"
	Kind    string         `json:"kind"`             // "soft", "sim" or "host"
	NetDev  string         `json:"netdev,omitempty"` // the interface it sends on, if known
	Address netip.AddrPort `json:"address,omitzero"` // where it answers, if known
	PID     int            `json:"pid,omitempty"`    // of the process that it runs in; 0: the kernel
	Process string         `json:"process,omitempty"`
	Time    time.Time      `json:"time"`
	Ports   []Port         `json:"ports"`
	// QueuePairs are, of a soft device, all; of a kernel device those that the
	// reader sees: through Device.Stats its own, through rdmashim top those
	// that the kernel shows to it.
	QueuePairs []QueuePair `json:"queue_pairs"`
}

// Port is a reading of a port. Its counters include those of its queue pairs,
// also of ones that are gone: adding those to them counts twice.
type Port struct {
	Port     int      `json:"port"`
	State    string   `json:"state"`         // "ACTIVE", "DOWN"
	MTU      int      `json:"mtu,omitempty"` // bytes of payload a packet, if known
	Counters Counters `json:"counters"`
}

// QueuePair is a reading of a queue pair.
type QueuePair struct {
	QPN       uint32         `json:"lqpn"`
	Type      string         `json:"type"`                // "RC", "UD"
	State     string         `json:"state"`               // "RESET", "INIT", "RTR", "RTS", "SQD", "ERR"
	RemoteQPN uint32         `json:"rqpn,omitempty"`      // RC, once it is connected
	Peer      netip.AddrPort `json:"peer,omitzero"`       // where it sends to; unknown of kernel devices
	MTU       int            `json:"mtu,omitempty"`       // bytes of payload a packet, if known
	Way       string         `json:"way,omitempty"`       // of what it sends: "shm", shared memory, or "net"; if known
	SQPSN     uint32         `json:"sq_psn"`              // next packet sequence number to be sent, 24 bits
	RQPSN     uint32         `json:"rq_psn"`              // and to be expected
	PID       int            `json:"pid,omitempty"`       // its owner, if that is another process than the
	Process   string         `json:"process,omitempty"`   // device's: on kernel devices
	Requester *Requester     `json:"requester,omitempty"` // of soft devices
	Counters  Counters       `json:"counters,omitempty"`  // its part of the port's; none on rdma_rxe
}

// Requester is the present state of a queue pair's sending side.
type Requester struct {
	Outstanding int `json:"outstanding"` // work requests that are not completed
	// InFlight and Window are bytes, and 256 more for each packet, of which
	// there may be Window in flight until the peer acknowledges some. READs
	// count with the bytes that they ask for.
	InFlight int `json:"in_flight_bytes"`
	Window   int `json:"window_bytes"` // 0 of datagrams, which have no acknowledgement
	// PathWindow bounds the bytes that all queue pairs to the peer have in
	// flight together; it follows the delay. 0: not known.
	PathWindow int `json:"path_window_bytes"`
	// RTT is the smoothed round trip, RTTVariance its mean deviation (RFC
	// 6298). BaseRTT is the least of the path, without a queue. 0: not measured
	// yet.
	RTT         time.Duration `json:"rtt_ns"`
	RTTVariance time.Duration `json:"rtt_variance_ns"`
	BaseRTT     time.Duration `json:"base_rtt_ns"`
	RTO         time.Duration `json:"rto_ns"` // silence after which a packet is sent again
	// MTU is the length of a long message's packets: the path MTU, or a private
	// one between two soft devices. 0 of datagrams.
	MTU int `json:"mtu_bytes"`
}

// Counters are counts that only grow, by name. A name that is not there is not
// counted by that device, which is not the same as zero.
type Counters map[string]uint64

// Summary adds up counters that belong together. A sum that the device does not
// count is zero; Known tells.
type Summary struct {
	SentPackets, SentBytes         uint64 // bytes are payload; repeated packets included
	ReceivedPackets, ReceivedBytes uint64
	// Of these bytes, those that went through memory shared with another device
	// of the host.
	SharedSentBytes, SharedReceivedBytes uint64
	Messages                             uint64 // completed: requests sent, and receives consumed
	Retransmitted                        uint64 // packets; where those are not counted, times that the requester went back
	Timeouts                             uint64
	NAKsSent, NAKsReceived               uint64 // of all kinds but RNR
	RNRSent, RNRReceived                 uint64 // receiver not ready
	Drops                                uint64 // packets dropped, for all causes
}

// String lists the counters that are not zero, as fmt prints a map.
func (c Counters) String() string {
	m := maps.Clone(map[string]uint64(c))
	maps.DeleteFunc(m, func(_ string, n uint64) bool { return n == 0 })
	return fmt.Sprint(m)
}

// Summarize adds up.
func (c Counters) Summarize() Summary {
	s := Summary{
		SentPackets: c["sent_pkts"], SentBytes: c["sent_bytes"],
		ReceivedPackets: c["rcvd_pkts"], ReceivedBytes: c["rcvd_bytes"],
		SharedSentBytes: c["shm_sent_bytes"], SharedReceivedBytes: c["shm_rcvd_bytes"],
		Timeouts: c["retransmit_timeouts"],
		RNRSent:  c["send_rnr_err"], RNRReceived: c["rcvd_rnr_err"],
	}
	for name, n := range c {
		switch k := Lookup(name); k.Family {
		case familyMessages:
			s.Messages += n
		case familyNAKsSent:
			s.NAKsSent += n
		case familyNAKsReceived:
			if name != "rcvd_seq_err" || !c.Known("nak_seq_rcvd") {
				s.NAKsReceived += n
			}
		case familyDrops:
			s.Drops += n
		}
	}
	var ok bool
	if s.Retransmitted, ok = c["retransmitted_pkts"]; !ok {
		s.Retransmitted = c["completer_retry_err"]
	}
	return s
}

// Known reports whether there is one of the counters.
func (c Counters) Known(names ...string) bool {
	for _, n := range names {
		if _, ok := c[n]; ok {
			return true
		}
	}
	return false
}

// Drops are the counters of dropped packets that are not zero, by cause:
// "icrc", "qpn", "no_receive" …
func (c Counters) Drops() map[string]uint64 {
	m := map[string]uint64{}
	for name, n := range c {
		if k := Lookup(name); k.Family == familyDrops && n > 0 {
			m[k.Value] += n
		}
	}
	return m
}

// Since returns the counts since an earlier reading. A counter that went down,
// because the device is another of the same name, counts from zero.
func (c Counters) Since(earlier Counters) Counters {
	if c == nil {
		return nil
	}
	d := make(Counters, len(c))
	for name, n := range c {
		if before := earlier[name]; before <= n {
			n -= before
		}
		d[name] = n
	}
	return d
}
