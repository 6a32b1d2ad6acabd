//go:build amd64 || arm64

package programs

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair runs two programs on soft devices of their own with such options, as
// meet does, and returns what the client said. ADDR in arguments becomes the
// server's address.
func pair(t *testing.T, options string, ready func(*process), server, client []string) (said string) {
	t.Helper()
	here, _ := newDevice()
	there, addr := newDevice()
	run := func(device string, args []string) func() *process {
		var filled []string
		for _, a := range args {
			filled = append(filled, strings.ReplaceAll(a, "ADDR", addr))
		}
		return func() *process { return start(t, device+options, filled...) }
	}
	return meet(t, ready, run(there, server), run(here, client))
}

// meet runs a server and, when ready finds that it listens, a client. Without
// ready the client is started anew until the server listens.
func meet(t *testing.T, ready func(*process), server, client func() *process) (said string) {
	t.Helper()
	s := server()
	if ready != nil {
		ready(s)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	for deadline := time.Now().Add(patience); ; {
		c := client()
		err := c.Wait()
		if err == nil {
			said = c.out.String()
			break
		}
		select {
		case <-ended:
			require.NoError(t, err, "client: %s\nserver: %s", c.out.String(), s.out.String())
		default:
		}
		require.True(t, ready == nil && time.Now().Before(deadline), "client: %v: %s", err, c.out.String())
	}
	require.NoError(t, <-ended, "%s", s.out.String())
	return said
}

// perftests are perftest's programs with each option that they take: by the
// connection manager (-R), eight queue pairs, waiting for events, all sizes,
// other kinds of queue pairs. WRITE has no events, an atomic one size, and
// latency one queue pair. All sizes cost 8 s of a processor, as perftest
// samples its clock for 0.2 s for each: one program has them, and not where not
// all run.
var perftests = []struct {
	program string
	options []string
}{
	{"ib_write_bw", []string{"-s 1000000", "-b", "-q 8", "-c UC", "-c UC -q 8", "-R", "-R -q 8"}},
	{"ib_read_bw", []string{"", "-b", "-q 8", "-e", "-R", "-R -q 8 -e"}},
	{"ib_send_bw", []string{"-b", "-q 8", "-a", "-e", "-c UC", "-c UD", "-c UD -e", "-R", "-R -q 8 -e", "-R -c UD"}},
	{"ib_atomic_bw", []string{"", "-q 8", "-e", "-R", "-R -q 8 -e"}},
	{"ib_write_lat", []string{"", "-c UC", "-R"}},
	{"ib_read_lat", []string{"", "-e", "-R", "-R -e"}},
	{"ib_send_lat", []string{"", "-c UC", "-c UC -e", "-c UD", "-c UD -e", "-R", "-R -c UD"}},
	{"ib_atomic_lat", []string{"", "-e", "-R"}},
}

// lossy are those that run where packets are lost, too. Not so -R: perftest
// ends when its last message has come, though its peer may not know yet.
var lossy = []string{
	"ib_write_bw -q 8", "ib_write_bw -b", "ib_read_bw -e", "ib_read_bw -q 8", "ib_send_bw -e", "ib_send_bw -q 8", "ib_atomic_bw -q 8 -e",
	"ib_write_lat", "ib_read_lat -e", "ib_send_lat", "ib_atomic_lat -e",
}

// TestPerftest: bandwidth and latency of each operation over each kind of queue
// pair, by polling and by events, two pairs of programs at a time.
func TestPerftest(t *testing.T) {
	needs(t, "ib_write_bw")
	places := make(chan struct{}, 2)
	run := func(line, options string) {
		t.Run(line+options, func(t *testing.T) {
			if !strings.Contains(line, " -a") { // that spins
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
			}
			perftest(t, line, options)
		})
	}
	for _, p := range perftests {
		for _, o := range some(p.options, 3) {
			run(p.program+" "+o, "")
		}
	}
	for _, line := range some(lossy, 4) {
		run(line, "?loss=1%&seed=3")
	}
}

// perftestRow is a line of the results: bytes and iterations.
var perftestRow = regexp.MustCompile(`(?m)^ (\d+) +(\d+) +\d`)

// perftest runs a line of perftest at both ends, and looks at what its client
// counted.
func perftest(t *testing.T, line, options string) {
	port, iterations, sizes := freePort(t), 100, 1
	if strings.Contains(line, " -a") {
		iterations, sizes = 10, 23 // 2 bytes to 8 MiB
	}
	// Its programs spin, and the peer of one among twenty may be without a
	// processor for longer than the 2.1 s that a timeout of 14 allows: 34 s.
	args := append(strings.Fields(line), "-d", "rxe0", "-x", "0", "-F", "-u", "18", "-n", strconv.Itoa(iterations), "-p", port)
	ready := func(p *process) { p.listens(port) }
	if strings.Contains(line, " -R") { // its server has no TCP port
		ready = nil
	}
	if strings.Contains(line, " -q 8") {
		iterations *= 8
	}
	said := pair(t, options, ready, args, append(args, "ADDR"))
	rows := perftestRow.FindAllStringSubmatch(said, -1)
	require.Len(t, rows, sizes, "%s", said)
	for _, row := range rows {
		require.Equal(t, strconv.Itoa(iterations), row[2], "%s", said)
	}
}
