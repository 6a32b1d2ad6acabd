package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

const (
	// bulkWrites is how many messages of 64 KiB ib_write_bw sends, about half a
	// second of them; shortTurns is how many round trips ib_write_lat makes.
	bulkWrites, shortTurns = 20000, 50000
)

// runTable compares perftest's programs under 'rdmashim run', whose devices are
// in their processes, with 'rdmashim perf' on the same devices.
func (s *suite) runTable(write64K *series, polling func(context.Context) (perf.Result, error)) []comparison {
	return []comparison{
		{"WRITE 64 KiB goodput, ib_write_bw under run", "GB/s", s.underRun("ib_write_bw", fmt.Sprintf("-t 64 -n %d", bulkWrites), 65536, 65536/1e3), write64K, 0.9, false},
		{"WRITE 64 B ping-pong, ib_write_lat under run", "µs", s.underRun("ib_write_lat", fmt.Sprintf("-n %d", shortTurns), 64, 1), pick("WRITE 64 B ping-pong, polling", polling, typical), 1.2, true},
	}
}

// underRun is a series of a program of perftest on soft devices: its figure,
// times by.
func (s *suite) underRun(name, words string, size int, by float64) *series {
	p := perftest
	p.name, p.path = name, name
	self, err := os.Executable()
	if _, missing := exec.LookPath(name); missing != nil || err != nil {
		return &series{name: name, absent: cli.NotInstalled(name).Error()}
	}
	device := peer.DefaultDevice(s.device)
	if !strings.HasPrefix(device, "soft") {
		return &series{name: name, absent: "programs of C are run on soft devices, not on " + device}
	}
	on := func(device, arguments string) string {
		return fmt.Sprintf("run -d %s -- %s %s %s", device, name, words, strings.Replace(arguments, "GID", "0", 1))
	}
	p.server, p.client = on("soft", p.server), on(device, p.client)
	built := memo(s, func(ctx context.Context) (string, error) { // not within the limit of a program
		out, err := exec.CommandContext(ctx, self, "run", "--", "true").CombinedOutput()
		return string(out), err
	})
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		if out, err := built(ctx); err != nil {
			return 0, &notHere{"rdmashim run does not run here: " + firstLine(out, err.Error())}
		}
		figures, err := p.run(ctx, self, size)
		if err != nil {
			return 0, err
		}
		return figures[0] * by, nil
	}}
}
