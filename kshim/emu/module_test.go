package emu

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// driverModule is a module that brings one fake device.
func driverModule(name string, dev *kerneltest.Device) Module {
	return Module{
		Name: name, Size: 135168, Needs: []string{moduleUverbs},
		Init: func(this *Driver) error { return this.Register(dev) },
		Exit: func(this *Driver) error { return this.Unregister(dev.Name()) },
	}
}

// names lists the loaded modules with their references: "soft:1".
func loaded(m *Machine) string {
	var list []string
	for _, i := range m.Lsmod() {
		list = append(list, i.Name)
	}
	return strings.Join(list, " ")
}

// bare is a machine without ib_uverbs.
func bare(t *testing.T) *Machine {
	m := New()
	require.NoError(t, m.Rmmod(moduleUverbs))
	return m
}

func TestModules(t *testing.T) {
	m := bare(t)
	a := kerneltest.NewDevice("fake0")
	require.NoError(t, m.Install(driverModule("soft", a)))
	require.ErrorIs(t, m.Install(driverModule("soft", a)), syscall.EEXIST)
	for _, bad := range []string{"", "a b", "a/b", "a\n", strings.Repeat("x", 56)} {
		require.ErrorIs(t, m.Install(Module{Name: bad}), syscall.EINVAL, "%q", bad)
	}
	require.Empty(t, m.Lsmod())

	require.ErrorIs(t, m.Insmod("nothing"), syscall.ENOENT)
	require.ErrorIs(t, m.Rmmod("nothing"), syscall.ENOENT)
	require.ErrorIs(t, m.Rmmod("soft"), syscall.ENOENT, "installed, not loaded")
	err := m.Insmod("soft")
	require.ErrorIs(t, err, syscall.ENOENT, "what it needs is not there")
	require.ErrorContains(t, err, "insmod soft: it needs module ib_uverbs")
	require.NoError(t, m.Modprobe("soft"))
	require.NoError(t, m.Modprobe("soft"), "already there")
	require.ErrorIs(t, m.Insmod("soft"), syscall.EEXIST)
	require.Equal(t, []ModuleInfo{
		{Name: "soft", Size: 135168, State: ModuleLive},
		{Name: "ib_uverbs", Refs: 1, UsedBy: []string{"soft"}, State: ModuleLive},
	}, m.Lsmod())

	p := m.Process("p")
	defer p.Exit()
	text := must.Get(readText(p, "/proc/modules"))(t)
	require.Equal(t, "soft 135168 0 - Live 0x0000000000000000\nib_uverbs 0 1 soft, Live 0x0000000000000000", text)
	for name, want := range map[string]string{
		"soft/initstate": "live", "soft/coresize": "135168", "soft/refcnt": "0",
		"ib_uverbs/refcnt": "1", "ib_uverbs/holders/soft/refcnt": "0",
	} {
		text := must.Get(readText(p, "/sys/module/"+name))(t)
		require.Equal(t, want, text, name)
	}

	err = m.Rmmod("ib_uverbs")
	require.ErrorIs(t, err, syscall.EBUSY)
	require.ErrorContains(t, err, "needed by soft")
	require.NoError(t, m.Rmmod("soft"))
	require.True(t, a.Closed)
	require.NoError(t, m.Rmmod("ib_uverbs"))
	require.Empty(t, m.Lsmod())
	require.Empty(t, m.list())
	must.Fail(p.ReadDir("/sys/module/soft"))(t, syscall.ENOENT)
}

// TestWithoutUverbs: a device is there, its file is not.
func TestWithoutUverbs(t *testing.T) {
	m := bare(t)
	a, b := kerneltest.NewDevice("a"), kerneltest.NewDevice("b")
	require.NoError(t, m.Register(a))
	require.NoError(t, m.Register(b))
	p := m.Process("p")
	defer p.Exit()
	must.Fail(p.Open("/dev/infiniband/uverbs0"))(t, syscall.ENOENT)
	for _, path := range []string{"/dev/infiniband", "/sys/class/infiniband_verbs"} {
		must.Fail(p.ReadDir(path))(t, syscall.ENOENT)
	}
	text := must.Get(readText(p, "/sys/class/infiniband/a/node_type"))(t)
	require.Equal(t, "1: CA", text)

	require.NoError(t, m.Insmod("ib_uverbs"))
	f := must.Get(p.Open("/dev/infiniband/uverbs1"))(t)
	text = must.Get(readText(p, "/sys/class/infiniband_verbs/uverbs1/ibdev"))(t)
	require.Equal(t, "b", text)
	require.ErrorIs(t, m.Rmmod("ib_uverbs"), syscall.EBUSY)
	require.NoError(t, m.Unregister("a"))
	require.NoError(t, f.Close())
	require.NoError(t, m.Rmmod("ib_uverbs"))
	must.Fail(p.Open("/dev/infiniband/uverbs1"))(t, syscall.ENOENT)
	require.NoError(t, m.Insmod("ib_uverbs"))
	text = must.Get(readText(p, "/sys/class/infiniband_verbs/uverbs0/ibdev"))(t)
	require.Equal(t, "b", text, "numbers are given anew")
}

