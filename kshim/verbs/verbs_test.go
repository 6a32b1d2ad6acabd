package verbs

import (
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

const parent = "/sys/class/infiniband/rxe0/parent"

// commands are those of calls.
func commands(calls []kerneltest.Call) (list []any) {
	for _, c := range calls {
		list = append(list, c.Cmd)
	}
	return list
}

func TestDevices(t *testing.T) {
	k := newFake(t)
	k.Sys["/sys/class/infiniband_verbs/uverbs1/ibdev"] = "mlx5_0\n"
	k.Sys["/sys/class/infiniband_verbs/uverbs1/abi_version"] = "1\n"
	list := must.Get(Devices(k))(t)
	require.Equal(t, []DeviceInfo{
		{Name: "rxe0", Node: "/dev/infiniband/uverbs0", NetDev: "lo", Driver: abi.DriverRXE, ABIVersion: 2},
		{Name: "mlx5_0", Node: "/dev/infiniband/uverbs1", ABIVersion: 1},
	}, list)

	_, err := Open(k, "rxe9")
	require.ErrorIs(t, err, syscall.ENODEV)
	require.ErrorContains(t, err, "rxe0, mlx5_0")

	k.Sys["/sys/class/infiniband_verbs/uverbs0/abi_version"] = "9"
	must.Fail(Open(k, "rxe0"))(t, syscall.EPROTONOSUPPORT)
	k.Sys["/sys/class/infiniband_verbs/uverbs0/abi_version"] = "x"
	_, err = Devices(k)
	require.Error(t, err)

	m := emu.New()
	require.NoError(t, m.Rmmod("ib_uverbs"))
	bare := m.Process("bare")
	list = must.Get(Devices(bare))(t)
	require.Empty(t, list)
	must.Fail(Open(bare, "rxe0"))(t, syscall.ENODEV)
}

// TestOtherDrivers: the error names the driver and what is missing for it.
func TestOtherDrivers(t *testing.T) {
	for driver, says := range map[abi.DriverID]string{
		abi.DriverMLX5: "driven by MLX5; what is missing: queues and doorbell records in the program's memory",
		40:             "driven by DriverID(40); what is missing: its queues and its doorbell",
		99:             "the kernel does not say which",
	} {
		k := newFake(t)
		k.dev.Driver, k.Record = driver, true
		k.Hidden = []string{parent}
		_, err := Open(k, "rxe0")
		require.ErrorIs(t, err, syscall.EPROTONOSUPPORT)
		require.ErrorContains(t, err, says)
		require.NotContains(t, commands(k.Taken()), abi.CmdGetContext, "a command was given")
		k.nothingLeft(1)
	}
	// An rdma_rxe that sysfs does not show as one is found by asking.
	k := newFake(t)
	k.Hidden = []string{parent}
	require.Equal(t, abi.DriverRXE, k.open().Device().Driver)
	// A device that sysfs takes for rdma_rxe and that is none.
	k = newFake(t)
	k.dev.Driver = abi.DriverSIW
	k.Sys["/sys/class/infiniband_verbs/uverbs0/abi_version"] = "2\n"
	_, err := Open(k, "rxe0")
	require.ErrorIs(t, err, syscall.EPROTONOSUPPORT)
	require.ErrorContains(t, err, "driven by SIW; what is missing: its queues, whose elements carry a valid bit")
	require.Zero(t, k.Pins)
}

func TestOpenThatFailsLeavesNothing(t *testing.T) {
	for _, cmd := range []abi.Command{abi.CmdGetContext, abi.CmdCreateCompChannel, abi.CmdQueryPort} {
		k := newFake(t)
		k.fail(syscall.ENOMEM, cmd)
		must.Fail(Open(k, "rxe0"))(t, syscall.ENOMEM)
		require.Zero(t, k.Pins, cmd)
	}
	k := newFake(t)
	k.fail(syscall.EINVAL, abi.CmdGetContext) // which a wrong driver number gives, too
	must.Fail(Open(k, "rxe0"))(t, syscall.EINVAL)
}

func TestQueries(t *testing.T) {
	k := newFake(t)
	c := k.open()
	dev := must.Get(c.QueryDevice())(t)
	require.Equal(t, k.dev.Attr, dev)
	port := must.Get(c.QueryPort(1))(t)
	require.Equal(t, abi.PortActive, port.State)
	_, err := c.QueryPort(2)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "rxe0 port 2")

	gids := []GID{
		{Index: 0, Addr: netip.MustParseAddr("::ffff:10.0.0.1"), Type: abi.GIDTypeRoCEv2, IfIndex: 1},
		{Index: 3, Addr: netip.MustParseAddr("fe80::1"), Type: abi.GIDTypeRoCEv1, IfIndex: 1},
	}
	list := must.Get(c.GIDs(1))(t)
	require.Equal(t, gids, list)
	k.fail(syscall.EOPNOTSUPP, abi.MethodQueryGIDTable) // an old kernel
	list = must.Get(c.GIDs(1))(t)
	gids[0].IfIndex, gids[1].IfIndex = 0, 0 // which sysfs does not tell
	require.Equal(t, gids, list)

	const port1 = "/sys/class/infiniband/rxe0/ports/1"
	k.Do(func() { k.Hidden = []string{port1} })
	counters := must.Get(c.Counters())(t)
	require.Empty(t, counters)
	k.Do(func() { k.Sys[port1+"/hw_counters/sent_pkts"], k.Sys[port1+"/hw_counters/lifespan"] = "12\n", "10\n" })
	counters = must.Get(c.Counters())(t)
	require.Equal(t, map[string]uint64{"sent_pkts": 12}, counters)
	k.Do(func() { k.Sys[port1+"/hw_counters_now"] = "rcvd_pkts 18446744073709551615\nsent_pkts 13\n" })
	counters = must.Get(c.Counters())(t)
	require.Equal(t, map[string]uint64{"rcvd_pkts": 1<<64 - 1, "sent_pkts": 13}, counters, "one reading for all")
	require.Equal(t, "rxe0", c.Device().Name)
}

