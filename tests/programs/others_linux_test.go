//go:build amd64 || arm64

package programs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// other is a row of the table of docs/c-programs.md: a client, and a server
// where it needs one.
type other struct {
	name, server, client, says, ways, rxe string
}

// otherRow finds them: name, package, server, client, what the client prints,
// by which ways they run, and whether on rdma_rxe.
var otherRow = regexp.MustCompile("(?m)^\\| (.+) \\| .+ \\| (?:`(.+)`|none) \\| `(.+)` \\| `(.+)` \\| (both|library) \\| (yes|without loss|no) \\|$")

// TestOthers runs the page's programs of other people, each pair on devices of
// its own, or in a guest of tests/guest both on rxe0.
func TestOthers(t *testing.T) {
	amount.Rest(t)
	page, err := os.ReadFile("../../docs/c-programs.md")
	require.NoError(t, err)
	rows := otherRow.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 10, "rows of the page's table")
	for _, m := range rows {
		o := other{m[1], m[2], m[3], m[4], m[5], m[6]}
		if supervisor != "" && o.ways == "library" || onRXE != "" && o.rxe == "no" {
			continue
		}
		t.Run(o.name, func(t *testing.T) { o.run(t) })
	}
}

// run runs the programs, and tries thrice where the client was refused: qperf
// names its port to the client before it listens there.
func (o other) run(t *testing.T) {
	for range 3 {
		before := rxePackets(t)
		if refused := o.once(t); !refused {
			if onRXE != "" && o.server != "" { // a connection alone takes ten
				require.Greater(t, rxePackets(t), before+20, "packets that rxe0 received")
			}
			return
		}
	}
	t.Error("the client was refused each time")
}

// rxePackets counts the packets that rxe0 has received, 0 elsewhere.
func rxePackets(t *testing.T) (n int) {
	if onRXE != "" {
		text, err := os.ReadFile("/sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts")
		require.NoError(t, err)
		_, err = fmt.Sscan(string(text), &n)
		require.NoError(t, err)
	}
	return n
}

func (o other) once(t *testing.T) (refused bool) {
	options := ""
	if strings.Contains(o.name, "1 % loss") {
		options = "?loss=1%&seed=3"
	}
	here, own := newDevice()
	there, addr := newDevice()
	port := freePort(t)
	names := strings.NewReplacer("ADDR", addr, "PORT", port, "HERE", own)
	begin := func(device, line string) *process {
		return startLine(t, device+options, names.Replace(line))
	}
	o.says = names.Replace(o.says)
	if o.server == "" {
		require.Contains(t, begin(here, o.client).ends(0), o.says)
		return false
	}
	s := begin(there, o.server)
	if strings.Contains(o.server, "-lp") { // it has a TCP port
		s.listens(port)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	for deadline := time.Now().Add(patience); ; { // until the server listens
		c := begin(here, o.client)
		err := c.Wait()
		said := c.out.String()
		if err == nil && strings.Contains(said, o.says) {
			require.NoError(t, <-ended, "%s", &s.out)
			return false
		}
		if strings.Contains(said, "Event rejected") {
			require.NoError(t, s.Process.Kill())
			<-ended
			return true
		}
		select {
		case <-ended:
			t.Fatalf("client: %v: %s\nserver: %s", err, said, &s.out)
		default:
			require.True(t, time.Now().Before(deadline), "client: %v: %s", err, said)
		}
	}
}

// startLine starts a command line, before which variables of its environment
// may stand.
func startLine(t *testing.T, device, line string) *process {
	var environ []string
	args := strings.Fields(line)
	for strings.Contains(args[0], "=") {
		environ, args = append(environ, args[0]), args[1:]
	}
	needs(t, args[0])
	if len(environ) > 0 {
		_, library, _ := strings.Cut(environ[0], "=")
		_, err := os.Stat(library)
		if err != nil {
			t.Skip("this machine has its libraries elsewhere: ", err)
		}
	}
	cmd := command(t, device, args...)
	cmd.Env = append(cmd.Environ(), environ...)
	return begin(t, cmd)
}
