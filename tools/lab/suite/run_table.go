package suite

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

const (
	// longWrites and bulkWrites are how many messages of 1 MiB and of 64 KiB
	// ib_write_bw sends, about half a second of them; shortTurns is how many
	// round trips ib_write_lat makes, waitingTurns ibv_rc_pingpong.
	longWrites, bulkWrites, shortTurns, waitingTurns = 1200, 20000, 50000, 5000
	// opens is how often a program opens a file.
	opens = 20000
)

// way is how 'rdmashim run' reaches a program: by the library, which has the
// devices in the program's process, by a supervisor beside each program, or by
// one that both share with its device, 'rdmashim kernel serve'.
type way int

const (
	library way = iota
	supervised
	oneKernel
)

// runTable compares perftest's programs under 'rdmashim run', whose devices are
// in their processes, with 'rdmashim perf' on the same devices, and programs
// that are supervised with those.
func (s *suite) runTable(write64K *series, polling func(context.Context) (perf.Result, error)) []comparison {
	long := func(w way) *series {
		return s.underRun(w, "ib_write_bw", perftest, fmt.Sprintf("-t 8 -n %d", longWrites), mebibyte, mebibyte/1e3)
	}
	bulk := func(w way) *series {
		return s.underRun(w, "ib_write_bw", perftest, fmt.Sprintf("-t 64 -n %d", bulkWrites), 65536, 65536/1e3)
	}
	short := func(w way) *series {
		return s.underRun(w, "ib_write_lat", perftest, fmt.Sprintf("-n %d", shortTurns), 64, 1)
	}
	waiting := func(w way) *series {
		return s.underRun(w, "ibv_rc_pingpong", pingpong, fmt.Sprintf("-e -n %d", waitingTurns), 64, 0.5)
	}
	long1M, bulk64K, waiting64 := long(library), bulk(library), waiting(library)
	table := []comparison{
		{"WRITE 64 KiB goodput, ib_write_bw under run", "GB/s", bulk64K, write64K, 0.9, false},
		{"WRITE 64 B ping-pong, ib_write_lat under run", "µs", short(library), pick("WRITE 64 B ping-pong, polling", polling, typical), 1.2, true},
		{"SEND 64 B ping-pong, ibv_rc_pingpong -e under run", "µs", waiting64, s.ours("SEND 64 B ping-pong, waiting", mean, "send lat -s 64 -e"), 3, true},
	}
	for w, name := range []string{supervised: "supervised", oneKernel: "supervised, one kernel"} {
		if name == "" {
			continue
		}
		table = append(table,
			comparison{"WRITE 1 MiB goodput, ib_write_bw " + name, "GB/s", long(way(w)), long1M, 0.5, false},
			comparison{"WRITE 64 KiB goodput, ib_write_bw " + name, "GB/s", bulk(way(w)), bulk64K, 0.4, false},
			comparison{"SEND 64 B ping-pong, ibv_rc_pingpong -e " + name, "µs", waiting(way(w)), waiting64, 3, true},
			comparison{"WRITE 64 B ping-pong, ib_write_lat " + name, "µs", short(way(w)), bound, 60, true})
	}
	return append(table, comparison{"open of a file, supervised", "µs", s.opening(), bound, 25, true})
}

// underRun is a series of a program on soft devices: its figure, times by.
func (s *suite) underRun(w way, name string, p program, words string, size int, by float64) *series {
	self, err := os.Executable()
	if _, missing := exec.LookPath(name); missing != nil || err != nil {
		return &series{name: byLibrary, absent: cli.NotInstalled(name).Error()}
	}
	device := peer.DefaultDevice(s.device)
	if !strings.HasPrefix(device, "soft") {
		return &series{name: byLibrary, absent: "programs of C are run on soft devices, not on " + device}
	}
	on := func(device, arguments string) string {
		how := [...]string{"--way library -d " + device, "--way supervisor -d " + device, "--kernel KERNEL"}[w]
		return fmt.Sprintf("run %s -- %s %s %s", how, name, words, strings.Replace(arguments, "GID", "0", 1))
	}
	p.server, p.client = on("soft", p.server), on(device, p.client)
	ready := memo(s, func(ctx context.Context) (string, error) { // not within the limit of a program
		how := [...]string{library: "library", supervised: "supervisor", oneKernel: "supervisor"}[w]
		out, err := exec.CommandContext(ctx, self, "run", "--way", how, "--", "true").CombinedOutput()
		return string(out), err
	})
	return &series{name: byLibrary, measure: func(ctx context.Context) (float64, error) {
		if out, err := ready(ctx); err != nil {
			return 0, &notHere{"rdmashim run does not run here: " + firstLine(out, err.Error())}
		}
		run := p
		if w == oneKernel {
			socket, end, err := serveKernel(ctx, self, cli.WithOptions(device, "shm=on"))
			if err != nil {
				return 0, err
			}
			defer end()
			run.server, run.client = strings.Replace(p.server, "KERNEL", socket, 1), strings.Replace(p.client, "KERNEL", socket, 1)
		}
		figures, err := run.run(ctx, self, size)
		if err != nil {
			return 0, err
		}
		return figures[0] * by, nil
	}}
}

// byLibrary is the reference of programs that are supervised.
const byLibrary = "by the library"

// serveKernel starts a kernel that programs share, on a device that reaches
// itself as it does without the suite.
func serveKernel(ctx context.Context, self, device string) (socket string, end func(), err error) {
	dir, err := os.MkdirTemp("", "suite")
	if err != nil {
		return "", nil, err
	}
	socket = filepath.Join(dir, "kernel")
	cmd := exec.CommandContext(ctx, self, "kernel", "serve", "-d", device, socket)
	if err = cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	end = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
		os.RemoveAll(dir)
	}
	for {
		c, err := net.Dial("unix", socket+".console") // the last that it listens at
		if err == nil {
			c.Close()
			return socket, end, nil
		}
		select {
		case <-ended:
			end()
			return "", nil, fmt.Errorf("rdmashim kernel serve: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// opening is a series of the time in µs that a shell that is supervised takes
// to open a file that has nothing to do with RDMA, and to close it.
func (s *suite) opening() *series {
	script := fmt.Sprintf(`a=$EPOCHREALTIME; for ((i=0;i<%d;i++)); do : <"$BASH"; done; b=$EPOCHREALTIME; echo $((${b/[.,]}-${a/[.,]}))`, opens)
	return &series{name: "open", measure: func(ctx context.Context) (float64, error) {
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		out, err := exec.CommandContext(ctx, self, "run", "--way", "supervisor", "--", "bash", "-c", script).CombinedOutput()
		µs, not := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil || not != nil {
			return 0, &notHere{"bash is not supervised here: " + cli.OneLine(cmp.Or(err, not)) + ": " + firstLine(string(out), "")}
		}
		return µs / opens, nil
	}}
}
