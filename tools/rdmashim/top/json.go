package top

import (
	"encoding/json"
	"io"
	"time"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// The keys of a frame's JSON are stable: those of a reading, and rates.
type (
	frameJSON struct {
		Time    time.Time    `json:"time"`
		Devices []deviceJSON `json:"devices"`

		Silent []*stats.SilentError `json:"silent,omitempty"`
	}
	deviceJSON struct {
		stats.Device
		Seconds    float64    `json:"interval_seconds"`
		Ports      []portJSON `json:"ports"`
		QueuePairs []pairJSON `json:"queue_pairs"`
	}
	portJSON struct {
		stats.Port
		Rates Rates `json:"rates"`
	}
	pairJSON struct {
		stats.QueuePair
		Rates Rates `json:"rates"`
	}
)

// JSON writes the frame as one line.
func (f *Frame) JSON(w io.Writer) error {
	out := frameJSON{Time: f.Time, Devices: make([]deviceJSON, len(f.Devices)), Silent: f.Silent}
	for i, d := range f.Devices {
		o := deviceJSON{Device: d.Device, Seconds: d.Seconds, Ports: make([]portJSON, len(d.Ports)), QueuePairs: make([]pairJSON, len(d.Pairs))}
		for j, p := range d.Ports {
			o.Ports[j] = portJSON{p.Port, notNil(p.Rates)}
		}
		for j, q := range d.Pairs {
			o.QueuePairs[j] = pairJSON{q.QueuePair, notNil(q.Rates)}
		}
		out.Devices[i] = o
	}
	return json.NewEncoder(w).Encode(out)
}

func notNil(r Rates) Rates {
	if r == nil {
		return Rates{}
	}
	return r
}
