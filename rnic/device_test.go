package rnic

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/tests/must"
)

// fixed is a link with given Caps that carries nothing.
type fixed struct {
	link.Link
	caps link.Caps
}

func newFixed(local string, mtu int) *fixed {
	at := netip.MustParseAddrPort(local)
	l, err := sim.NewNetwork(sim.Options{MTU: mtu}).Attach(at)
	if err != nil {
		panic(err)
	}
	return &fixed{l, link.Caps{Local: at, MTU: mtu, BatchSize: 8, NetDev: "veth7", IfIndex: 7}}
}

func (f *fixed) Send([]link.Packet) error { return nil }
func (f *fixed) Caps() link.Caps          { return f.caps }

func TestNewRefuses(t *testing.T) {
	ok := newFixed("10.0.0.1:4791", 1472)
	for name, c := range map[string]Config{
		"no name":        {Link: ok},
		"no link":        {Name: "soft0"},
		"no such MTU":    {Name: "soft0", Link: ok, MTU: 1000},
		"MTU too large":  {Name: "soft0", Link: ok, MTU: 2048},
		"link too small": {Name: "soft0", Link: newFixed("10.0.0.1:4791", 256)},
	} {
		must.Fail(New(c))(t, syscall.EINVAL, name)
	}
	_, err := ok.Recv(make([]link.Packet, 1))
	require.NoError(t, err, "a device that was not made leaves its link open")
}

func TestActiveMTU(t *testing.T) {
	for _, c := range []struct {
		ask, link int
		want      abi.MTU
	}{
		{0, 1500 - 28, abi.MTU1024}, // as rxe: netdev 1500 → 1024
		{0, 4500 - 28, abi.MTU4096}, // 4500 → 4096
		{0, 65507, abi.MTU4096},
		{0, 4096 + 52, abi.MTU4096},
		{0, 4096 + 51, abi.MTU2048},
		{0, 256 + 52, abi.MTU256},
		{256, 65507, abi.MTU256},
		{2048, 65507, abi.MTU2048},
	} {
		m := must.Get(activeMTU(c.ask, link.Caps{MTU: c.link}))(t)
		require.Equal(t, c.want, m, "%+v", c)
	}
}

func TestWindowFollowsTheBuffer(t *testing.T) {
	window := func(set, room int) int {
		return tune(engine.Tuning{MaxWindow: set}, link.Caps{Window: room}).MaxWindow
	}
	require.Equal(t, 0, window(0, 0), "the engine's default")
	require.Equal(t, 99840, window(0, 99840))
	require.Equal(t, 1<<20, window(0, 8<<20))
	require.Equal(t, 8192, window(0, 4096))
	require.Equal(t, 5000, window(5000, 99840))

	require.Equal(t, 99840, pathLimit(engine.Tuning{}, link.Caps{Window: 99840}))
	require.Equal(t, 8<<20, pathLimit(engine.Tuning{}, link.Caps{Window: 8 << 20}))
	require.Zero(t, pathLimit(engine.Tuning{MaxWindow: 5000}, link.Caps{Window: 99840}))
	require.Zero(t, pathLimit(engine.Tuning{}, link.Caps{}), "no buffer, no limit")
}

func TestQueries(t *testing.T) {
	l := newFixed("10.0.0.1:4791", 1472)
	d := must.Get(New(Config{Name: "soft3", Link: l}))(t)
	require.Equal(t, "soft3", d.Name())
	require.Equal(t, "veth7", d.NetDev())
	require.Equal(t, uint32(abi.DriverRXE), d.DriverID())
	require.Equal(t, []driver.GIDEntry{{GID: netip.MustParseAddr("::ffff:10.0.0.1"), Type: 2, NetDev: "veth7", IfIndex: 7}}, d.GIDs(1))
	require.Empty(t, d.GIDs(2))

	a := d.QueryDevice()
	require.NotZero(t, a.NodeGUID)
	require.Equal(t, uint64(2), a.NodeGUID>>56&3, "locally administered")
	require.Equal(t, []uint32{32, 32767, 128, 64}, []uint32{a.MaxSGE, a.MaxCQE, a.MaxQPRdAtom, uint32(a.MaxPkeys)})
	require.Equal(t, uint8(1), a.PhysPortCnt)

	p := must.Get(d.QueryPort(1))(t)
	require.Equal(t, abi.PortActive, p.State)
	require.Equal(t, abi.MTU1024, p.ActiveMTU)
	require.Equal(t, abi.LinkLayerEthernet, p.LinkLayer)
	require.Equal(t, uint32(1<<31), p.MaxMsgSz)
	require.Zero(t, p.LID, "RoCEv2's own port needs no mention")
	must.Fail(d.QueryPort(0))(t, syscall.EINVAL)
	must.Fail(d.QueryPort(2))(t, syscall.EINVAL)

	require.NoError(t, d.Close())
	p = must.Get(d.QueryPort(1))(t)
	require.Equal(t, abi.PortDown, p.State)
	must.Fail(d.AllocPD())(t, syscall.ENODEV)

	other := must.Get(New(Config{Name: "soft3", Link: newFixed("[fe80::1%eth0]:50000", 1452)}))(t)
	defer other.Close()
	p = must.Get(other.QueryPort(1))(t)
	require.Equal(t, uint16(50000), p.LID)
	require.Equal(t, netip.MustParseAddr("fe80::1"), other.GIDs(1)[0].GID)
	require.NotEqual(t, a.NodeGUID, other.QueryDevice().NodeGUID)
}

