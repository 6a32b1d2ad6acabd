package main

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/demo"
)

// A demo moves its file in pieces, of which some are outstanding at a time.
const demoChunk, demoDepth = 1 << 20, 4

// requireProof checks a demo.Report against the file itself.
func requireProof(t *testing.T, r demo.Report, path string) {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	require.Equal(t, digest, r.SHA256Source)
	require.Equal(t, digest, r.SHA256Server)
	require.Equal(t, digest, r.SHA256Readback)
	require.EqualValues(t, len(data), r.Bytes)
	require.NotZero(t, r.ServerPID)
	require.NotZero(t, r.ClientPID)
	require.NotEqual(t, r.ServerPID, r.ClientPID)
	require.NotEqual(t, r.ServerDevice.Address, r.ClientDevice.Address)
	// The bytes went over the wire, both ways, in packets of a private MTU at
	// most.
	packets := uint64(len(data)) / wire.MaxPrivateMTU
	require.Greater(t, r.Client["sent_pkts"], packets)
	require.Greater(t, r.Server["sent_pkts"], packets)
	require.GreaterOrEqual(t, r.Client["sent_bytes"], uint64(len(data)))
	if len(data) > 0 {
		require.Positive(t, r.Goodput)
	}
}

// TestDemoSizes at once: their devices do not get into each other's way.
func TestDemoSizes(t *testing.T) {
	for _, n := range []int{0, 1, 7, 4096, demoChunk, demoChunk + 1, 3*demoChunk + 4097, (demoDepth+2)*demoChunk - 1} {
		path := writeFile(t, n)
		t.Run(cli.Size(int64(n)), func(t *testing.T) {
			t.Parallel()
			requireProof(t, runDemo(t, path), path)
		})
	}
}

func TestDemoMTU(t *testing.T) {
	path := writeFile(t, 300_000)
	for _, mtu := range []string{"256", "1024"} {
		r := runDemo(t, "--mtu", mtu, path)
		requireProof(t, r, path)
		require.Greater(t, r.Client["sent_pkts"], uint64(300_000/1024))
	}
}

// TestDemoDefaultFile: without FILE the program moves itself.
func TestDemoDefaultFile(t *testing.T) {
	self := must.Get(os.Executable())(t)
	requireProof(t, runDemo(t), self)
}

// TestDemoNamedAddress: two processes cannot share an address and port, so
// that the client moves to a free port.
func TestDemoNamedAddress(t *testing.T) {
	path := writeFile(t, 10_000)
	r := runDemo(t, "--device", "soft:127.0.3.1", path)
	requireProof(t, r, path)
	require.True(t, strings.HasPrefix(r.ServerDevice.Address, "127.0.3.1:"), r.ServerDevice.Address)
	require.True(t, strings.HasPrefix(r.ClientDevice.Address, "127.0.3.1:"), r.ClientDevice.Address)
}

func TestDemoIPv6(t *testing.T) {
	if o := runTool(t, "devices", "--device", "soft:[::1]?port=0"); o.Code != 0 {
		t.Skipf("this machine has no ::1 (%s); enable IPv6 to run this", strings.TrimSpace(o.Stderr))
	}
	path := writeFile(t, 100_000)
	requireProof(t, runDemo(t, "--device", "soft:[::1]", path), path)
}

// TestDemoUnderFaults moves 100 MiB over a bad wire; the counters show that the
// wire was as bad as asked for, and that each kind of recovery happened.
func TestDemoUnderFaults(t *testing.T) {
	n := 100 << 20
	if testing.Short() {
		n = 8 << 20
	}
	path := writeFile(t, n)
	r := runDemo(t, "--loss", "5%", "--reorder", "10%", "--dup", "1%", "--corrupt", "1%", "--seed", "7", path)
	requireProof(t, r, path)
	for who, c := range map[string]map[string]uint64{"client": r.Client, "server": r.Server} {
		for name, share := range map[string]float64{"fault_loss": 0.05, "fault_reorder": 0.1, "fault_dup": 0.01, "fault_corrupt": 0.01} {
			want := share * float64(c["sent_pkts"])
			require.InDelta(t, want, float64(c[name]), want/2+4*math.Sqrt(want), "%s of the %s: %d of %d packets", name, who, c[name], c["sent_pkts"])
		}
		require.Positive(t, c["drop_icrc"], who)
	}
	sum := func(name string) uint64 { return r.Client[name] + r.Server[name] }
	require.Positive(t, sum("retransmitted_pkts"))
	require.Positive(t, sum("out_of_seq_request"), "sequence NAKs sent")
	require.Positive(t, sum("rcvd_seq_err"), "sequence NAKs received")
	require.Positive(t, sum("duplicate_request"))
	t.Logf("%d MiB: write %.1f s, read %.1f s, %d retransmissions", n>>20, r.WriteSeconds, r.ReadSeconds, sum("retransmitted_pkts"))
}

// TestDemoCaptures: one file holds what the client sent and got, one with {pid}
// in its name what each side did, and what the one sent the other got.
func TestDemoCaptures(t *testing.T) {
	// packets counts those that left and those that came, in each capture.
	packets := func(device string) (all [][2]int) {
		t.Helper()
		dir := t.TempDir()
		path := writeFile(t, 100_000)
		requireProof(t, runDemo(t, "--device", device+"?mtu=4096&pcap="+filepath.Join(dir, "demo-{pid}.pcapng"), path), path)
		files := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
		for _, f := range files {
			require.Regexp(t, `/demo-\d+\.pcapng$`, f)
			text := runTool(t, "dump", f).Stdout
			all = append(all, [2]int{strings.Count(text, " out "), strings.Count(text, " in ")})
		}
		return all
	}
	for _, device := range []string{"soft", "soft:127.0.9.17"} {
		all := packets(device)
		require.Len(t, all, 2, "the client's and the server's")
		for i, c := range all {
			require.Greater(t, c[0], 20)
			require.Greater(t, c[1], 20)
			require.InDelta(t, c[0], all[1-i][1], 4, "what leaves the one comes to the other, which may close before the last")
		}
	}
}
