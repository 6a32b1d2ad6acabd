package stats

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WritePrometheus writes readings in Prometheus' text format, version 0.0.4: a
// program that serves HTTP can answer /metrics with it. Counters are named
// rdmashim_port_NAME_total and rdmashim_qp_NAME_total, with the labels device,
// kind, address, pid, process and port, and lqpn of queue pairs; a requester's
// present state is rdmashim_qp_outstanding, _in_flight_bytes, _window_bytes,
// _path_window_bytes, _rtt_seconds, _rtt_variance_seconds, _base_rtt_seconds
// and _rto_seconds. States are rdmashim_port_info and rdmashim_qp_info, whose
// value is 1.
func WritePrometheus(w io.Writer, devices []Device) error {
	e := exposition{families: map[string]*family{}}
	for i := range devices {
		e.device(&devices[i])
	}
	_, err := w.Write(e.text())
	return err
}

// exposition collects samples by family: those of a family must stand together.
type exposition struct{ families map[string]*family }

type family struct {
	typ, help string
	samples   []sample
}

type sample struct{ labels, value string }

// labels are NAME="VALUE" pairs.
type labels []string

func (l labels) with(name, value string) labels {
	return append(l[:len(l):len(l)], name+`="`+escape.Replace(strings.ToValidUTF8(value, "\uFFFD"))+`"`)
}

// optional is with, unless the value is empty: such a label is as good as none.
func (l labels) optional(name, value string) labels {
	if value == "" {
		return l
	}
	return l.with(name, value)
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (e *exposition) add(name, typ, help string, l labels, value string) {
	f := e.families[name]
	if f == nil {
		f = &family{typ: typ, help: help}
		e.families[name] = f
	}
	f.samples = append(f.samples, sample{strings.Join(l, ","), value})
}

func (e *exposition) device(d *Device) {
	l := labels{}.with("device", d.Name).with("kind", d.Kind).optional("netdev", d.NetDev)
	if d.Address.IsValid() {
		l = l.with("address", d.Address.String())
	}
	if d.PID != 0 {
		l = l.with("pid", strconv.Itoa(d.PID)).optional("process", d.Process)
	}
	for i := range d.Ports {
		p := &d.Ports[i]
		l := l.with("port", strconv.Itoa(p.Port))
		e.add("rdmashim_port_info", "gauge", "A port and its state.", l.with("state", p.State), "1")
		e.counters("rdmashim_port_", l, p.Counters)
	}
	for i := range d.QueuePairs {
		e.queuePair(l, &d.QueuePairs[i])
	}
}

func (e *exposition) queuePair(l labels, q *QueuePair) {
	l = l.with("lqpn", strconv.FormatUint(uint64(q.QPN), 10))
	info := l.with("type", q.Type).with("state", q.State)
	if q.RemoteQPN != 0 {
		info = info.with("rqpn", strconv.FormatUint(uint64(q.RemoteQPN), 10))
	}
	if q.Peer.IsValid() {
		info = info.with("peer", q.Peer.String())
	}
	if q.PID != 0 {
		info = info.with("owner_pid", strconv.Itoa(q.PID))
	}
	e.add("rdmashim_qp_info", "gauge", "A queue pair, its state and its peer.", info.optional("owner_process", q.Process), "1")
	e.counters("rdmashim_qp_", l, q.Counters)
	r := q.Requester
	if r == nil {
		return
	}
	whole := func(name, help string, v int) {
		e.add("rdmashim_qp_"+name, "gauge", help, l, strconv.Itoa(v))
	}
	whole("outstanding", "Work requests of a queue pair that are not completed.", r.Outstanding)
	whole("in_flight_bytes", "Bytes sent and not acknowledged, and 256 for each packet.", r.InFlight)
	whole("window_bytes", "Bytes that may be in flight.", r.Window)
	whole("path_window_bytes", "Bytes that all queue pairs to the peer may have in flight.", r.PathWindow)
	whole("mtu_bytes", "Payload of a long message's packets.", r.MTU)
	if r.RTT != 0 {
		e.add("rdmashim_qp_rtt_seconds", "gauge", "Smoothed round trip.", l, seconds(int64(r.RTT)))
		e.add("rdmashim_qp_rtt_variance_seconds", "gauge", "Mean deviation of the round trip.", l, seconds(int64(r.RTTVariance)))
	}
	if r.BaseRTT != 0 {
		e.add("rdmashim_qp_base_rtt_seconds", "gauge", "Least round trip of the path, without a queue.", l, seconds(int64(r.BaseRTT)))
	}
	if r.RTO != 0 {
		e.add("rdmashim_qp_rto_seconds", "gauge", "Silence after which a packet is sent again.", l, seconds(int64(r.RTO)))
	}
}

func seconds(ns int64) string { return strconv.FormatFloat(float64(ns)/1e9, 'g', -1, 64) }

func (e *exposition) counters(prefix string, l labels, c Counters) {
	for name, n := range c {
		if name == "rcvd_seq_err" && c.Known("nak_seq_rcvd") {
			continue // the same under rdma_rxe's name
		}
		k := Lookup(name)
		l := l
		if k.Label != "" {
			l = l.with(k.Label, k.Value)
		}
		e.add(prefix+metricName(k.Family)+"_total", "counter", k.Help, l, strconv.FormatUint(n, 10))
	}
}

// metricName keeps the characters that a metric's name may have; drivers' names
// of counters have no others.
func metricName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}

// text writes families by name and samples by label.
func (e *exposition) text() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(e.families)) {
		f := e.families[name]
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, f.help, name, f.typ)
		slices.SortFunc(f.samples, func(a, b sample) int { return cmp.Compare(a.labels, b.labels) })
		for i, s := range f.samples {
			if i > 0 && f.samples[i-1].labels == s.labels {
				continue // two readings of one device
			}
			fmt.Fprintf(&b, "%s{%s} %s\n", name, s.labels, s.value)
		}
	}
	return b.Bytes()
}
