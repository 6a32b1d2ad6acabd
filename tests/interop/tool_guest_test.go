//go:build guest && linux

package interop

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// tool starts rdmashim on the side that the device is of: rxe's, or that of the
// soft RNIC.
func tool(t *testing.T, soft bool, args ...string) *program {
	p := command(t, "rdmashim", args...)
	startTool(t, soft, p)
	return p
}

func startTool(t *testing.T, soft bool, p *program) {
	begin := p.Start
	if soft {
		begin = func() error { return lab.space.Do(p.Start) } // a child is where the thread is that makes it
	}
	require.NoError(t, begin())
}

// piped starts rdmashim and returns its output.
func piped(t *testing.T, soft bool, args ...string) (*program, io.Reader) {
	p := command(t, "rdmashim", args...)
	p.Stdout = nil
	out := must.Get(p.StdoutPipe())(t)
	startTool(t, soft, p)
	return p, out
}

// serving starts a server of the tool and returns its port.
func serving(t *testing.T, soft bool, args ...string) (*program, string) {
	p, out := piped(t, soft, append(args, "--port", "0", "--once")...)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", p.out.String())
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	require.True(t, ok, line)
	at := must.Get(netip.ParseAddrPort(addr))(t)
	return p, strconv.Itoa(int(at.Port()))
}

// pings is how many rping sends, and lastPing what it says of the last one.
const pings, lastPing = 5, "ping data: rdma-ping-4: "

// TestTool: the tool's samples and ping on rxe and on the soft RNIC, with each
// other and with programs of librdmacm, in each direction; rping compares what
// it gets back. The soft RNIC loses packets. --once says by its status that all
// bytes were right.
func TestTool(t *testing.T) {
	for i, f := range families {
		for j, program := range []string{"write-read", "write-imm", "ping"} {
			if (i+j)%2 == 1 {
				continue // one family for each
			}
			for _, server := range []string{"rxe", "soft", "C"} {
				for _, client := range []string{"rxe", "soft", "C"} {
					if server == client {
						continue // two in C are not ours; two soft ones need no guest
					}
					t.Run(fmt.Sprint(f.name, "/", program, "/", client, " to ", server), func(t *testing.T) { toolRun(t, f, program, server, client) })
				}
			}
		}
	}
}

func toolRun(t *testing.T, f family, name, server, client string) {
	words := []string{"sample", name}
	if name == "ping" {
		words = []string{"ping"}
	}
	addrOf := map[string]string{"rxe": f.rxe.String(), "C": f.rxe.String(), "soft": f.softAddr(7).String()}
	device := map[string]string{"rxe": "rxe0", "soft": softName(f, 7, "?loss=5%&seed=5")}
	port := ""
	var s *program
	switch {
	case server != "C":
		s, port = serving(t, server == "soft", append(words, "server", "--device", device[server])...)
	default:
		cmPort++
		port = strconv.Itoa(cmPort)
		if name == "ping" {
			s = start(t, "rping", "-s", "-v", "-C", strconv.Itoa(pings), "-a", addrOf["C"], "-p", port)
		} else {
			s = startPeer(t, "server", name, addrOf["C"], port)
			s.says(t, "listening ")
		}
	}
	var c *program
	switch {
	case client == "C" && name == "ping":
		c = start(t, "rping", "-c", "-v", "-V", "-C", strconv.Itoa(pings), "-a", addrOf[server], "-p", port)
	case client == "C":
		c = startPeer(t, "client", name, addrOf[server], port)
	default:
		args := append(words, "client", "--device", device[client], "--port", port, addrOf[server])
		if name == "ping" {
			args = append(args, "--count", strconv.Itoa(pings))
		}
		c = retried(t, client == "soft", args...)
	}
	switch {
	case client == "C" && name == "ping":
		c.endsAfter(t, lastPing)
	case c != nil:
		c.ends(t)
	}
	if server == "C" && name == "ping" {
		s.endsAfter(t, "server DISCONNECT EVENT...")
		return
	}
	require.NoError(t, s.Wait(), "%s", s.out.String())
}

// retried runs a client until the server, which may be rping and say nothing,
// listens.
func retried(t *testing.T, soft bool, args ...string) *program {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		p := tool(t, soft, args...)
		err := p.Wait()
		if err == nil {
			return nil
		}
		refused := strings.Contains(p.out.String(), "nobody listens there")
		require.True(t, refused && time.Now().Before(deadline), "%v: %s", err, p.out.String())
	}
}

// TestToolFinds: without --device, the tool finds rxe0 by the route.
func TestToolFinds(t *testing.T) {
	must.Get(os.Stat("/dev/infiniband/rdma_cm"))(t)
	for _, f := range families {
		s, port := serving(t, false, "sample", "write-read", "server")
		p := tool(t, true, "sample", "write-read", "client", "--port", port, f.rxe.String())
		p.ends(t)
		require.NoError(t, s.Wait(), "%s", s.out.String())
	}
}
