package perf

import (
	"math"
	"runtime"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is the result of a run of one size. Its JSON keys are stable.
type Result struct {
	Bytes      int     `json:"bytes"`
	Iterations int     `json:"iterations"` // messages measured, of all queue pairs and both directions
	Seconds    float64 `json:"seconds"`
	*Bandwidth
	*Latency
	// ClientCPU and ServerCPU are processor time from when both sides were
	// ready until the run was over, so that the warm-up is in both of them.
	ClientCPU float64 `json:"client_cpu_seconds"`
	ServerCPU float64 `json:"server_cpu_seconds"`
	// AllocsPerOp is how many objects this process allocated for a message.
	AllocsPerOp float64 `json:"allocs_per_op"`
	// SwitchesPerOp is about how often a goroutine of this process was given a
	// processor after it had waited, for a message; -1 where the runtime does
	// not tell.
	SwitchesPerOp float64 `json:"goroutine_switches_per_op"`
	Checked       bool    `json:"checked"`
	// Unfinished is how many messages of a run with a duration had not
	// completed when it ended nevertheless: no other run can follow.
	Unfinished int `json:"unfinished,omitempty"`

	Total     int  `json:"-"` // messages done, warm-up included
	Unchecked bool `json:"-"` // the run was cut short: its data cannot be checked
}

// Bandwidth is the part of a Result that perftest's bandwidth tests print.
type Bandwidth struct {
	Peak    float64 `json:"bw_peak_mib_per_second"` // of the best sixteenth; 0 with a duration
	Average float64 `json:"bw_average_mib_per_second"`
	MsgRate float64 `json:"msg_rate_mpps"` // millions of messages a second
	Goodput float64 `json:"goodput_bytes_per_second"`
}

// Latency is the part of a Result that perftest's latency tests print, in µs.
type Latency struct {
	Min     float64 `json:"t_min_us"`
	Max     float64 `json:"t_max_us"`
	Typical float64 `json:"t_typical_us"` // the median
	Avg     float64 `json:"t_avg_us"`
	Stdev   float64 `json:"t_stdev_us"`
	P99     float64 `json:"t_99_us"`
	P999    float64 `json:"t_99_9_us"`
}

const mib = 1 << 20

func newBandwidth(r Result, best float64) *Bandwidth {
	rate := float64(r.Iterations) / max(r.Seconds, 1e-9)
	return &Bandwidth{
		Peak: best * float64(r.Bytes) / mib, Average: rate * float64(r.Bytes) / mib,
		MsgRate: rate / 1e6, Goodput: rate * float64(r.Bytes),
	}
}

func newLatency(h *hdrhistogram.Histogram) *Latency {
	us := func(ns float64) float64 { return ns / 1e3 }
	at := func(p float64) float64 { return us(float64(h.ValueAtPercentile(p))) }
	return &Latency{
		Min: us(float64(h.Min())), Max: us(float64(h.Max())), Typical: at(50),
		Avg: us(h.Mean()), Stdev: us(h.StdDev()), P99: at(99), P999: at(99.9),
	}
}

// Add adds what the other side moved at the same time.
func (r *Result) Add(o Result) {
	r.Iterations += o.Iterations
	r.Seconds = max(r.Seconds, o.Seconds)
	r.Unfinished += o.Unfinished
	if r.Bandwidth != nil && o.Bandwidth != nil {
		r.Peak += o.Peak
		r.Average += o.Average
		r.MsgRate += o.MsgRate
		r.Goodput += o.Goodput
	}
}

// usage is the process's usage when the messages that count began.
type usage struct {
	mallocs  uint64
	switches float64
}

func startUsage() usage {
	var m runtime.MemStats
	switches() // its first call makes what the others use
	runtime.ReadMemStats(&m)
	return usage{m.Mallocs, switches()}
}

func (u usage) end(r *Result) {
	n := float64(max(r.Iterations, 1))
	if r.SwitchesPerOp = (switches() - u.switches) / n; math.IsNaN(r.SwitchesPerOp) {
		r.SwitchesPerOp = -1
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.AllocsPerOp = float64(m.Mallocs-u.mallocs) / n
}
