package emu

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// tree lists everything below a path with its text, a line each.
func tree(t *testing.T, p *Process, at string) (lines []string) {
	t.Helper()
	names, err := p.ReadDir(at)
	if errors.Is(err, syscall.ENOTDIR) {
		text, err := readText(p, at)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			text = e.Errno.Error()
		}
		return []string{at + ": " + text}
	}
	require.NoError(t, err)
	for _, name := range names {
		lines = append(lines, tree(t, p, path.Join(at, name))...)
	}
	return lines
}

func readText(p *Process, name string) (string, error) {
	f, err := p.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var text strings.Builder
	b := make([]byte, 7)
	for {
		n, err := f.Read(context.Background(), b)
		text.Write(b[:n])
		if err == io.EOF {
			s, ok := strings.CutSuffix(text.String(), "\n")
			if !ok {
				return s, errors.New("no newline at the end")
			}
			return s, nil
		}
		if err != nil {
			return "", err
		}
	}
}

func TestSysfs(t *testing.T) {
	c := newClient(t, true)
	c.rts()
	c.dev.Doorbells.Store(42)
	want := `
/dev/infiniband/uverbs0: invalid argument
/dev/kmsg: ib_uverbs: module loaded
infiniband fake0: registered
/proc/modules: ib_uverbs 0 2 - Live 0x0000000000000000
/sys/class/infiniband/fake0/fw_ver: 1.2.3
/sys/class/infiniband/fake0/node_desc: fake0
/sys/class/infiniband/fake0/node_guid: 0200:0aff:fe00:0001
/sys/class/infiniband/fake0/node_type: 1: CA
/sys/class/infiniband/fake0/parent: lo
/sys/class/infiniband/fake0/ports/1/cap_mask: 0x00000000
/sys/class/infiniband/fake0/ports/1/gid_attrs/ndevs/0: lo
/sys/class/infiniband/fake0/ports/1/gid_attrs/ndevs/1: invalid argument
/sys/class/infiniband/fake0/ports/1/gid_attrs/ndevs/2: invalid argument
/sys/class/infiniband/fake0/ports/1/gid_attrs/ndevs/3: lo
/sys/class/infiniband/fake0/ports/1/gid_attrs/types/0: RoCE v2
/sys/class/infiniband/fake0/ports/1/gid_attrs/types/1: invalid argument
/sys/class/infiniband/fake0/ports/1/gid_attrs/types/2: invalid argument
/sys/class/infiniband/fake0/ports/1/gid_attrs/types/3: IB/RoCE v1
/sys/class/infiniband/fake0/ports/1/gids/0: 0000:0000:0000:0000:0000:ffff:0a00:0001
/sys/class/infiniband/fake0/ports/1/gids/1: 0000:0000:0000:0000:0000:0000:0000:0000
/sys/class/infiniband/fake0/ports/1/gids/2: 0000:0000:0000:0000:0000:0000:0000:0000
/sys/class/infiniband/fake0/ports/1/gids/3: fe80:0000:0000:0000:0000:0000:0000:0001
/sys/class/infiniband/fake0/ports/1/hw_counters/lifespan: 0
/sys/class/infiniband/fake0/ports/1/hw_counters/rcvd_pkts: 7
/sys/class/infiniband/fake0/ports/1/hw_counters/sent_pkts: 42
/sys/class/infiniband/fake0/ports/1/hw_counters_now: rcvd_pkts 7
sent_pkts 42
/sys/class/infiniband/fake0/ports/1/lid: 0x0
/sys/class/infiniband/fake0/ports/1/lid_mask_count: 0
/sys/class/infiniband/fake0/ports/1/link_layer: Ethernet
/sys/class/infiniband/fake0/ports/1/phys_state: 5: LinkUp
/sys/class/infiniband/fake0/ports/1/pkeys/0: 0xffff
/sys/class/infiniband/fake0/ports/1/qp/17: {"rdma_sends":5}
/sys/class/infiniband/fake0/ports/1/rate: 100 Gb/sec (4X EDR)
/sys/class/infiniband/fake0/ports/1/sm_lid: 0x0
/sys/class/infiniband/fake0/ports/1/sm_sl: 0
/sys/class/infiniband/fake0/ports/1/state: 4: ACTIVE
/sys/class/infiniband/fake0/power/async: disabled
/sys/class/infiniband/fake0/power/autosuspend_delay_ms: input/output error
/sys/class/infiniband/fake0/power/control: auto
/sys/class/infiniband/fake0/power/runtime_active_kids: 0
/sys/class/infiniband/fake0/power/runtime_active_time: 0
/sys/class/infiniband/fake0/power/runtime_enabled: disabled
/sys/class/infiniband/fake0/power/runtime_status: unsupported
/sys/class/infiniband/fake0/power/runtime_suspended_time: 0
/sys/class/infiniband/fake0/power/runtime_usage: 0
/sys/class/infiniband/fake0/sys_image_guid: 0200:0aff:fe00:0001
/sys/class/infiniband/fake0/uevent: NAME=fake0
/sys/class/infiniband_verbs/abi_version: 6
/sys/class/infiniband_verbs/uverbs0/abi_version: 2
/sys/class/infiniband_verbs/uverbs0/dev: 231:192
/sys/class/infiniband_verbs/uverbs0/ibdev: fake0
/sys/class/infiniband_verbs/uverbs0/power/async: disabled
/sys/class/infiniband_verbs/uverbs0/power/autosuspend_delay_ms: input/output error
/sys/class/infiniband_verbs/uverbs0/power/control: auto
/sys/class/infiniband_verbs/uverbs0/power/runtime_active_kids: 0
/sys/class/infiniband_verbs/uverbs0/power/runtime_active_time: 0
/sys/class/infiniband_verbs/uverbs0/power/runtime_enabled: disabled
/sys/class/infiniband_verbs/uverbs0/power/runtime_status: unsupported
/sys/class/infiniband_verbs/uverbs0/power/runtime_suspended_time: 0
/sys/class/infiniband_verbs/uverbs0/power/runtime_usage: 0
/sys/class/infiniband_verbs/uverbs0/uevent: MAJOR=231
MINOR=192
DEVNAME=infiniband/uverbs0
DEVMODE=0666
/sys/module/ib_uverbs/coresize: 0
/sys/module/ib_uverbs/initstate: live
/sys/module/ib_uverbs/refcnt: 2`
	c.dev.GIDTblLen = 4
	lines := tree(t, c.proc, "/")
	require.Equal(t, want, "\n"+strings.Join(lines, "\n"))

	for name, errno := range map[string]syscall.Errno{
		"/sys/class/infiniband/fake1/fw_ver":          syscall.ENOENT,
		"/sys/class/infiniband/fake0/ports/2/state":   syscall.ENOENT,
		"/sys/class/infiniband/fake0/ports/1/gids/4":  syscall.ENOENT,
		"/sys/class/infiniband/fake0/ports/1/gids/00": syscall.ENOENT,
		"/sys/class/infiniband/fake0/ports/1/gids/-1": syscall.ENOENT,
		"/sys/class/infiniband/fake0/fw_ver/x":        syscall.ENOTDIR,
		"/sys/class/infiniband/fake0":                 syscall.EISDIR,
		"/sys/class/infiniband/fake0/ports/1/qp/1":    syscall.ENOENT,
		"/dev/infiniband/uverbs1":                     syscall.ENOENT,
		"/dev/infiniband/rdma_cm":                     syscall.ENOENT,
		"sys/class":                                   syscall.ENOENT,
		"":                                            syscall.ENOENT,
	} {
		must.Fail(c.proc.Open(name))(t, errno, name)
	}
	must.Fail(c.proc.ReadDir("/sys/class/nothing"))(t, syscall.ENOENT)
	f := must.Get(c.proc.Open("/sys/class//infiniband/./fake0/fw_ver"))(t)
	must.Fail(f.Write([]byte("x")))(t, syscall.EBADF)
	require.ErrorIs(t, f.Ioctl(nil), syscall.ENOTTY)
	must.Fail(f.Mmap(0, 1))(t, syscall.ENODEV)
}

