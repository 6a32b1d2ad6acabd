package doctor

import (
	"bytes"
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestGolden holds both forms of a report: the JSON is for programs and stays
// as it is.
func TestGolden(t *testing.T) {
	b := newBench()
	delete(b.k.Modules, "rdma_ucm")
	b.k.Dev("eth0").MTU = 700
	b.k.AddLink("mlx5_0", "eth0", false)
	b.k.Files["etc/os-release"] = "ID=ubuntu\n" // no difference between machines' names
	b.Memlock = func() (int64, error) { return 8 << 20, nil }
	b.Open = func(string) (*uapi.Device, error) { return nil, syscall.EACCES }
	r := must.Get(Run(t.Context(), b.System, Options{Device: "rxe0"}))(t)
	for file, print := range map[string]func(*bytes.Buffer) error{
		"testdata/report.json": func(w *bytes.Buffer) error { return cli.PrintJSON(w, r) },
		"testdata/report.txt":  func(w *bytes.Buffer) error { return r.Text(w) },
	} {
		var got bytes.Buffer
		require.NoError(t, print(&got))
		clitest.Golden(t, file, got.String())
	}
}

func TestBadName(t *testing.T) {
	for _, name := range []string{"soft?x=1", "a/b", "host:"} {
		_, err := Run(t.Context(), newBench().System, Options{Device: name})
		require.ErrorIs(t, err, syscall.EINVAL, name)
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, newBench().opens().System, Options{Device: "sim"})
	require.ErrorIs(t, err, context.Canceled)
}

// TestSoftLimits breaks the limits that the system sets a soft device.
func TestSoftLimits(t *testing.T) {
	for _, c := range []breakage{
		{"asked for", "buffers", func(b *bench) { b.Buffers = func(int) (int, int, error) { return 212992, 212992, nil } }, Options{Device: "soft?buffer=106496&port=0"}, Pass, "as the device's name asks", ""},
		{"small buffers", "buffers", func(b *bench) { b.Buffers = func(int) (int, int, error) { return 212992, 212992, nil } }, Options{}, Warn, "208 KiB to receive", "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304   (or mtu=1024"},
		{"small send buffer", "buffers", func(b *bench) { b.Buffers = func(n int) (int, int, error) { return n, 212992, nil } }, Options{}, Warn, "208 KiB to send", "wmem_max"},
		{"only for the privileged", "buffers", func(b *bench) {
			b.k.Files["proc/self/status"] = allCaps
			b.k.Files["proc/sys/net/core/rmem_max"] = "212992\n"
		}, Options{}, Pass, "others get net.core.rmem_max, 212992", ""},
		{"only for the privileged, by little", "buffers", func(b *bench) {
			b.k.Files["proc/self/status"] = allCaps
			b.k.Files["proc/sys/net/core/rmem_max"] = "1000000\n"
		}, Options{}, Pass, "others get net.core.rmem_max, 1000000", ""},
		{"no limit known", "buffers", func(b *bench) { b.Buffers = nil }, Options{}, Skip, "tells no limit", ""},
		{"old kernel", "offload", func(b *bench) { b.Segmentation = func() (bool, bool, error) { return true, false, nil } }, Options{}, Warn, "know no GRO", "Linux 5.0"},
		{"no descriptor", "offload", func(b *bench) { b.Segmentation = func() (bool, bool, error) { return false, false, syscall.EMFILE } }, Options{}, Skip, "too many open files", ""},
		{"none left", "descriptors", func(b *bench) {
			b.Open = func(string) (*uapi.Device, error) { return nil, syscall.EMFILE }
		}, Options{}, Fail, "EMFILE", "ulimit -n 1024"},
		{"none left to open", "loopback", func(b *bench) {
			b.Open = func(string) (*uapi.Device, error) { return nil, syscall.EMFILE }
		}, Options{}, Fail, "too many open files", "see descriptors"},
		{"switched off", "offload", func(b *bench) {
			b.Features = func(string) (map[string]bool, error) { return on("rx-gro"), nil }
			b.k.Devs[0].Loopback = false
		}, Options{}, Warn, "GSO is off on lo", "ethtool -K lo gso on gro on"},
		{"GRO of a card off", "offload", func(b *bench) {
			b.Features = func(string) (map[string]bool, error) { return on("tx-generic-segmentation"), nil }
			b.k.Devs[0].Loopback, b.k.Devs[0].Physical = false, true
		}, Options{}, Warn, "GRO is off on lo", "ethtool -K lo gso on gro on"},
		{"asked for", "offload", func(b *bench) { b.Segmentation = func() (bool, bool, error) { return false, false, nil } }, Options{Device: "soft?gso=off&port=0"}, Pass, "as the device's name asks", ""},
		{"card on lo", "hardware", func(b *bench) { b.k.AddLink("mlx5_0", "lo", false) }, Options{}, Warn, "mlx5_0 is on lo", "a network device without"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.Device == "" {
				c.o.Device = "soft?port=0"
			}
			if c.status == Warn {
				require.Equal(t, Pass, newBench().opens().examine(t, c.o, c.check).Status, "unbroken")
			}
			b := newBench().opens()
			c.do(b)
			requireCheck(t, b.examine(t, c.o, c.check), c.status, c.says, c.fix)
		})
	}
}

// TestNothingKnown: a system that tells nothing has its checks skipped, and the
// device works.
func TestNothingKnown(t *testing.T) {
	s := System{Open: func(device string) (*uapi.Device, error) { return uapi.Open(device, uapi.OpenConfig{}) }}
	for _, device := range []string{"soft?port=0", "sim"} {
		r := must.Get(Run(t.Context(), s, Options{Device: device}))(t)
		require.True(t, r.OK, "%+v", r)
		require.Equal(t, Pass, find(t, r, "loopback").Status)
	}
	s.Open = func(string) (*uapi.Device, error) { return nil, syscall.ENOTSUP }
	r := must.Get(Run(t.Context(), s, Options{Device: "rxe0"}))(t)
	require.False(t, r.OK)
	require.Equal(t, "use a soft device: rdmashim doctor soft", find(t, r, "loopback").Fix)
}
