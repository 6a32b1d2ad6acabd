package preload

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair runs a server and, when ready finds that it listens, a client. Without
// ready the client is started anew until the server listens.
func (l Libraries) pair(t *testing.T, options string, ready func(*process), server, client []string) (said string) {
	t.Helper()
	here, _ := newDevice()
	there, addr := newDevice()
	fill := func(args []string) (filled []string) {
		for _, a := range args {
			filled = append(filled, strings.ReplaceAll(a, "ADDR", addr))
		}
		return filled
	}
	s := start(t, l, there+options, fill(server)...)
	if ready != nil {
		ready(s)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	for deadline := time.Now().Add(patience); ; {
		c := start(t, l, here+options, fill(client)...)
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

// TestPerftest: bandwidth and latency of each operation, polling and waiting
// for events, over queue pairs that meet by TCP and by the connection manager.
func TestPerftest(t *testing.T) {
	l := libraries(t, "ib_write_bw")
	for _, line := range []string{
		"ib_write_bw -s 1000000 -n 20",
		"ib_write_bw -q 8 -n 100",
		"ib_write_bw -b -n 100",
		"ib_send_bw -e -n 100",
		"ib_send_bw -a -n 10",
		"ib_send_bw -c UC -n 100",
		"ib_send_bw -c UD -n 100",
		"ib_write_bw -c UC -n 100",
		"ib_read_bw -n 100",
		"ib_atomic_bw -n 100",
		"ib_write_lat -n 100",
		"ib_send_lat -n 100",
		"ib_send_lat -c UD -e -n 100",
		"ib_read_lat -n 100",
		"ib_atomic_lat -n 100",
	} {
		t.Run(line, func(t *testing.T) {
			port := freePort(t)
			args := append(strings.Fields(line), "-d", "rxe0", "-x", "0", "-F", "-p", port)
			ready := func(p *process) { p.listens(port) }
			require.Contains(t, l.pair(t, "", ready, args, append(args, "ADDR")), "#bytes")
		})
	}
}
