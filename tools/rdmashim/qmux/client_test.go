package qmux

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestClient: streams and datagrams come back, over both transports, plain and
// TLS, and when packets get lost; both ends count alike.
func TestClient(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for _, c := range []struct {
		name, network string
		server        []string
		client        string
	}{
		{"rdma", "rdma", nil, ""},
		{"rdma, loss", "rdma", nil, "--device soft?loss=2%&seed=1"},
		{"rdma, TLS", "rdma", []string{"--insecure"}, "--insecure"},
		{"tcp", "tcp", nil, ""},
		{"tcp, TLS", "tcp", []string{"--cert", cert, "--key", key, "--alpn", "mine"}, "--alpn mine --server-name localhost --ca " + cert},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, c.network, c.server...)
			args := append([]string{"qmux", "client", "--json", "--" + c.network, s.addr, "--size", "50000"}, strings.Fields(c.client)...)
			run := func(more ...string) (r Report) {
				t.Helper()
				o := clitest.RunTool(t, append(args, more...)...)
				require.Zero(t, o.Code, o.Stderr)
				require.NoError(t, json.Unmarshal([]byte(o.Stdout), &r))
				require.Equal(t, []any{s.addr, c.network, strings.Contains(c.name, "TLS")}, []any{r.Server, r.Network, r.TLS})
				require.Positive(t, r.P50)
				return r
			}
			r := run("--streams", "130", "--datagrams", "100")
			require.Equal(t, []any{130, int64(6_500_000), 100, 100}, []any{r.Streams, r.Bytes, r.Datagrams, r.DatagramsBack})
			n := s.connection()
			require.Equal(t, Connection{
				Client: n.Client, Streams: 130 + roundTrips, Datagrams: 100, Received: 6_500_000 + roundTrips, Sent: 6_500_000 + roundTrips,
				Seconds: n.Seconds, End: "closed",
			}, n)
			r = run("--streams", "3", "--uni")
			require.True(t, r.OneWay)
			n = s.connection()
			require.Equal(t, []int64{roundTrips + 1, 3, 150_000 + roundTrips + 1, roundTrips + 1}, []int64{n.Streams, n.UniStreams, n.Received, n.Sent})
			total := s.stop()
			require.Equal(t, []int64{2, 0, 3, 100}, []int64{total.Connections, total.Failed, total.UniStreams, total.Datagrams})
		})
	}
}

// TestText: the output for people.
func TestText(t *testing.T) {
	t.Parallel()
	s := start(t, "tcp")
	o := clitest.RunTool(t, "qmux", "client", "--tcp", s.addr, "--streams", "2", "--datagrams", "1")
	require.Zero(t, o.Code, o.Stderr)
	require.Empty(t, o.Stderr)
	require.Regexp(t, `\A127\.0\.0\.1:\d+ over tcp, plain: 20 round trips of 1 B: p50 [\d.]+ µs
2 streams there and back, 2.0 MiB in [\d.]+ s: [\d.]+ .iB/s, every byte right
1 datagrams, 1 came back
\d+ records sent, \d+ received
\z`, o.Stdout)
	c := s.connection()
	require.Regexp(t, `^127\.0\.0\.1:\d+: 22 streams echoed, 0 one-way, 1 datagrams, 2097172 bytes in, 2097172 out in [\d.]+ s: closed$`, c.String())
	total := s.stop()
	require.Equal(t, "1 connections, 0 failed: 22 streams echoed, 0 one-way, 1 datagrams, 2.0 MiB in, 2.0 MiB out", total.String())
}

// TestRecord: both ends record a session over TLS, and dump shows what was in
// it, from its first record to its end.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "rdma"} {
		dir := t.TempDir()
		files := []string{filepath.Join(dir, "server.pcap"), filepath.Join(dir, "client.pcap")}
		s := start(t, network, "--insecure", "--record", files[0])
		o := clitest.RunTool(t, "qmux", "client", "--insecure", "--"+network, s.addr, "--streams", "1", "--size", "100000", "--datagrams", "1", "--record", files[1])
		require.Zero(t, o.Code, o.Stderr)
		require.Equal(t, "closed", s.connection().End)
		s.stop()
		for _, file := range files {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, "%s is for its user alone", file)
			o := clitest.RunTool(t, "dump", "--qmux", file)
			require.Zero(t, o.Code, o.Stderr)
			require.NotContains(t, o.Stdout, "problem")
			for _, want := range []string{"record 1 length", "QX_TRANSPORT_PARAMETERS", "STREAM id=80 ", "DATAGRAM len=1000", `APPLICATION_CLOSE code=0 ""`, " end\n"} {
				require.Contains(t, o.Stdout, want, file)
			}
		}
	}
}
