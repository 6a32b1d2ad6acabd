package uapitest

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/uapi"
)

// T holds the methods that this package needs of a test: *testing.T, *testing.B
// and *testing.F have them.
type T interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// networks numbers the in-memory networks, so that each pair has its own.
var networks atomic.Uint64

// Pair opens two devices on a private network and returns them.
// options are those of a device name, for both: "loss=1%&seed=7", "mtu=256", or
// "" for none. Each device decides on the faults of the packets that it sends;
// equal seeds make equal decisions on both. A rule (fault=) that hits nothing
// of either is an error at the end of the test.
//
// The devices' warnings go to t.Log, among them that of a message that waits
// for a receive of the peer's. At the end of the test it closes the devices
// and reports leaks as errors: open handles, goroutines, devices that still
// run. A device that the test closed itself is only checked for the last two.
func Pair(t T, options string) (a, b *uapi.Device) {
	t.Helper()
	network := fmt.Sprintf("uapitest-%d", networks.Add(1))
	a, b = open(t, network, options), open(t, network, options)
	t.Cleanup(func() {
		t.Helper()
		for _, rule := range idleRules(a, b) {
			t.Errorf("uapitest: %s is 0: a rule of %q never hit anything", rule, options)
		}
	})
	return a, b
}

// idleRules returns the counters of the rules of faults that hit nothing of
// either device. Of devices that the test has closed nothing is known.
func idleRules(a, b *uapi.Device) (idle []string) {
	x, errX := a.Counters()
	y, errY := b.Counters()
	if errX != nil || errY != nil {
		return nil
	}
	for name, n := range x {
		if (strings.HasPrefix(name, "fault_rule_") || strings.HasPrefix(name, "fault_call_")) && n+y[name] == 0 {
			idle = append(idle, name)
		}
	}
	return idle
}

func open(t T, network, options string) *uapi.Device {
	t.Helper()
	device := "sim?net=" + network
	if options = strings.TrimPrefix(options, "?"); options != "" {
		device += "&" + options
	}
	w := watch{fmt.Sprint(watches.Add(1))}
	var d *uapi.Device
	var err error
	log := &testLog{t: t}
	w.run(func() {
		d, err = uapi.Open(device, uapi.OpenConfig{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	})
	if err != nil {
		t.Fatalf("uapitest: %v", err)
	}
	info, err := d.QueryDevice()
	if err != nil {
		t.Fatalf("uapitest: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		for _, handle := range d.OpenHandles() {
			t.Errorf("uapitest: %s was not destroyed: %s", info.Device, handle)
		}
		if err := d.Close(); err != nil {
			t.Errorf("uapitest: %v", err)
		}
		log.end()
		if stacks := w.left(); stacks != "" {
			t.Errorf("uapitest: goroutines of %s do not end:\n%s", info.Device, stacks)
		}
		if running(info) {
			t.Errorf("uapitest: %s still runs: another Device of it is open", info.Device)
		}
	})
	return d
}

// testLog writes to a test's log until the test ends, after which that panics.
type testLog struct {
	t     T
	mu    sync.Mutex
	ended bool // guarded by mu
}

func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.t.Logf("uapitest: %s", bytes.TrimSpace(line))
	}
	return len(line), nil
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// running reports whether this process still has the device.
func running(info uapi.DeviceInfo) bool {
	list, err := uapi.Devices()
	if err != nil {
		return false
	}
	for _, d := range list {
		if d.Open && d.Device == info.Device {
			return true
		}
	}
	return false
}