// TestDevices: names and numbers of several devices, and their reuse.
func TestDevices(t *testing.T) {
	m := New()
	a, b, c := kerneltest.NewDevice("a"), kerneltest.NewDevice("b"), kerneltest.NewDevice("c")
	require.NoError(t, m.Register(a))
	require.NoError(t, m.Register(b))
	require.ErrorIs(t, m.Register(kerneltest.NewDevice("a")), syscall.EEXIST)
	for _, name := range []string{"", "x/y", "."} {
		require.ErrorIs(t, m.Register(kerneltest.NewDevice(name)), syscall.EINVAL)
	}
	p := m.Process("p")
	defer p.Exit()
	names := func() []string {
		return must.Get(p.ReadDir("/sys/class/infiniband_verbs"))(t)
	}
	require.Equal(t, []string{"abi_version", "uverbs0", "uverbs1"}, names())
	require.NoError(t, m.Unregister("a"))
	require.ErrorIs(t, m.Unregister("a"), syscall.ENOENT)
	require.True(t, a.Closed)
	require.Equal(t, []string{"abi_version", "uverbs1"}, names())
	require.NoError(t, m.Register(c))
	text := must.Get(readText(p, "/sys/class/infiniband_verbs/uverbs0/ibdev"))(t)
	require.Equal(t, "c", text, "the lowest free number")
}

func TestRate(t *testing.T) {
	for want, x := range map[string][2]uint8{
		"2.5 Gb/sec (1X SDR)": {1, 1}, "10 Gb/sec (1X FDR10)": {8, 1}, "56 Gb/sec (4X FDR)": {16, 2},
		"100 Gb/sec (2X HDR)": {64, 16}, "30 Gb/sec (12X SDR)": {77, 8}, "40 Gb/sec (8X DDR)": {2, 4}, "10 Gb/sec (1X QDR)": {4, 1},
	} {
		require.Equal(t, want, rateText(x[0], x[1]))
	}
}