func TestQueuePairStatus(t *testing.T) {
	b := newBed(t, eight)
	const dir = "/sys/class/infiniband/rxe0/ports/1/qp"
	b.Do(func() { b.Hidden = []string{dir} })
	must.Fail(b.c.QueuePairs())(t, syscall.ENOENT, "a kernel that shows none")
	b.Do(func() { b.Sys[dir+"/9"], b.Sys[dir+"/10"] = "9\n", "10\n" })
	list := must.Get(b.c.QueuePairs())(t)
	require.Equal(t, []string{"9", "10"}, list)
}

func TestHostileGIDCount(t *testing.T) {
	must.Fail(parseGIDs(make([]byte, 64), 3, 1))(t, syscall.EIO)
	must.Fail(parseGIDs(make([]byte, 64), 1<<63, 1))(t, syscall.EIO)
	of2 := make([]byte, abi.GIDEntrySize)
	(&abi.GIDEntry{GID: [16]byte{15: 1}, PortNum: 2, GIDType: abi.GIDTypeRoCEv2}).Put(of2)
	list := must.Get(parseGIDs(of2, 1, 1))(t)
	require.Empty(t, list, "another port's")
}

func TestMemoryRegions(t *testing.T) {
	k := newFake(t)
	c := k.open()
	pd := must.Get(c.AllocPD())(t)
	must.Fail(pd.RegMR(nil, abi.AccessLocalWrite))(t, syscall.EINVAL)
	must.Fail(pd.RegMR([]byte{}, abi.AccessLocalWrite))(t, syscall.EINVAL)

	pins := k.Pins
	k.fail(syscall.EFAULT, abi.CmdRegMR)
	must.Fail(pd.RegMR(make([]byte, 10), abi.AccessLocalWrite))(t, syscall.EFAULT)
	require.Equal(t, pins, k.Pins, "a failed registration holds no memory")
	k.fail(nil, abi.CmdRegMR)

	mr := must.Get(pd.RegMR(make([]byte, 100), abi.AccessLocalWrite|abi.AccessRemoteRead))(t)
	require.Equal(t, pins+1, k.Pins)
	require.EqualValues(t, 100, mr.Length())
	require.NotZero(t, mr.Addr())
	require.NotZero(t, mr.LKey())
	require.Equal(t, mr.LKey(), mr.RKey())

	k.fail(syscall.EBUSY, abi.CmdDeregMR)
	require.ErrorIs(t, mr.Dereg(), syscall.EBUSY)
	require.Equal(t, pins+1, k.Pins, "still registered, so still held")
	k.fail(nil, abi.CmdDeregMR)
	require.NoError(t, mr.Dereg())
	require.Equal(t, pins, k.Pins)
	require.ErrorIs(t, mr.Dereg(), syscall.EBADF)

	require.NoError(t, pd.Dealloc())
	require.ErrorIs(t, pd.Dealloc(), syscall.EBADF)
	must.Fail(pd.RegMR(make([]byte, 1), 0))(t, syscall.EBADF)
	must.Fail(pd.CreateQP(QPInit{}))(t, syscall.EBADF)
}

