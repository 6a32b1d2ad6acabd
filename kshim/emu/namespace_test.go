package emu

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestNamespaces: a process on a device sees that device only, and has ports of
// its own, also where another device has the same address.
func TestNamespaces(t *testing.T) {
	m, w := New(), kerneltest.NewCMWire()
	devs := []*kerneltest.CMDevice{w.Device("one", "10.0.0.1"), w.Device("two", "10.0.0.1")}
	for _, d := range devs {
		require.NoError(t, m.Register(d))
	}
	everything := m.Process("all")
	defer everything.Exit()
	list := must.Get(everything.ReadDir("/dev/infiniband"))(t)
	require.Equal(t, []string{"rdma_cm", "uverbs0", "uverbs1"}, list)

	must.Fail(m.ProcessOn("three", "p"))(t, syscall.ENODEV)
	other := map[string]string{"one": "uverbs1", "two": "uverbs0"}
	for _, d := range devs {
		p := must.Get(m.ProcessOn(d.Name(), "p"))(t)
		defer p.Exit()
		list := must.Get(p.ReadDir("/sys/class/infiniband"))(t)
		require.Equal(t, []string{d.Name()}, list)
		list = must.Get(p.ReadDir("/dev/infiniband"))(t)
		require.Len(t, list, 2)
		require.NotContains(t, list, other[d.Name()])
		must.Fail(p.Open("/dev/infiniband/"+other[d.Name()]))(t, syscall.ENOENT)

		ch := must.Get(rdmacm.Open(p))(t)
		defer ch.Close()
		l, err := ch.Listen(netip.MustParseAddrPort("10.0.0.1:7471"), 0, rdmacm.Options{})
		require.NoError(t, err, "the port is free in each namespace")
		defer l.Close()
		_, err = ch.Listen(netip.MustParseAddrPort("10.0.0.1:7471"), 0, rdmacm.Options{})
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}

// TestStalledDriver: a driver that does not answer holds up the users of its
// own device only, and also when such a user is killed.
func TestStalledDriver(t *testing.T) {
	m := New()
	stalled := kerneltest.NewDevice("stalled")
	entered, resume := make(chan struct{}), make(chan struct{})
	stalled.Hook = func(step string) {
		if step == "AllocPD" {
			close(entered)
			<-resume
		}
	}
	require.NoError(t, m.Register(stalled))
	victim := must.Get(m.ProcessOn("stalled", "victim"))(t)
	v := must.Get(verbs.Open(victim, "stalled"))(t)
	failed := make(chan error)
	go func() {
		_, err := v.AllocPD()
		failed <- err
	}()
	<-entered

	use := func(name string) {
		dev := kerneltest.NewDevice(name)
		require.NoError(t, m.Install(driverModule(name, dev)))
		require.NoError(t, m.Insmod(name))
		p := must.Get(m.ProcessOn(name, "user"))(t)
		c := must.Get(verbs.Open(p, name))(t)
		pd := must.Get(c.AllocPD())(t)
		require.NoError(t, pd.Dealloc())
		require.NoError(t, c.Close())
		p.Exit()
		list := must.Get(m.Process("all").ReadDir("/sys/class/infiniband"))(t)
		require.Equal(t, []string{name, "stalled"}, list)
		require.NoError(t, m.Rmmod(name))
		dev.Check(t)
	}
	use("beside")
	require.NoError(t, m.Kill(victim))
	use("later")
	close(resume)
	require.ErrorIs(t, <-failed, syscall.ESRCH)
	<-victim.Done()
	require.NoError(t, m.Unregister("stalled"))
	stalled.Check(t)
}
