package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// machine has a kernel with rxe0 and a process with soft0; each reading finds
// that both went on for two seconds.
type machine struct {
	kernel *netlinktest.Kernel
	soft   stats.Device
	errs   []error
}

var start = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)

func newMachine() *machine {
	k := netlinktest.New()
	k.LoadRXE()
	k.Files["proc/3215/comm"] = "worker\n"
	k.AddLink("rxe0", "eth0", true).Objects = netlinktest.Objects{
		QPs: []netlinkmgr.QP{
			{Port: new(uint32(1)), LQPN: 17, RQPN: new(uint32(18)), RQPSN: new(uint32(5)), SQPSN: 1<<24 - 10, Type: 2, State: 3, Owner: netlinkmgr.Owner{PID: 3215}},
			{LQPN: 1, Type: 1, State: 3, Owner: netlinkmgr.Owner{Kernel: true, Comm: "ib_core"}},
		},
		Counters: []netlinkmgr.Counter{{Name: "sent_pkts", Value: 100}, {Name: "rcvd_seq_err"}, {Name: "completer_retry_err"}, {Name: "send_rnr_err"}, {Name: "rdma_sends"}},
	}
	peer := netip.MustParseAddrPort("127.0.0.2:4791")
	return &machine{kernel: k, soft: stats.Device{
		Name: "soft0", Device: "soft:127.0.0.1", Kind: "soft", NetDev: "lo", Address: netip.MustParseAddrPort("127.0.0.1:4791"),
		PID: 4711, Process: "demo", Time: start,
		Ports: []stats.Port{{Port: 1, State: "ACTIVE", MTU: 4096, Counters: stats.Counters{
			"sent_bytes": 0, "sent_pkts": 0, "rcvd_bytes": 0, "rcvd_pkts": 0, "rdma_writes": 0, "retransmitted_pkts": 0, "retransmit_timeouts": 0,
			"shm_sent_pkts": 0, "shm_sent_bytes": 0, "shm_rcvd_pkts": 0, "shm_rcvd_bytes": 0,
			"nak_seq_rcvd": 0, "rcvd_seq_err": 0, "rcvd_rnr_err": 0, "drop_icrc": 0, "drop_qpn": 0, "drop_send": 0, "drop_send_unreach": 0, "fault_loss": 0,
		}}},
		QueuePairs: []stats.QueuePair{
			{QPN: 33, Type: "UD", State: "RTS", MTU: 4096, Way: "net", Requester: &stats.Requester{}, Counters: stats.Counters{"sent_pkts": 0}},
			{
				QPN: 34, Type: "RC", State: "RTS", RemoteQPN: 35, Peer: peer, MTU: 1024, Way: "shm",
				Requester: &stats.Requester{Outstanding: 3, InFlight: 40960, Window: 65536, RTT: 92400 * time.Nanosecond, RTO: 4 * time.Millisecond},
				Counters:  stats.Counters{"sent_pkts": 0, "sent_bytes": 0, "retransmitted_pkts": 0},
			},
		},
	}}
}

// goOn lets two seconds pass.
func (m *machine) goOn() {
	m.kernel.Lock()
	o := &m.kernel.Links[0].Objects
	o.QPs[0].SQPSN = (o.QPs[0].SQPSN + 30) & (1<<24 - 1)
	o.Counters[0].Value += 50
	o.Counters[1].Value += 2
	m.kernel.Unlock()

	d := m.soft
	d.Time = d.Time.Add(2 * time.Second)
	add := func(c stats.Counters, more stats.Counters) stats.Counters {
		sum := stats.Counters{}
		for name, n := range c {
			sum[name] = n + more[name]
		}
		return sum
	}
	d.Ports = []stats.Port{d.Ports[0]}
	d.Ports[0].Counters = add(d.Ports[0].Counters, stats.Counters{
		"sent_bytes": 2_500_000_000, "sent_pkts": 3000, "rcvd_bytes": 64, "rcvd_pkts": 999, "rdma_writes": 7, "retransmitted_pkts": 12, "retransmit_timeouts": 1,
		"shm_sent_pkts": 2000, "shm_sent_bytes": 2_000_000_000, "shm_rcvd_pkts": 500, "shm_rcvd_bytes": 32,
		"nak_seq_rcvd": 4, "rcvd_seq_err": 4, "rcvd_rnr_err": 2, "drop_icrc": 1, "drop_qpn": 10, "drop_send": 2, "drop_send_unreach": 2, "fault_loss": 20,
	})
	d.QueuePairs = append([]stats.QueuePair(nil), d.QueuePairs...)
	d.QueuePairs[1].Counters = add(d.QueuePairs[1].Counters, stats.Counters{"sent_pkts": 3000, "sent_bytes": 2_500_000_000, "retransmitted_pkts": 12})
	m.soft = d
}

