package top

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Frame is the devices' work between two readings. The keys of its JSON are
// stable: those of a reading, and rates.
type Frame struct {
	Time    time.Time `json:"time"` // of the later one
	Devices []Device  `json:"devices"`
	// Silent are processes whose devices are missing, because they did not
	// answer.
	Silent []*stats.SilentError `json:"silent,omitempty"`
}

// Device is a device's reading with rates.
type Device struct {
	stats.Device
	// Seconds are those since the reading before; 0: there is none, and no
	// rates.
	Seconds float64 `json:"interval_seconds"`
	Ports   []Port  `json:"ports"`
	Pairs   []Pair  `json:"queue_pairs"`
}

// Port is a port's reading with rates.
type Port struct {
	stats.Port
	Rates Rates          `json:"rates"`
	moved stats.Counters // since the reading before; nil if there is none
}

// Pair is a queue pair's reading with rates.
type Pair struct {
	stats.QueuePair
	Rates Rates `json:"rates"`
	moved stats.Counters
}

// Rates are counts a second, by the counter's name; counters that did not move
// are left out. A queue pair of a kernel device has "sq_psn" and "rq_psn"
// instead, which its packets move on.
type Rates map[string]float64

// MarshalJSON writes an object, also where there are no rates yet.
func (r Rates) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]float64(r))
}

// identity holds the constant facts of a device. Names are a process's own, so
// that another process's soft0 is another.
type identity struct {
	pid          int
	name, device string
}

// frame compares two readings. Devices and queue pairs that are only in the
// later one have no rates yet.
func frame(before, now []stats.Device, at time.Time) Frame {
	old := make(map[identity]*stats.Device, len(before))
	for i, d := range before {
		old[identity{d.PID, d.Name, d.Device}] = &before[i]
	}
	f := Frame{Time: at, Devices: make([]Device, len(now))}
	for i, d := range now {
		f.Devices[i] = compare(old[identity{d.PID, d.Name, d.Device}], &d)
	}
	return f
}

func compare(old, now *stats.Device) Device {
	d := Device{Device: *now, Ports: make([]Port, len(now.Ports)), Pairs: make([]Pair, len(now.QueuePairs))}
	if old != nil {
		d.Seconds = max(now.Time.Sub(old.Time).Seconds(), 0)
	}
	for i, p := range now.Ports {
		d.Ports[i] = Port{Port: p}
		if d.Seconds > 0 {
			if j := slices.IndexFunc(old.Ports, func(o stats.Port) bool { return o.Port == p.Port }); j >= 0 {
				d.Ports[i].moved = p.Counters.Since(old.Ports[j].Counters)
				d.Ports[i].Rates = rates(d.Ports[i].moved, d.Seconds)
			}
		}
	}
	pairs := map[uint32]*stats.QueuePair{}
	if d.Seconds > 0 {
		for i := range old.QueuePairs {
			pairs[old.QueuePairs[i].QPN] = &old.QueuePairs[i]
		}
	}
	for i, q := range now.QueuePairs {
		d.Pairs[i] = Pair{QueuePair: q}
		if o := pairs[q.QPN]; o != nil {
			d.Pairs[i].moved = q.Counters.Since(o.Counters)
			d.Pairs[i].Rates = pairRates(o, &d.Pairs[i], d.Seconds)
		}
	}
	slices.SortStableFunc(d.Pairs, func(a, b Pair) int { return cmp.Compare(b.busy(), a.busy()) })
	return d
}

func rates(moved stats.Counters, seconds float64) Rates {
	r := Rates{}
	for name, n := range moved {
		if n > 0 {
			r[name] = float64(n) / seconds
		}
	}
	return r
}

func pairRates(old *stats.QueuePair, now *Pair, seconds float64) Rates {
	if now.Counters != nil {
		return rates(now.moved, seconds)
	}
	return rates(stats.Counters{
		"sq_psn": uint64(distance(old.SQPSN, now.SQPSN)), "rq_psn": uint64(distance(old.RQPSN, now.RQPSN)),
	}, seconds)
}

// distance is how far a PSN went. More than half way round it went back, or was
// set anew.
func distance(old, now uint32) uint32 {
	if n := (now - old) & (1<<24 - 1); n < 1<<23 {
		return n
	}
	return 0
}

// busy orders queue pairs: by packets, in either direction.
func (p *Pair) busy() float64 {
	return p.Rates["sent_pkts"] + p.Rates["rcvd_pkts"] + p.Rates["sq_psn"] + p.Rates["rq_psn"]
}
