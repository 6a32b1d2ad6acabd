package uapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// DeviceStats is a reading of a device: port counters and queue pairs. Package stats says what each counter counts,
// adds them up (Counters.Summarize) and writes them for Prometheus (WritePrometheus).
type DeviceStats = stats.Device

// Stats reads the device: its ports' counters and its queue pairs, with the counters, window and round trip of each.
// Of a soft device these are all queue pairs, whatever context they are of; of a kernel device they are the context's
// own, and rdma_rxe counts nothing for one. It disturbs the device for as long as it takes to copy some 500 bytes for
// each queue pair.
func (c *Context) Stats() (DeviceStats, error) {
	d, err := c.stats()
	if err != nil {
		return DeviceStats{}, opError("Stats", "", c.ended(err, &c.closed, ""))
	}
	return d, nil
}

// AllStats reads all devices that this process has open, soft and kernel devices, each once. A device that cannot be
// read is left out.
func AllStats() []DeviceStats {
	list := []DeviceStats{}
	for _, s := range devices.list() {
		if s.stats != nil {
			list = append(list, s.reading())
		}
	}
	for _, c := range opened.ofHosts() {
		if d, err := c.stats(); err == nil {
			list = mergeReading(list, d)
		}
	}
	return list
}

// mergeReading adds the reading of a kernel device, of which every context knows its own queue pairs.
func mergeReading(list []DeviceStats, d DeviceStats) []DeviceStats {
	i := slices.IndexFunc(list, func(o DeviceStats) bool { return o.Kind == d.Kind && o.Name == d.Name })
	if i < 0 {
		return append(list, d)
	}
	list[i].QueuePairs = append(list[i].QueuePairs, d.QueuePairs...)
	return list
}

// StatsVar is AllStats as a variable of package expvar, which this package does not import, because whoever does
// serves /debug/vars:
//
//	expvar.Publish("rdmashim", uapi.StatsVar{})
type StatsVar struct{}

// String is AllStats as JSON.
func (StatsVar) String() string {
	text, err := json.Marshal(AllStats())
	if err != nil {
		return "null"
	}
	return string(text)
}

// stats reads the context's device.
func (c *Context) stats() (DeviceStats, error) {
	if c.closed.Load() {
		return DeviceStats{}, errContextClosed
	}
	if c.station.stats != nil {
		return c.station.reading(), nil
	}
	return c.hostReading()
}

// reading reads a soft device.
func (s *station) reading() DeviceStats {
	d := DeviceStats{
		Name: s.name, Device: s.device(), Kind: string(s.spec.kind), NetDev: s.netDev, Address: s.addr,
		PID: os.Getpid(), Process: processName(),
		Time: time.Now(),
	}
	port := stats.Port{Port: 1, MTU: s.mtu}
	port.State, port.Counters, d.QueuePairs = s.stats()
	d.Ports = []stats.Port{port}
	return d
}

func processName() string { return filepath.Base(os.Args[0]) }

// hostReading reads a kernel device as far as a context can.
func (c *Context) hostReading() (DeviceStats, error) {
	info, err := c.queryDevice()
	if err != nil {
		return DeviceStats{}, err
	}
	list, err := c.verbs.Counters()
	if err != nil {
		return DeviceStats{}, err
	}
	d := DeviceStats{
		Name: info.Name, Device: info.Device, Kind: info.Kind, NetDev: info.NetDev, Address: info.Address,
		Time: time.Now(), QueuePairs: []stats.QueuePair{},
	}
	d.Ports = []stats.Port{{Port: info.Port, State: info.PortState, MTU: info.MTU, Counters: counters(list).Map()}}
	c.mu.Lock()
	pairs := make([]*queuePair, 0, len(c.pairs))
	for _, q := range c.pairs {
		pairs = append(pairs, q)
	}
	c.mu.Unlock()
	for _, q := range pairs {
		if r, ok := q.hostReading(); ok {
			d.QueuePairs = append(d.QueuePairs, r)
		}
	}
	slices.SortFunc(d.QueuePairs, func(a, b stats.QueuePair) int { return int(a.QPN) - int(b.QPN) })
	return d, nil
}

// hostReading reads a queue pair of a kernel device; false if it has gone.
func (q *queuePair) hostReading() (stats.QueuePair, bool) {
	attr, err := q.verbs.Query()
	if err != nil {
		return stats.QueuePair{}, false
	}
	r := stats.QueuePair{
		QPN: uint32(q.num), Type: q.config.Type.String(), State: attr.State.String(),
		SQPSN: attr.SQPSN, RQPSN: attr.RQPSN,
		PID: os.Getpid(), Process: processName(),
	}
	if q.config.Type != TypeUD && attr.State != abi.QPSReset && attr.State != abi.QPSInit {
		r.RemoteQPN, r.MTU = attr.DestQPNum, attr.PathMTU.Bytes()
		q.modify.Lock()
		r.Peer = q.remote.Addr
		q.modify.Unlock()
	}
	return r, true
}