func (m *machine) source() *Source {
	return &Source{
		Processes: func(_ context.Context, pids ...int) ([]stats.Device, []error) {
			if len(pids) > 0 && !slices.Contains(pids, m.soft.PID) {
				return nil, m.errs
			}
			return []stats.Device{m.soft}, m.errs
		},
		Kernel:    func() (*netlinkmgr.Manager, error) { return m.kernel.Manager(), nil },
		ProcessOf: func(thread int) int { return thread / 10 },
	}
}

func TestProcessOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		require.Equal(t, 7, processOf(7))
		return
	}
	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	require.Greater(t, len(threads), 1)
	for _, e := range threads {
		thread, err := strconv.Atoi(e.Name())
		require.NoError(t, err)
		require.Equal(t, os.Getpid(), processOf(thread))
	}
	require.Equal(t, 1<<30, processOf(1<<30), "there is no such")
}

// fixed gives fields that depend on the clock values that tests can know.
func fixed(list []stats.Device, at time.Time) []stats.Device {
	for i := range list {
		list[i].Time = at
	}
	return list
}

// twice reads before and after two seconds.
func (m *machine) twice(t *testing.T) Frame {
	t.Helper()
	s := m.source()
	before, _, err := s.Read(t.Context())
	require.NoError(t, err)
	m.goOn()
	now, _, err := s.Read(t.Context())
	require.NoError(t, err)
	return frame(fixed(before, start), fixed(now, start.Add(2*time.Second)), start.Add(2*time.Second))
}

func TestFrame(t *testing.T) {
	f := newMachine().twice(t)
	require.Len(t, f.Devices, 2)
	rxe, soft := f.Devices[0], f.Devices[1]
	require.Equal(t, "10.0.2.15:4791", rxe.Address.String())
	require.Equal(t, Rates{"sent_pkts": 25, "rcvd_seq_err": 1}, rxe.Ports[0].Rates)
	require.Equal(t, Rates{"sq_psn": 15}, rxe.Pairs[0].Rates, "also when the number wraps around")
	require.EqualValues(t, 17, rxe.Pairs[0].QPN)
	require.Equal(t, 1500.0, soft.Ports[0].Rates["sent_pkts"])
	require.Equal(t, 5.0, soft.Ports[0].Rates["drop_qpn"])
	require.EqualValues(t, 34, soft.Pairs[0].QPN, "the busiest goes first")
	require.Equal(t, 6.0, soft.Pairs[0].Rates["retransmitted_pkts"])

	clitest.Golden(t, "testdata/frame.txt", f.Text(0, 0))
	var b bytes.Buffer
	require.NoError(t, json.NewEncoder(&b).Encode(f))
	require.Equal(t, 1, strings.Count(b.String(), "\n"))
	var pretty bytes.Buffer
	require.NoError(t, json.Indent(&pretty, b.Bytes(), "", "  "))
	clitest.Golden(t, "testdata/frame.json", pretty.String())
}

// A new device or queue pair has no rates: its counts did not begin at the last
// reading.
func TestFrameOfWhatIsNew(t *testing.T) {
	m := newMachine()
	m.goOn()
	f := frame(nil, []stats.Device{m.soft}, start)
	require.Zero(t, f.Devices[0].Seconds)
	require.Empty(t, f.Devices[0].Ports[0].Rates)
	clitest.Golden(t, "testdata/new.txt", f.Text(0, 0))

	before := m.soft
	before.QueuePairs = before.QueuePairs[:1]
	m.goOn()
	again := m.soft
	f = frame([]stats.Device{before}, []stats.Device{again}, start)
	require.NotEmpty(t, f.Devices[0].Ports[0].Rates)
	for _, p := range f.Devices[0].Pairs {
		require.Empty(t, p.Rates)
	}
	again.PID++
	f = frame([]stats.Device{before}, []stats.Device{again}, start)
	require.Empty(t, f.Devices[0].Ports[0].Rates, "another process's soft0")
}