// A queue pair that is destroyed lets its number rest.
func TestDestroyedQPNumberRests(t *testing.T) {
	d := newDevice(t, newFixed("10.0.0.1:4791", 65507), 8, qpOptions{})
	num := d.qp.qp.num
	require.NoError(t, d.qp.qp.Destroy())
	require.True(t, d.numbers.Rests(num))
}

func TestCreateRefuses(t *testing.T) {
	_, ds := neighbours(t, 2, 8)
	d, foreign := ds[0], ds[1]

	u, _ := udata(15)
	must.Fail(d.CreateCQ(10, u, newEvents()))(t, syscall.EINVAL, "no room for the ring")
	require.Equal(t, 127, newCQ(t, d.Device, 64).cq.CQE(), "rounded as rxe does")
	require.Equal(t, 32767, newCQ(t, d.Device, 32767).cq.CQE())

	cq := newCQ(t, d.Device, 1)
	good := func() *driver.QPInit {
		return &driver.QPInit{PD: d.pd, SendCQ: cq.cq, RecvCQ: cq.cq, Type: abi.QPTRC, Cap: driver.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 1, MaxRecvSGE: 1}}
	}
	for name, c := range map[string]struct {
		change func(*driver.QPInit)
		room   int
		want   error
	}{
		"XRC":        {func(i *driver.QPInit) { i.Type = abi.QPTXRCIni }, 32, syscall.EOPNOTSUPP},
		"inline":     {func(i *driver.QPInit) { i.Cap.MaxInline = 1024 }, 32, syscall.EINVAL},
		"too large":  {func(i *driver.QPInit) { i.Cap.MaxSendWR, i.Cap.MaxInline = maxQPWR, 512 }, 32, syscall.ENOMEM},
		"no room":    {func(*driver.QPInit) {}, 31, syscall.EINVAL},
		"foreign PD": {func(i *driver.QPInit) { i.PD = foreign.pd }, 32, syscall.EINVAL},
		"foreign CQ": {func(i *driver.QPInit) { i.SendCQ = foreign.qp.send.cq }, 32, syscall.EINVAL},
		"no recv CQ": {func(i *driver.QPInit) { i.RecvCQ = nil }, 32, syscall.EINVAL},
	} {
		init := good()
		c.change(init)
		u, _ := udata(c.room)
		must.Fail(d.CreateQP(init, u, newEvents()))(t, c.want, name)
	}

	// No receives are possible where none were asked for.
	init := good()
	init.Cap.MaxRecvWR, init.Cap.MaxRecvSGE = 0, 0
	u, _ = udata(32)
	must.Get(d.CreateQP(init, u, newEvents()))(t)

	require.ErrorIs(t, d.qp.send.cq.Destroy(), syscall.EBUSY)
	require.NoError(t, d.qp.qp.Destroy())
	require.NoError(t, d.qp.send.cq.Destroy())
	require.NoError(t, d.mem.mr.Dereg())
	require.NoError(t, d.pd.Dealloc())
	must.Fail(d.RegMR(foreign.pd, driver.Near(make([]byte, 8)), 0, allAccess))(t, syscall.EINVAL)
	must.Fail(d.RegMR(d.pd, driver.Memory{}, 0, allAccess))(t, syscall.EINVAL)
}