// TestQueueThatDoesNotFit gives the client rings whose headers lie, or that
// cannot be mapped: the object is destroyed again.
func TestQueueThatDoesNotFit(t *testing.T) {
	for name, bad := range map[string]func(k *fake, spare int){
		"header": func(k *fake, spare int) {
			k.Do(func() {
				k.Map = func(m []byte) {
					if spare--; spare < 0 {
						m[4]++
					}
				}
			})
		},
		"no mapping": func(k *fake, spare int) { k.lie(spare, func(mi *abi.MMInfo) { mi.Offset++ }) },
		"length 0":   func(k *fake, spare int) { k.lie(spare, func(mi *abi.MMInfo) { mi.Size = 0 }) },
		"length":     func(k *fake, spare int) { k.lie(spare, func(mi *abi.MMInfo) { mi.Size = 1 << 31 }) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newFake(t)
			c := k.open()
			pd := must.Get(c.AllocPD())(t)
			cq := must.Get(c.CreateCQ(4))(t)
			mapped, live := k.Mapped, len(k.dev.Live)
			bad(k, 0)
			_, err := c.CreateCQ(4)
			require.Error(t, err)
			_, err = pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4})
			require.Error(t, err)
			bad(k, 1) // the first of the two queues is good
			_, err = pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4})
			require.Error(t, err)
			require.Len(t, k.dev.Live, live)
			require.Equal(t, mapped, k.Mapped)
		})
	}
}

func TestCloseAnswersAndIsIdempotent(t *testing.T) {
	b := newBed(t, eight).connect()
	mr := must.Get(b.pd.RegMR(make([]byte, 8), 0))(t)
	b.Taken()
	require.NoError(t, b.c.Close())
	require.Equal(t, []any{abi.CmdDestroyQP, abi.CmdDestroyCQ, abi.CmdDestroyCQ, abi.CmdDeregMR, abi.CmdDeallocPD}, commands(b.Taken()))
	require.NoError(t, b.c.Close())

	wc := make([]WC, 1)
	_, e1 := b.c.AllocPD()
	_, e2 := b.c.CreateCQ(1)
	_, e3 := b.pd.RegMR(make([]byte, 1), 0)
	_, e4 := b.pd.CreateQP(eight)
	_, e5 := b.scq.Poll(wc)
	_, e6 := b.scq.Wait(t.Context(), wc)
	_, e7 := b.qp.Post([]SendWR{{}})
	_, e8 := b.qp.PostRecv([]RecvWR{{}})
	_, e9 := b.qp.Query()
	_, e10 := b.c.GIDs(1)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, mr.Dereg(), b.qp.Destroy(), b.scq.Destroy(), b.scq.Arm(false), b.pd.Dealloc(), b.qp.Modify(&QPAttr{}, 1)} {
		require.ErrorIs(t, err, net.ErrClosed, i+1)
		require.ErrorIs(t, err, syscall.EBADF, i+1)
	}
}

// TestCloseWhenTheKernelRefuses: the file's end frees everything, so the client
// lets go of everything.
func TestCloseWhenTheKernelRefuses(t *testing.T) {
	k := newFake(t)
	c := must.Get(Open(k, "rxe0"))(t)
	pd := must.Get(c.AllocPD())(t)
	cq := must.Get(c.CreateCQ(8))(t)
	qp := must.Get(pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1}))(t)
	must.Get(pd.RegMR(make([]byte, 8), 0))(t)
	k.fail(syscall.EIO, abi.CmdDestroyQP, abi.CmdDestroyCQ, abi.CmdDeregMR, abi.CmdDeallocPD)
	require.ErrorIs(t, c.Close(), syscall.EIO)
	require.NoError(t, c.Close())
	require.Zero(t, k.Pins)
	require.Zero(t, k.Mapped)
	must.Fail(cq.Poll(make([]WC, 1)))(t, net.ErrClosed)
	must.Fail(qp.Post([]SendWR{{}}))(t, net.ErrClosed)
}