// TestModuleHolds: the objects that hold a module, and for how long.
func TestModuleHolds(t *testing.T) {
	m, dev := New(), kerneltest.NewDevice("fake0")
	require.NoError(t, m.Install(driverModule("soft", dev)))
	require.NoError(t, m.Insmod("soft"))
	c := &client{t: t, m: m, dev: dev, proc: m.Process("p"), page: make([]byte, 4096)}
	defer c.proc.Exit()
	refs := func(uverbs, soft int) {
		t.Helper()
		got := map[string]int{}
		for _, i := range m.Lsmod() {
			got[i.Name] = i.Refs
		}
		require.Equal(t, map[string]int{"ib_uverbs": uverbs, "soft": soft}, got)
	}
	refs(1, 0)
	must.Fail(c.proc.Open("/dev/infiniband/uverbs7"))(t, syscall.ENOENT)
	refs(1, 0)
	c.open(false)
	refs(2, 1)
	err := m.Rmmod("soft")
	require.ErrorIs(t, err, syscall.EBUSY)
	require.ErrorContains(t, err, "1 open files")
	must.Get(c.do(abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8))(t)
	refs(3, 1)
	must.Fail(c.do(abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8))(t, syscall.EINVAL)
	refs(3, 1)
	ch, _ := c.channel()
	refs(4, 1)
	require.NoError(t, c.f.Close())
	refs(3, 1) // event files are the context's
	require.NoError(t, ch.Close())
	refs(2, 1)
	require.ErrorIs(t, m.Rmmod("soft"), syscall.EBUSY)
	c.proc.Exit()
	require.NoError(t, m.Rmmod("soft"))
	require.NoError(t, m.Rmmod("ib_uverbs"))
	dev.Check(t)
}

// TestDriverAfterUnplug: a device that is taken away under an open file gives
// its driver back; the file needs ib_uverbs only.
func TestDriverAfterUnplug(t *testing.T) {
	m, dev := New(), kerneltest.NewDevice("fake0")
	require.NoError(t, m.Install(driverModule("soft", dev)))
	require.NoError(t, m.Insmod("soft"))
	c := &client{t: t, m: m, dev: dev, proc: m.Process("p"), page: make([]byte, 4096)}
	defer c.proc.Exit()
	c.open(true)
	c.rts()
	require.ErrorIs(t, m.Rmmod("soft"), syscall.EBUSY)
	require.NoError(t, m.Unregister("fake0"))
	require.ErrorIs(t, m.Rmmod("soft"), syscall.ENOENT, "its exit says that the device has gone")
	require.Equal(t, "ib_uverbs", loaded(m), "but it is unloaded")
	require.ErrorIs(t, m.Rmmod("ib_uverbs"), syscall.EBUSY)
	c.proc.Exit()
	require.NoError(t, m.Rmmod("ib_uverbs"))
}

// TestInitFails: nothing is left of a module whose init fails, whatever it did
// before.
func TestInitFails(t *testing.T) {
	m, dev := New(), kerneltest.NewDevice("fake0")
	p := m.Process("p")
	defer p.Exit()
	var this *Driver
	why := errors.New("no such card")
	require.NoError(t, m.Install(Module{Name: "bad", Needs: []string{moduleUverbs, moduleUverbs}, Init: func(d *Driver) error {
		this = d
		require.NoError(t, d.Register(dev))
		must.Get(p.Open("/dev/infiniband/uverbs0"))(t) // udev is quick
		require.Equal(t, ModuleLoading, m.Lsmod()[0].State)
		require.ErrorIs(t, m.Insmod("bad"), syscall.EBUSY)
		require.ErrorIs(t, m.Rmmod("bad"), syscall.EBUSY)
		return why
	}}))
	require.NoError(t, m.Install(Module{Name: "after", Needs: []string{"bad"}}))
	err := m.Insmod("bad")
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, "insmod bad")
	require.True(t, dev.Closed)
	require.Equal(t, []ModuleInfo{{Name: "ib_uverbs", Refs: 1, State: ModuleLive}}, m.Lsmod(), "the open file")
	require.Empty(t, m.list())
	require.ErrorIs(t, this.Register(kerneltest.NewDevice("late")), syscall.ENODEV)
	require.ErrorIs(t, m.Insmod("after"), syscall.ENOENT)
	require.ErrorIs(t, m.Modprobe("after"), why)
	p.Exit()
	require.NoError(t, m.Rmmod("ib_uverbs"))
}