func TestTextFits(t *testing.T) {
	f := newMachine().twice(t)
	lines := strings.Split(strings.TrimSuffix(f.Text(40, 6), "\n"), "\n")
	require.Len(t, lines, 6)
	for _, l := range lines {
		require.LessOrEqual(t, len([]rune(l)), 40)
	}
	require.Equal(t, "… 5 lines more", lines[5])
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		-1: "0", 0: "0", 0.04: "0.0", 0.5: "0.5", 9.94: "9.9", 9.96: "10", 999.4: "999", 999.6: "1.0k",
		12_345: "12k", 999_600: "1.0M", 3.4e9: "3.4G", 1e12: "1.0T", 1e15: "1.0P", 5e18: "5000P",
	} {
		require.Equal(t, want, number(v))
	}
}

func TestTotals(t *testing.T) {
	m := newMachine()
	m.goOn()
	list, _, err := m.source().Read(t.Context())
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, Totals(&b, list, false))
	clitest.Golden(t, "testdata/totals.txt", b.String())
	b.Reset()
	require.NoError(t, Totals(&b, list, true))
	require.Contains(t, b.String(), "completer_retry_err        0\n")
}

func TestFirst(t *testing.T) {
	m := newMachine()
	m.soft.QueuePairs[1].PID = 888 // of a program that 4711 supervises
	for _, c := range []struct {
		device string
		pid    int
		want   string // devices, or the error
	}{
		{"", 0, "rxe0 soft0"},
		{"soft0", 0, "soft0"},
		{"soft:127.0.0.1", 0, "soft0"},
		{"127.0.0.1", 0, "soft0"},
		{"127.0.0.1:4791", 0, "soft0"},
		{"rxe0", 0, "rxe0"},
		{"host:rxe0", 0, "rxe0"},
		{"10.0.2.15", 0, "rxe0"},
		{"", 4711, "soft0"},
		{"", 321, "rxe0"},
		{"", 888, "soft0"},
		{"rxe0", 4711, "no device rxe0 of process 4711; there is rxe0, soft0 (soft:127.0.0.1 of process 4711)"},
		{"soft1", 0, "no device soft1; there is rxe0, soft0 (soft:127.0.0.1 of process 4711)"},
	} {
		s := m.source()
		s.Device, s.PID = c.device, c.pid
		list, _, err := s.First(t.Context())
		if err != nil {
			require.Equal(t, c.want, err.Error())
			continue
		}
		var names []string
		for _, d := range list {
			names = append(names, d.Name)
		}
		require.Equal(t, c.want, strings.Join(names, " "))
		if c.pid == 888 {
			require.Len(t, list[0].QueuePairs, 1)
		}
	}
}

// Without RDMA in the kernel there are soft devices; with an error there are
// too, and it is told.
func TestNoKernel(t *testing.T) {
	m := newMachine()
	for _, c := range []struct {
		err  error
		told bool
	}{{&netlinkmgr.NoRDMAError{Err: syscall.EPROTONOSUPPORT}, false}, {syscall.ENOTSUP, false}, {syscall.EPERM, true}} {
		s := m.source()
		s.Kernel = func() (*netlinkmgr.Manager, error) { return nil, c.err }
		list, warnings, err := s.Read(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, c.told, len(warnings) == 1, "%v", warnings)
	}
	s := &Source{
		Processes: func(context.Context, ...int) ([]stats.Device, []error) { return nil, nil },
		Kernel:    func() (*netlinkmgr.Manager, error) { return nil, syscall.ENOTSUP },
		Device:    "soft0",
	}
	_, _, err := s.First(t.Context())
	require.ErrorContains(t, err, "no program of this user")
}

