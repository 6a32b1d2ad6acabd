//go:build guest && linux

package interop

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/rnic/link/udp/ports"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// envRun makes the test binary what rdmashim run is. It names the device; the
// arguments are the program and its own.
const envRun = "INTEROP_RUN_DEVICE"

// beRun runs a C program, if this process was started for that, and then does
// not return; or it cleans up behind one.
func beRun() {
	var err error
	device := os.Getenv(envRun)
	switch {
	case len(os.Args) == 3 && os.Args[1] == "run" && os.Args[2] == "--"+preload.Sweep:
		err = preload.SweepWhenEnded()
	case device != "":
		os.Unsetenv(envRun)
		var p preload.Program
		if p, err = preload.Look(os.Args[1]); err == nil {
			err = preload.Start(p, preload.LibrariesIn(filepath.Join(programDir, built.Libraries)), []string{device}, os.Args[1:])
		}
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run has a program that is not started yet run on a soft device.
func (p *program) run(t *testing.T, device string) {
	compiled(t)
	self := must.Get(os.Executable())(t)
	p.Path, p.Args = self, append([]string{self}, p.Args...)
	p.Env = append(p.Env, envRun+"="+device)
}

// cPair is two programs of C that talk to each other. In their arguments GID is
// the index of their side's address, ADDR the server's address and PORT a port.
type cPair struct {
	name, server string
	client       string // behind the server's arguments, or a line of its own
	options      string // of the soft device
	says         string // the client, and the server if serverSays is empty
	serverSays   string
	anyStatus    bool // see endsAfter
	byTCP        bool // they meet by it, not by the connection manager
	v4           bool // IPv4 only
	unreliable   bool // it waits for ever for what is lost
	alike        bool // client and server do the same once they have met
	long         bool // the client posts messages of many packets one behind another
}

const (
	byGID    = " -d rxe0 -g GID -p PORT -n 50 -c"
	measured = " -d rxe0 -x GID -p PORT -n 20 -F"
	streamed = "rstream -T v -p PORT -S 65536 -I 5 -C 2"
)

var cPairs = []cPair{
	{name: "ibv_rc_pingpong", server: "ibv_rc_pingpong -e" + byGID, client: " ADDR", says: "50 iters in", byTCP: true, alike: true},
	{name: "ibv_uc_pingpong", server: "ibv_uc_pingpong" + byGID, client: " ADDR", says: "50 iters in", byTCP: true, unreliable: true, alike: true},
	{name: "ibv_ud_pingpong", server: "ibv_ud_pingpong -s 1024" + byGID, client: " ADDR", says: "50 iters in", byTCP: true, unreliable: true, alike: true},
	{name: "ibv_srq_pingpong", server: "ibv_srq_pingpong -q 4" + byGID, client: " ADDR", says: "50 iters in", byTCP: true, alike: true},
	{name: "ib_write_bw", server: "ib_write_bw" + measured, client: " ADDR", says: "#bytes", byTCP: true, long: true},
	{name: "ib_write_bw -R", server: "ib_write_bw -R" + measured, client: " ADDR", says: "#bytes", v4: true, long: true},
	{name: "ib_read_lat", server: "ib_read_lat" + measured, client: " ADDR", says: "#bytes", serverSays: "RDMA_Read Latency Test", byTCP: true},
	{name: "ib_send_bw", server: "ib_send_bw" + measured, client: " ADDR", says: "#bytes", byTCP: true, long: true},
	{
		name: "rping", server: "rping -s -v -a ADDR -p PORT -C 20", client: "rping -c -v -V -a ADDR -p PORT -C 20",
		says: "ping data: rdma-ping-19: ", serverSays: "server DISCONNECT EVENT...", anyStatus: true,
	},
	{name: "ucmatose", server: "ucmatose -b ADDR -p PORT -c 1", client: "ucmatose -s ADDR -p PORT -c 1", says: "return status 0"},
	{name: "udaddy", server: "udaddy -b ADDR -c 1", client: "udaddy -s ADDR -c 1", says: "return status 0", unreliable: true, alike: true},
	{name: "rstream", server: streamed, client: " -s ADDR", says: "bytes   xfers   iters", v4: true},
}

// TestPrograms lets each program of C on the soft RNIC talk to its like on rxe.
// One whose roles do the same has one of them there, by turns; the others have
// both, in one of them while packets of the soft side are lost. The programs
// compare what they receive, where they can.
func TestPrograms(t *testing.T) {
	for i, c := range cPairs {
		if !amount.Part(i, 3) {
			continue
		}
		for j, client := range []bool{true, false} {
			if c.alike && (i+j)%2 == 1 {
				continue
			}
			c, f := c, families[0]
			if !c.v4 && !client {
				f = families[1]
			}
			lossy := c.alike || (i+j)%2 == 1
			if c.long {
				lossy = client // rxe repeats such messages wrongly: docs/design/differences.md
			}
			if lossy && !c.unreliable {
				c.options = "?loss=1%&seed=3"
			}
			role := map[bool]string{true: " soft client", false: " soft server"}[client]
			t.Run(c.name+role+c.options, func(t *testing.T) { c.talk(t, f, client) })
		}
	}
}

// cPlace is where a program of a pair runs: on rxe if the soft device has no
// name.
type cPlace struct {
	device string
	addr   netip.Addr
	gid    int
}

// cPlaces are those of two programs, with an address of a family.
func cPlaces(f family, options string, softClient bool) (client, server cPlace) {
	soft := cPlace{softName(f, 7, options), f.softAddr(7), 0}
	rxe := cPlace{"", f.rxe, gidIndex(f.rxe)}
	if softClient {
		return soft, rxe
	}
	return rxe, soft
}

func (c cPair) talk(t *testing.T, f family, softClient bool) {
	client, server := cPlaces(f, c.options, softClient)
	at := server.addr
	if c.byTCP {
		_, v4 := cPlaces(families[0], "", softClient)
		at = v4.addr
	}
	port := freePort(t)
	words := func(p cPlace, line string) []string {
		return strings.Fields(strings.NewReplacer("GID", strconv.Itoa(p.gid), "ADDR", at.String(), "PORT", strconv.Itoa(port)).Replace(line))
	}
	line := words(server, c.server)
	s := startOn(t, server.device, line[0], line[1:]...)
	if c.byTCP {
		server.listens(t, port)
	} else {
		server.bound(t)
	}
	line = words(client, c.client)
	if strings.HasPrefix(c.client, " ") {
		line = words(client, c.server+c.client)
	}
	good := "" // the exit status says it
	if c.anyStatus {
		good = c.says
	}
	said := runClient(t, client, line, good)
	require.Contains(t, said, c.says)
	want := cmp.Or(c.serverSays, c.says)
	if c.anyStatus {
		said += s.endsAfter(t, want)
	} else {
		out := s.ends(t)
		require.Contains(t, out, want)
		said += out
	}
	require.NotContains(t, said, "invalid data")
	require.NotContains(t, said, "error")
}

// bound waits until a soft server's device has its UDP port. Requests that come
// before have no answer, and are sent again late.
func (at cPlace) bound(t *testing.T) {
	if at.device == "" {
		return
	}
	port := netip.AddrPortFrom(at.addr, uapi.RoCEPort)
	var list []ports.Socket
	require.Eventually(t, func() bool {
		err := lab.space.Do(func() error {
			list, _ = ports.Sockets(os.DirFS("/"))
			return nil
		})
		return err == nil && slices.ContainsFunc(list, func(s ports.Socket) bool { return s.Takes(port) })
	}, patience, 10*time.Millisecond, "no program has %v", port)
}

// listens waits until a server listens at a TCP port. A client that comes
// before would be run again, which takes longer than the server's start.
func (at cPlace) listens(t *testing.T, port int) {
	t.Helper()
	row := regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d+: [0-9A-F]+:%04X [0-9A-F:]+ 0A `, port)) // TCP_LISTEN
	require.Eventually(t, func() (found bool) {
		look := func() error {
			for _, file := range []string{"tcp", "tcp6"} {
				text, err := os.ReadFile("/proc/thread-self/net/" + file)
				if err != nil {
					return err
				}
				found = found || row.Match(text)
			}
			return nil
		}
		if at.device == "" {
			return look() == nil && found
		}
		return lab.space.Do(look) == nil && found
	}, patience, 10*time.Millisecond, "no program listens at TCP port %d", port)
}

// runClient runs a client to its good end, which its exit status shows, or what
// it said if that is not empty. A client that comes before its server listens
// is refused, and run again.
func runClient(t *testing.T, at cPlace, line []string, good string) string {
	for deadline := time.Now().Add(patience); ; {
		p := startOn(t, at.device, line[0], line[1:]...)
		if time.Now().After(deadline) {
			return p.ends(t)
		}
		if p.Wait() == nil || good != "" && strings.Contains(p.out.String(), good) {
			lab.sums.programs.Add(1)
			return p.out.String()
		}
	}
}

// TestCopies: rcopy copies a file over rsockets, from the soft RNIC to rxe and
// back.
func TestCopies(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	require.NoError(t, os.WriteFile(from, pattern(1<<20), 0o600))
	for _, softClient := range []bool{true, false} {
		client, server := cPlaces(families[0], "", softClient)
		port := strconv.Itoa(freePort(t))
		s := startOn(t, server.device, "rcopy", "-p", port)
		server.bound(t)
		runClient(t, client, []string{"rcopy", from, server.addr.String() + ":" + to, "-p", port}, "")
		got := must.Get(os.ReadFile(to))(t)
		want := must.Get(os.ReadFile(from))(t)
		require.True(t, bytes.Equal(want, got), "the copy differs")
		require.NoError(t, os.Remove(to))
		require.NoError(t, s.Process.Kill()) // it serves for ever
		_ = s.Wait()
	}
}

// TestMckey: mckey's messages to a group go from the soft RNIC to rxe and back.
func TestMckey(t *testing.T) {
	for _, softSender := range []bool{true, false} {
		sender, receiver := cPlaces(families[0], "", softSender)
		run := func(p cPlace, args ...string) *program {
			return startOn(t, p.device, "mckey", append(args, "-b", p.addr.String(), "-m", "239.77.4.97")...)
		}
		r := run(receiver)
		for deadline := time.Now().Add(patience); ; {
			run(sender, "-s").ends(t) // which does not know whether anybody receives
			if strings.Contains(r.out.String(), "data transfers complete") {
				break
			}
			require.True(t, time.Now().Before(deadline), "nothing comes: %s", &r.out)
		}
		r.ends(t)
	}
}