// TestExitFails: it has gone all the same.
func TestExitFails(t *testing.T) {
	m, dev := New(), kerneltest.NewDevice("fake0")
	why := errors.New("forgot how")
	require.NoError(t, m.Install(Module{
		Name: "soft",
		Init: func(d *Driver) error { return d.Register(dev) },
		Exit: func(d *Driver) error {
			require.ErrorIs(t, d.Register(kerneltest.NewDevice("late")), syscall.ENODEV)
			require.ErrorIs(t, m.Rmmod("soft"), syscall.EBUSY)
			require.ErrorIs(t, m.Insmod("soft"), syscall.EBUSY)
			must.Fail(m.Process("p").Open("/dev/infiniband/uverbs0"))(t, syscall.ENODEV)
			require.Zero(t, m.Lsmod()[1].Refs, "the open that failed")
			return why
		},
	}))
	require.NoError(t, m.Insmod("soft"))
	require.ErrorIs(t, m.Rmmod("soft"), why)
	require.Equal(t, "ib_uverbs", loaded(m))
	require.True(t, dev.Closed)
	require.Empty(t, m.list())
}

func TestModprobe(t *testing.T) {
	m := New()
	for name, needs := range map[string][]string{
		"a": {"b", "c"}, "b": {"c"}, "c": nil, "round": {"and"}, "and": {"round"}, "lost": {"c", "nowhere"}, "self": {"self"},
	} {
		require.NoError(t, m.Install(Module{Name: name, Needs: needs}))
	}
	require.NoError(t, m.Modprobe("a"))
	require.Equal(t, "a b c ib_uverbs", loaded(m))
	require.Equal(t, ModuleInfo{Name: "c", Refs: 2, UsedBy: []string{"a", "b"}, State: ModuleLive}, m.Lsmod()[2])
	require.ErrorIs(t, m.Rmmod("c"), syscall.EBUSY)
	require.ErrorIs(t, m.Modprobe("round"), syscall.ELOOP)
	require.ErrorIs(t, m.Modprobe("self"), syscall.ELOOP)
	require.ErrorIs(t, m.Insmod("self"), syscall.ENOENT)
	require.ErrorIs(t, m.Modprobe("lost"), syscall.ENOENT)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, m.Rmmod(name))
	}
}

// TestModuleStorm: loading, unloading, opening and closing at once. A call that
// succeeds leaves nothing behind.
func TestModuleStorm(t *testing.T) {
	m := New()
	var mu sync.Mutex
	var devices []*kerneltest.Device
	require.NoError(t, m.Install(Module{
		Name: "soft", Needs: []string{moduleUverbs},
		Init: func(d *Driver) error {
			dev := kerneltest.NewDevice("fake0")
			mu.Lock()
			devices = append(devices, dev)
			mu.Unlock()
			return d.Register(dev)
		},
	}))
	allowed := func(err error, errnos ...syscall.Errno) {
		for _, e := range errnos {
			if errors.Is(err, e) {
				return
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for range 500 {
				allowed(m.Insmod("soft"), syscall.EEXIST, syscall.EBUSY, syscall.ENOENT)
				allowed(m.Rmmod("soft"), syscall.EBUSY, syscall.ENOENT)
				if i == 0 {
					allowed(m.Rmmod("ib_uverbs"), syscall.EBUSY)
					allowed(m.Modprobe("ib_uverbs"))
				}
			}
		})
		wg.Go(func() {
			p := m.Process("p")
			defer p.Exit()
			page := make([]byte, 64)
			for range 1000 {
				f, err := p.Open("/dev/infiniband/uverbs0")
				allowed(err, syscall.ENOENT, syscall.ENODEV, syscall.ENXIO)
				if err != nil {
					continue
				}
				addr, release := f.Pin(page)
				_, err = f.Write(encode(abi.CmdGetContext, &abi.GetContext{Response: addr}, 8))
				allowed(err)
				_, err = f.Write(encode(abi.CmdAllocPD, &abi.AllocPD{Response: addr}, 4))
				allowed(err)
				release()
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	allowed(m.Rmmod("soft"), syscall.ENOENT)
	require.NoError(t, m.Rmmod("ib_uverbs"))
	for _, d := range devices {
		d.Check(t)
		require.True(t, d.Closed)
	}
}
