package sample

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// start runs a server as a process, on an address of its own.
func start(t *testing.T, args ...string) (address string) {
	t.Helper()
	return clitest.Serve(t, append(args, "--listen", clitest.Host()+":0")...).Addr
}

// TestCounter between two processes: acknowledged calls were executed once,
// whatever becomes of connections and of the server; where those stay, no other
// calls were executed.
func TestCounter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags string
		whole bool
	}{
		{"", true}, {"--loss 2% --seed 1", true}, {"--chaos", true}, {"--chaos --loss 2% --seed 2", true}, {"--kill", false},
	} {
		t.Run(c.flags, func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields(c.flags), "-n", "500", "--callers", "8", "--json")
			if c.whole && !strings.Contains(c.flags, "--chaos") {
				args = append(args, start(t, "sample", "counter", "server"))
			}
			o := clitest.RunTool(t, append([]string{"sample", "counter", "client"}, args...)...)
			r := clitest.Decode[CounterReport](t, o.Well(t))
			require.Equal(t, []int64{500, 500}, []int64{r.Calls, r.Acknowledged + r.Unknown})
			require.NoError(t, r.check())
			if c.whole {
				require.Equal(t, []int64{500, 500, 0}, []int64{r.Acknowledged, r.Counted, r.Unknown})
			}
		})
	}
}

// TestServerAtAddress: a plain soft device is put on the address to listen on.
func TestServerAtAddress(t *testing.T) {
	t.Parallel()
	addr := clitest.Serve(t, "sample", "write-read", "server", "--once", "-d", "soft?loss=1%", "--listen", clitest.Host(), "--port", "0").Addr
	clitest.RunTool(t, "sample", "write-read", "client", addr).Well(t)
}

// TestServiceErrors: exit status, one line, and what to do.
func TestServiceErrors(t *testing.T) {
	t.Parallel()
	clitest.Refused(t, 2, "sample", map[string]string{
		"counter client -n 0":              "at least 1",
		"counter client 127.0.0.1 --chaos": "leave HOST out",
		"counter server --listen here":     "here",
		"counter server x":                 "takes no arguments",
	})
	clitest.Refused(t, 1, "sample", map[string]string{
		"counter client 127.0.0.1:9":              "is 'rdmashim sample counter server' running there?",
		"counter client 127.0.0.1:9 --timeout 9s": "connection refused",
		"counter server --file /":                 "open the counter's file",
	})
}
