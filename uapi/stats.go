package uapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// DeviceStats is a reading of a device: port counters and queue pairs. Package
// stats says what each counter counts, adds them up (Counters.Summarize) and
// writes them for Prometheus (WritePrometheus).
type DeviceStats = stats.Device

// Counters are a device's counters by name.
type Counters = stats.Counters

// Counters reads the device's counters: packets, bytes, retransmissions, NAKs
// by kind, duplicates, drops by cause, faults injected. All that opened the
// device count together. A device that counts nothing has none.
func (d *Device) Counters() (Counters, error) {
	m, err := d.verbs.Counters()
	return m, opError("Counters", "", d.ended(err, &d.closed, ""))
}

// Stats reads the device: its ports' counters and its queue pairs, with the
// counters, window and round trip of each. Of a soft device these are all queue
// pairs of all that opened it; of a kernel device they are the Device's own,
// and rdma_rxe counts nothing for one. It disturbs the device for as long as it
// takes to copy some 500 bytes for each queue pair.
func (d *Device) Stats() (DeviceStats, error) {
	s, err := d.stats()
	if err != nil {
		return DeviceStats{}, opError("Stats", "", d.ended(err, &d.closed, ""))
	}
	return s, nil
}

// AllStats reads all devices that this process has open, soft and kernel
// devices, each once. A device that cannot be read is left out.
//
// Of a kernel device every Device knows its own queue pairs.
func AllStats() []DeviceStats {
	list := []DeviceStats{}
	for _, d := range opened.all() {
		i := slices.IndexFunc(list, func(s DeviceStats) bool { return s.Device == d.where.OpenName() && s.Name == d.where.Name })
		host := d.where.Spec.Kind == device.Host
		if i >= 0 && !host {
			continue
		}
		s, err := d.stats()
		switch {
		case err != nil:
		case i >= 0:
			list[i].QueuePairs = append(list[i].QueuePairs, s.QueuePairs...)
		default:
			list = append(list, s)
		}
	}
	return list
}

// StatsVar is AllStats as a variable of package expvar, which this package does
// not import, because that import serves /debug/vars:
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

// stats reads the device through its kernel.
func (d *Device) stats() (DeviceStats, error) {
	info, err := d.queryDevice()
	if err != nil {
		return DeviceStats{}, err
	}
	counters, err := d.verbs.Counters()
	if err != nil {
		return DeviceStats{}, err
	}
	s := DeviceStats{
		Name: info.Name, Device: info.Device, Kind: string(info.Kind), NetDev: info.NetDev, Address: info.Address,
		Time:  time.Now(),
		Ports: []stats.Port{{Port: info.Port, State: string(info.PortState), MTU: info.MTU, Counters: counters}},
	}
	if d.where.Spec.Kind != device.Host {
		s.PID, s.Process = os.Getpid(), processName()
	}
	s.QueuePairs, err = d.pairStats()
	return s, err
}

func processName() string { return filepath.Base(os.Args[0]) }

// pairStats reads the device's queue pairs, or the Device's own where the
// kernel does not show the device's.
func (d *Device) pairStats() ([]stats.QueuePair, error) {
	list := []stats.QueuePair{}
	lines, err := d.verbs.QueuePairs()
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EOPNOTSUPP) {
		return d.ownPairStats(), nil
	}
	for _, line := range lines {
		q, err := parsePairStats(line)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, err
}

func parsePairStats(line string) (q stats.QueuePair, err error) {
	if err = json.Unmarshal([]byte(line), &q); err != nil {
		err = fmt.Errorf("the kernel's reading of a queue pair: %w", err)
	}
	return q, err
}

// waiting says of a queue pair at which a wait has ended in vain what its
// device knows: a program that forgot to connect, or whose peer forgot to post
// receives, finds it there.
func (q *queuePair) waiting() string {
	var s stats.QueuePair
	line, err := q.device.verbs.QueuePair(uint32(q.num))
	if err == nil {
		s, err = parsePairStats(line)
	}
	if err != nil { // Linux shows none
		known := false
		if s, known = q.stats(); !known {
			return "the queue pair is gone"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the queue pair is in state %s", s.State)
	if s.RemoteQPN != 0 {
		fmt.Fprintf(&b, ", its peer qp %d at %v", s.RemoteQPN, s.Peer)
	}
	if s.Requester != nil {
		fmt.Fprintf(&b, ", %d sends outstanding", s.Requester.Outstanding)
	}
	for _, count := range []struct{ name, text string }{
		{"rcvd_rnr_err", "the peer had no receive posted, %d times"},
		{"send_rnr_err", "a message of the peer's found no receive, %d times"},
		{"retransmit_timeouts", "the peer was silent for a timeout, %d times"},
	} {
		if n := s.Counters[count.name]; n > 0 {
			fmt.Fprintf(&b, "; "+count.text, n)
		}
	}
	return b.String()
}

func (d *Device) ownPairStats() []stats.QueuePair {
	d.mu.Lock()
	pairs := slices.Collect(maps.Values(d.pairs))
	d.mu.Unlock()
	list := []stats.QueuePair{}
	for _, q := range pairs {
		if s, ok := q.stats(); ok {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b stats.QueuePair) int { return int(a.QPN) - int(b.QPN) })
	return list
}

// stats asks the kernel for the queue pair's state; false if it has gone.
func (q *queuePair) stats() (stats.QueuePair, bool) {
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
