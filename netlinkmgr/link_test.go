package netlinkmgr_test

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// TestAddLinkErrors: the meanings of one errno of the kernel are told apart.
func TestAddLinkErrors(t *testing.T) {
	for _, c := range []struct {
		name               string
		make               func(*netlinktest.Kernel)
		link, kind, netdev string
		target             any
		errno              syscall.Errno
		says               string
	}{
		{"no RDMA core", func(k *netlinktest.Kernel) { clear(k.Modules) }, "rxe0", "rxe", "eth0", new(*netlinkmgr.NoRDMAError), syscall.EPROTONOSUPPORT, "rdmashim link up"},
		{"rxe not loaded", func(k *netlinktest.Kernel) { delete(k.Modules, "rdma_rxe") }, "rxe0", "rxe", "eth0", new(*netlinkmgr.OpError), syscall.EINVAL, "rdmashim link up eth0"},
		{"rxe not there", func(k *netlinktest.Kernel) { delete(k.Modules, "rdma_rxe"); noModules(k) }, "rxe0", "rxe", "eth0", new(*netlinkmgr.NoModuleError), syscall.ENOENT, "no module rdma_rxe"},
		{"checksum not loaded", func(k *netlinktest.Kernel) { delete(k.Modules, "crc32_generic") }, "rxe0", "rxe", "eth0", new(*netlinkmgr.OpError), syscall.ENOENT, "crc32_generic is not loaded"},
		{"checksum not there", func(k *netlinktest.Kernel) { delete(k.Modules, "crc32_generic"); noModules(k) }, "rxe0", "rxe", "eth0", new(*netlinkmgr.NoModuleError), syscall.ENOENT, "no module crc32_generic"},
		{"unknown kind", nil, "rxe0", "siw", "eth0", new(*netlinkmgr.OpError), syscall.EINVAL, `no link type "siw"`},
		{"rxe refuses", func(k *netlinktest.Kernel) { k.Refuse["newlink"] = syscall.EINVAL }, "rxe0", "rxe", "eth0", new(*netlinkmgr.OpError), syscall.EINVAL, "create link rxe0"},
		{"no permission", func(k *netlinktest.Kernel) { k.Refuse["newlink"] = syscall.EPERM }, "rxe0", "rxe", "eth0", new(*netlinkmgr.PermissionError), syscall.EPERM, "CAP_NET_ADMIN"},
		{"no name", nil, "", "rxe", "eth0", new(*netlinkmgr.OpError), syscall.EINVAL, `""`},
		{"long name", nil, string(make([]byte, 64)), "rxe", "eth0", new(*netlinkmgr.OpError), syscall.EINVAL, "name of a link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := netlinktest.New()
			k.LoadRXE()
			if c.make != nil {
				c.make(k)
			}
			err := k.Manager().AddLink(t.Context(), c.link, c.kind, c.netdev)
			require.ErrorAs(t, err, c.target)
			require.ErrorIs(t, err, c.errno)
			require.Contains(t, err.Error(), c.says)
			require.Empty(t, k.Links)
		})
	}
}

func noModules(k *netlinktest.Kernel) {
	delete(k.Files, "lib/modules/"+netlinktest.Release+"/modules.dep")
}

func TestDeleteLinkErrors(t *testing.T) {
	k := netlinktest.New()
	k.LoadRXE()
	k.AddLink("mlx5_0", "docker0", false)
	m := k.Manager()
	require.ErrorContains(t, m.DeleteLink(t.Context(), "mlx5_0"), "not made by adding a link")
	err := m.DeleteLink(t.Context(), "rxe0")
	require.ErrorIs(t, err, syscall.ENODEV)
	require.ErrorContains(t, err, "there are: mlx5_0")
	k.AddLink("rxe0", "eth0", true)
	k.Refuse["dellink"] = syscall.EPERM
	require.ErrorAs(t, m.DeleteLink(t.Context(), "rxe0"), new(*netlinkmgr.PermissionError))
}

func TestIsRXE(t *testing.T) {
	k := netlinktest.New()
	k.LoadRXE()
	k.AddLink("rxe0", "eth0", true)
	k.AddLink("mlx5_0", "docker0", false)
	m := k.Manager()
	for _, uverbs := range []bool{true, false} {
		k.Modules["ib_uverbs"] = uverbs
		list := must.Get(m.Devices(t.Context()))(t)
		require.True(t, m.IsRXE(t.Context(), list[0]), "uverbs %v", uverbs)
		require.False(t, m.IsRXE(t.Context(), list[1]), "uverbs %v", uverbs)
	}
}

func TestNetNSMode(t *testing.T) {
	k := netlinktest.New()
	k.LoadRXE()
	m := k.Manager()
	require.NoError(t, m.SetNetNS(t.Context(), false))
	s := must.Get(m.System(t.Context()))(t)
	require.Equal(t, "exclusive", s.NetNS.String())
	require.NoError(t, m.SetNetNS(t.Context(), true))
	require.False(t, k.Exclusive)
	k.Refuse["setnetns"] = syscall.EBUSY
	require.ErrorIs(t, m.SetNetNS(t.Context(), false), syscall.EBUSY)
	k.Refuse["setnetns"] = syscall.EPERM
	require.ErrorAs(t, m.SetNetNS(t.Context(), false), new(*netlinkmgr.PermissionError))
}

// TestBrokenKernel: answers that make no sense are errors of all calls.
func TestBrokenKernel(t *testing.T) {
	for name, answers := range map[string][][]byte{"garbage": {{1, 2, 3}}, "nothing": nil, "empty": {{}}} {
		m := netlinkmgr.New(netlinkmgr.Kernel{RDMA: func(context.Context, netlinkmgr.Request) ([][]byte, error) { return answers, nil }})
		d := netlinkmgr.Device{Name: "rxe0", Ports: 1}
		_, err := m.Port(t.Context(), d, 1)
		require.Error(t, err, name)
		_, err = m.Summary(t.Context(), d)
		require.Error(t, err, name)
		_, err = m.Counters(t.Context(), d, 1)
		require.Error(t, err, name)
		_, err = m.CharDev(t.Context(), d, "uverbs")
		require.Error(t, err, name)
		if name != "nothing" {
			must.Fail(m.QPs(t.Context(), d))(t, syscall.EBADMSG, name)
			must.Fail(m.Devices(t.Context()))(t, syscall.EBADMSG, name)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	must.Fail(netlinktest.New().Manager().Devices(ctx))(t, why)
}

// TestLinksOfDevicesThatGo: a list has those that stayed.
func TestLinksOfDevicesThatGo(t *testing.T) {
	k := netlinktest.New()
	k.LoadRXE()
	k.AddLink("rxe0", "eth0", true)
	k.AddLink("rxe1", "docker0", true)
	f := k.Functions()
	rdma, asked := f.RDMA, false
	f.RDMA = func(ctx context.Context, r netlinkmgr.Request) ([][]byte, error) {
		if r.Command == "PORT_GET" && !asked {
			asked = true
			return nil, syscall.ENODEV
		}
		return rdma(ctx, r)
	}
	list := must.Get(netlinkmgr.New(f).Links(t.Context()))(t)
	require.Len(t, list, 1)
	require.Equal(t, "rxe1", list[0].Device)
}
