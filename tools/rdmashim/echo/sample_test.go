package echo

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestSample: one process runs the same streams over all transports at once.
// Over RDMA and TCP nothing works against loss, and the soft device sends again
// what it loses; over UDP QUIC's machinery runs. The RDMA packets are on port
// 4791.
func TestSample(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have one loopback address; run it on Linux")
	}
	s := clitest.Serve(t, "quic", "server", "--listen", clitest.Host()+":0")
	addr := s.Addr
	capture := filepath.Join(t.TempDir(), "quic.pcapng")
	o := clitest.RunTool(t, "quic", "client", addr, "--json", "--streams", "8", "--size", "1000000", "--datagrams", "20",
		"--on", "soft?loss=10%&seed=7&pcap="+capture+",tcp,udp")
	require.Zero(t, o.Code, o.Stderr)
	var r SampleReport
	d := json.NewDecoder(strings.NewReader(o.Stdout))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r))
	require.Equal(t, addr, r.Server)
	require.Len(t, r.Transports, 3)
	for i, name := range []string{"soft", "tcp", "udp"} {
		x := r.Transports[i]
		require.Equal(t, name, x.Transport)
		require.GreaterOrEqual(t, x.Stats.FramesSent["STREAM"], uint64(8))
		if name == "udp" {
			require.NotZero(t, x.Stats.FramesSent["ACK"])
			require.NotZero(t, x.Stats.RTTSamples["ACK"])
			continue
		}
		require.EqualValues(t, 20, x.DatagramsBack)
		require.Zero(t, x.Stats.FramesSent["ACK"])
		require.Zero(t, x.Stats.Lost+x.Stats.Retransmitted+x.Stats.CongestionEvents+x.Stats.MTUProbes)
	}
	soft := r.Transports[0]
	require.NotZero(t, soft.LocalQPN)
	require.NotZero(t, soft.RemoteQPN)
	require.NotZero(t, soft.Stats.Below.Retransmitted)

	summary := clitest.RunTool(t, "dump", "--summary", capture).Well(t)
	require.Contains(t, summary.Stdout, fmt.Sprintf("qpn 0x%06x", soft.LocalQPN))
	require.Contains(t, summary.Stdout, fmt.Sprintf("qpn 0x%06x", soft.RemoteQPN))

	o = clitest.RunTool(t, "quic", "client", addr, "--on", "soft,udp", "--size", "1000").Well(t)
	for _, text := range []string{"queue pair ", "4 streams of 1000 B there and back, every byte right; 100 of 100", "sent: ACK", "timers: pto", "below: sent again"} {
		require.Contains(t, o.Stdout, text)
	}
	require.Empty(t, s.Stop().Stderr)
}

// TestSampleUsage: options that cannot work are refused in one line.
func TestSampleUsage(t *testing.T) {
	clitest.Refused(t, 2, "", map[string]string{
		"quic client":                            "needs the HOST",
		"quic client a b":                        "at most 1",
		"quic client 127.0.0.1 --on":             "needs an argument",
		"quic client 127.0.0.1 --on tcp,tcp":     "names tcp twice",
		"quic client 127.0.0.1 --on tcp?loss=1%": "options are a soft device's",
		"quic client 127.0.0.1 --on tcp,":        "is no transport",
		"quic client 127.0.0.1 --streams -1":     "no negative",
		"quic server --listen localhost:1":       "literal ADDR:PORT",
		"quic server --max-clients 0":            "--max-clients",
	})
	clitest.Refused(t, 1, "", map[string]string{
		"quic client 127.0.0.1 --on nosuch0":        `no such RDMA device`,
		"quic client 127.0.0.1:9 --on tcp":          "connection refused",
		"quic server --listen 192.0.2.1:0 --on tcp": "the interfaces have",
	})
}