// run runs Run with so many frames, each after two seconds of the machine.
func (m *machine) run(t *testing.T, o Options) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.Out, o.Err = &stdout, &stderr
	o.Interval = 2 * time.Second
	from := m.source()
	read := from.Processes
	from.Processes = func(ctx context.Context, pids ...int) ([]stats.Device, []error) {
		defer m.goOn()
		return read(ctx, pids...)
	}
	synctest.Test(t, func(t *testing.T) { require.NoError(t, Run(t.Context(), from, o)) })
	return stdout.String(), stderr.String()
}

func TestRunPlain(t *testing.T) {
	m := newMachine()
	m.errs = []error{errors.New("a process does not answer")}
	out, errs := m.run(t, Options{Count: 3})
	require.Equal(t, 3, strings.Count(out, "2 devices, 4 queue pairs"))
	require.NotContains(t, out, "\x1b")
	require.Equal(t, "rdmashim: a process does not answer\n", errs, "told once")
	require.Contains(t, out, "1.2G")
}

// A process that does not answer is named where its devices are missing, and
// instead of them when it alone is asked.
func TestRunSilent(t *testing.T) {
	m := newMachine()
	m.errs = []error{&stats.SilentError{PID: 99, Process: "sleeper", Stopped: true}}
	const why = "process 99 (sleeper) does not answer within 200ms: it is stopped; kill -CONT 99 lets it go on"
	out, errs := m.run(t, Options{Count: 2, JSON: true})
	require.Equal(t, "rdmashim: "+why+"\n", errs, "told once")
	for line := range strings.Lines(out) {
		var f struct {
			Devices []struct{ Name string }
			Silent  []map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		require.Len(t, f.Devices, 2)
		require.Equal(t, []map[string]any{{"pid": 99.0, "process": "sleeper", "stopped": true}}, f.Silent)
	}

	s := m.source()
	var asked []int
	s.Processes = func(_ context.Context, pids ...int) ([]stats.Device, []error) {
		asked = append(asked, pids...)
		return nil, m.errs
	}
	s.PID = 99
	_, _, err := s.First(t.Context())
	require.EqualError(t, err, why)
	require.Equal(t, []int{99}, asked)
}

func TestRunJSON(t *testing.T) {
	out, _ := newMachine().run(t, Options{Count: 2, JSON: true, Screen: func() (int, int) { return 80, 24 }})
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.Len(t, lines, 2)
	for _, l := range lines {
		var f struct {
			Devices []struct {
				Name  string
				Ports []struct{ Rates map[string]float64 }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(l), &f))
		require.Equal(t, "soft0", f.Devices[1].Name)
		require.Equal(t, 1500.0, f.Devices[1].Ports[0].Rates["sent_pkts"])
	}
}

// On a terminal the first frame comes at once, each lies over the one before,
// and fits.
func TestRunOnATerminal(t *testing.T) {
	m := newMachine()
	m.errs = []error{errors.New("a process does not answer")}
	out, errs := m.run(t, Options{Count: 2, Screen: func() (int, int) { return 60, 8 }})
	require.Empty(t, errs)
	require.True(t, strings.HasPrefix(out, clearAll+home))
	frames := strings.Split(strings.TrimPrefix(out, clearAll+home), home)
	require.Len(t, frames, 3)
	for _, f := range frames {
		require.True(t, strings.HasSuffix(f, clearBelow))
		text := strings.ReplaceAll(strings.TrimSuffix(f, clearBelow), clearLine+"\n", "\n")
		require.NotContains(t, text, "\x1b")
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		require.LessOrEqual(t, len(lines), 7)
		require.Contains(t, lines[len(lines)-1], "does not answer")
	}
}

func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var out bytes.Buffer
		o := Options{Out: &out, Err: &out, Interval: 2 * time.Second}
		require.NoError(t, Run(ctx, newMachine().source(), o))
		require.Equal(t, 2, strings.Count(out.String(), "2 devices"))
		require.NoError(t, Run(ctx, newMachine().source(), o), "interrupted from the start")

		full := errors.New("no space")
		o.Out = failing{full}
		require.ErrorIs(t, Run(t.Context(), newMachine().source(), o), full)
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
