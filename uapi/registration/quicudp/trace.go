package quicudp

import (
	"context"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"github.com/rdmashim/rdmashim/uapi/registration"
)

// trace counts the events of a connection, which quic-go records for qlog
// (draft-ietf-quic-qlog-quic-events).
type trace struct {
	mu       sync.Mutex
	counters registration.Counters   // guarded by mu, as are the others
	rtt      time.Duration           // the last sample
	sent     map[quic.StreamID]int64 // how far each stream's data was sent
}

func newTrace(context.Context, bool, quic.ConnectionID) qlogwriter.Trace {
	t := &trace{sent: map[quic.StreamID]int64{}}
	t.counters.Add(registration.Counters{}) // makes the maps
	return t
}

// AddProducer gives what records: the trace itself.
func (t *trace) AddProducer() qlogwriter.Recorder { return t }

// SupportsSchemas is true: events of schemas that are not known count nothing.
func (t *trace) SupportsSchemas(string) bool { return true }

// Close leaves the counters.
func (t *trace) Close() error { return nil }

// RecordEvent counts an event.
func (t *trace) RecordEvent(event qlogwriter.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.counters
	switch e := event.(type) {
	case qlog.PacketSent:
		t.count(c.FramesSent, e.Frames)
		t.repeated(e.Frames)
		if e.IsMTUProbePacket {
			c.MTUProbes++
		}
	case qlog.PacketReceived:
		t.count(c.FramesReceived, e.Frames)
	case qlog.PacketLost:
		if !e.IsMTUProbePacket {
			c.Lost++
		}
	case qlog.TimerUpdated:
		if e.Type == qlog.TimerEventTypeSet {
			c.TimersArmed[timerKind(e.TimerType)]++
		}
	case qlog.MetricsUpdated:
		if e.LatestRTT != t.rtt { // events repeat what stays
			t.rtt = e.LatestRTT
			c.RTTSamples["ACK"]++
		}
	case qlog.CongestionStateUpdated:
		if e.State == qlog.CongestionStateRecovery {
			c.CongestionEvents++
		}
	}
}

func (t *trace) count(by map[string]uint64, frames []qlog.Frame) {
	for _, f := range frames {
		by[frameName(f.Frame)]++
	}
}

// repeated counts the frames that bring data which was sent before.
func (t *trace) repeated(frames []qlog.Frame) {
	for _, f := range frames {
		s, ok := f.Frame.(*qlog.StreamFrame)
		if !ok {
			continue
		}
		if s.Offset < t.sent[s.StreamID] {
			t.counters.Retransmitted++
		}
		t.sent[s.StreamID] = max(t.sent[s.StreamID], s.Offset+s.Length)
	}
}

// timerKind is the kind of a timer in the words of RFC 9002: loss is the timer
// after which a packet counts as lost, pto that of a probe.
func timerKind(t qlog.TimerType) string {
	if t == qlog.TimerTypeACK {
		return "loss"
	}
	return string(t)
}

// frameNames are the names of frames by their Go types.
var frameNames sync.Map

var humps = regexp.MustCompile("([a-z])([A-Z])")

// frameName is the name of RFC 9000, which quic-go's types have, too:
// *MaxStreamDataFrame is a MAX_STREAM_DATA.
func frameName(frame any) string {
	t := reflect.TypeOf(frame)
	if name, ok := frameNames.Load(t); ok {
		return name.(string)
	}
	of := t
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	name := strings.ToUpper(humps.ReplaceAllString(strings.TrimSuffix(of.Name(), "Frame"), "${1}_${2}"))
	frameNames.Store(t, name)
	return name
}

// read copies the counters.
func (t *trace) read() (c registration.Counters) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Add(t.counters)
	return c
}
