package verbs

import (
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

func TestDevices(t *testing.T) {
	k := newFake(t)
	k.sys["/sys/class/infiniband_verbs/uverbs1/ibdev"] = "mlx5_0\n"
	k.sys["/sys/class/infiniband_verbs/uverbs1/abi_version"] = "1\n"
	list, err := Devices(k)
	require.NoError(t, err)
	require.Equal(t, []DeviceInfo{
		{Name: "rxe0", Node: "/dev/infiniband/uverbs0", NetDev: "eth0", Driver: abi.DriverRXE, ABIVersion: 2},
		{Name: "mlx5_0", Node: "/dev/infiniband/uverbs1", ABIVersion: 1},
	}, list)

	_, err = Open(k, "rxe9")
	require.ErrorIs(t, err, syscall.ENODEV)
	require.ErrorContains(t, err, "rxe0, mlx5_0")

	k.sys["/sys/class/infiniband_verbs/uverbs0/abi_version"] = "9"
	_, err = Open(k, "rxe0")
	require.ErrorIs(t, err, syscall.EPROTONOSUPPORT)
	k.sys["/sys/class/infiniband_verbs/uverbs0/abi_version"] = "x"
	_, err = Devices(k)
	require.Error(t, err)

	clear(k.sys)
	list, err = Devices(k)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = Open(k, "rxe0")
	require.ErrorIs(t, err, syscall.ENODEV)
}

// TestOtherDrivers: the error names the driver and what is missing for it.
func TestOtherDrivers(t *testing.T) {
	for driver, says := range map[abi.DriverID]string{
		abi.DriverMLX5: "driven by MLX5, for which is missing: queues and doorbell records in the program's memory",
		abi.DriverSIW:  "driven by SIW, for which is missing: its queues, whose elements carry a valid bit",
		abi.DriverEFA:  "driven by EFA, for which are missing",
		40:             "driven by DriverID(40), for which are missing",
		99:             "the kernel does not say which",
	} {
		k := newFake(t)
		k.driver = driver
		delete(k.sys, "/sys/class/infiniband/rxe0/parent")
		_, err := Open(k, "rxe0")
		require.ErrorIs(t, err, syscall.EPROTONOSUPPORT)
		require.ErrorContains(t, err, says)
		require.Empty(t, k.calls, "a command was given")
		require.Empty(t, k.pins)
		require.Equal(t, 1, k.closed)
	}
	// An rdma_rxe that sysfs does not show as one is found by asking.
	k := newFake(t)
	delete(k.sys, "/sys/class/infiniband/rxe0/parent")
	require.Equal(t, abi.DriverRXE, k.open().Device().Driver)
	// A device that sysfs takes for rdma_rxe and that is none.
	k = newFake(t)
	k.driver = abi.DriverSIW
	_, err := Open(k, "rxe0")
	require.ErrorIs(t, err, syscall.EPROTONOSUPPORT)
	require.ErrorContains(t, err, "driven by SIW")
	require.Empty(t, k.pins)
}

func TestOpenThatFailsLeavesNothing(t *testing.T) {
	for _, cmd := range []abi.Command{abi.CmdGetContext, abi.CmdCreateCompChannel, abi.CmdQueryPort} {
		k := newFake(t)
		k.fail[cmd] = syscall.ENOMEM
		_, err := Open(k, "rxe0")
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Empty(t, k.pins, cmd)
	}
	k := newFake(t)
	k.fail[abi.CmdGetContext] = syscall.EINVAL // which a wrong driver number gives, too
	_, err := Open(k, "rxe0")
	require.ErrorIs(t, err, syscall.EINVAL)
}

func TestQueries(t *testing.T) {
	k := newFake(t)
	c := k.open()
	dev, err := c.QueryDevice()
	require.NoError(t, err)
	require.EqualValues(t, 16384, dev.MaxQPWR)
	require.Equal(t, uint64(0x0102030405060708), dev.NodeGUID)
	port, err := c.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, abi.PortActive, port.State)
	_, err = c.QueryPort(2)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "rxe0 port 2")

	want := []GID{{Index: 0, Addr: netip.MustParseAddr("::ffff:10.0.0.1"), Type: abi.GIDTypeRoCEv2, IfIndex: 2}}
	list, err := c.GIDs(1)
	require.NoError(t, err)
	require.Equal(t, want, list)
	k.do(func() { k.gids[0].PortNum = 2 })
	list, err = c.GIDs(1)
	require.NoError(t, err)
	require.Empty(t, list)

	k.do(func() {
		k.gids = nil // an old kernel
		for i, g := range []string{"0000:0000:0000:0000:0000:ffff:0a00:0001", "0000:0000:0000:0000:0000:0000:0000:0000", "fe80::1"} {
			k.sys["/sys/class/infiniband/rxe0/ports/1/gids/"+strconv.Itoa(i)] = g + "\n"
		}
		k.sys["/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0"] = "RoCE v2\n"
		k.sys["/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/2"] = "IB/RoCE v1\n"
	})
	list, err = c.GIDs(1)
	require.NoError(t, err)
	require.Equal(t, []GID{{Index: 0, Addr: netip.MustParseAddr("::ffff:10.0.0.1"), Type: abi.GIDTypeRoCEv2}, {Index: 2, Addr: netip.MustParseAddr("fe80::1"), Type: abi.GIDTypeRoCEv1}}, list)

	counters, err := c.Counters()
	require.NoError(t, err)
	require.Empty(t, counters)
	k.do(func() {
		k.sys["/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"] = "12\n"
		k.sys["/sys/class/infiniband/rxe0/ports/1/hw_counters/lifespan"] = "10\n"
	})
	counters, err = c.Counters()
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"sent_pkts": 12}, counters)
	k.do(func() {
		k.sys["/sys/class/infiniband/rxe0/ports/1/hw_counters_now"] = "rcvd_pkts 18446744073709551615\nsent_pkts 13\n"
	})
	counters, err = c.Counters()
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"rcvd_pkts": 1<<64 - 1, "sent_pkts": 13}, counters, "one reading for all")
	require.Equal(t, "rxe0", c.Device().Name)
}

func TestQueuePairStatus(t *testing.T) {
	b := newBed(t, eight)
	_, err := b.c.QueuePairs()
	require.ErrorIs(t, err, syscall.ENOENT, "a kernel that shows none")
	b.do(func() {
		for _, n := range []string{"9", "10"} {
			b.sys["/sys/class/infiniband/rxe0/ports/1/qp/"+n] = n + "\n"
		}
	})
	list, err := b.c.QueuePairs()
	require.NoError(t, err)
	require.Equal(t, []string{"9", "10"}, list)
}

func TestHostileGIDCount(t *testing.T) {
	_, err := parseGIDs(make([]byte, 64), 3, 1)
	require.ErrorIs(t, err, syscall.EIO)
	_, err = parseGIDs(make([]byte, 64), 1<<63, 1)
	require.ErrorIs(t, err, syscall.EIO)
}

func TestMemoryRegions(t *testing.T) {
	k := newFake(t)
	c := k.open()
	pd, err := c.AllocPD()
	require.NoError(t, err)
	_, err = pd.RegMR(nil, abi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = pd.RegMR([]byte{}, abi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EINVAL)

	pins := len(k.pins)
	k.fail[abi.CmdRegMR] = syscall.EFAULT
	_, err = pd.RegMR(make([]byte, 10), abi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EFAULT)
	require.Len(t, k.pins, pins, "a failed registration holds no memory")
	delete(k.fail, abi.CmdRegMR)

	mr, err := pd.RegMR(make([]byte, 100), abi.AccessLocalWrite|abi.AccessRemoteRead)
	require.NoError(t, err)
	require.Len(t, k.pins, pins+1)
	require.EqualValues(t, 100, mr.Length())
	require.NotZero(t, mr.Addr())
	require.NotZero(t, mr.LKey())
	require.Equal(t, mr.LKey(), mr.RKey())

	k.fail[abi.CmdDeregMR] = syscall.EBUSY
	require.ErrorIs(t, mr.Dereg(), syscall.EBUSY)
	require.Len(t, k.pins, pins+1, "still registered, so still held")
	delete(k.fail, abi.CmdDeregMR)
	require.NoError(t, mr.Dereg())
	require.Len(t, k.pins, pins)
	require.ErrorIs(t, mr.Dereg(), syscall.EBADF)

	require.NoError(t, pd.Dealloc())
	require.ErrorIs(t, pd.Dealloc(), syscall.EBADF)
	_, err = pd.RegMR(make([]byte, 1), 0)
	require.ErrorIs(t, err, syscall.EBADF)
	_, err = pd.CreateQP(QPInit{})
	require.ErrorIs(t, err, syscall.EBADF)
}

func TestCreateRefuses(t *testing.T) {
	k := newFake(t)
	c := k.open()
	for _, n := range []int{-1, 0, 32768, 1 << 30} {
		_, err := c.CreateCQ(n)
		require.ErrorIs(t, err, syscall.EINVAL, n)
	}
	cq, err := c.CreateCQ(1)
	require.NoError(t, err)
	pd, err := c.AllocPD()
	require.NoError(t, err)
	other := newFake(t).open()
	foreign, err := other.CreateCQ(1)
	require.NoError(t, err)
	for name, init := range map[string]QPInit{
		"no queues":     {},
		"foreign queue": {SendCQ: cq, RecvCQ: foreign},
		"negative":      {SendCQ: cq, RecvCQ: cq, MaxSendWR: -1},
		"too deep":      {SendCQ: cq, RecvCQ: cq, MaxSendWR: 1 << 30},
		"sge":           {SendCQ: cq, RecvCQ: cq, MaxSendSGE: 33},
		"inline":        {SendCQ: cq, RecvCQ: cq, MaxInline: 513},
	} {
		_, err := pd.CreateQP(init)
		require.ErrorIs(t, err, syscall.EINVAL, name)
	}
	require.NoError(t, cq.Destroy())
	require.ErrorIs(t, cq.Destroy(), syscall.EBADF)
	_, err = cq.Poll(make([]WC, 1))
	require.ErrorIs(t, err, syscall.EBADF)
	_, err = pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq})
	require.ErrorIs(t, err, syscall.EBADF)
}

// TestQueueThatDoesNotFit gives the client rings whose headers lie, or that
// cannot be mapped: the object is destroyed again.
func TestQueueThatDoesNotFit(t *testing.T) {
	for name, bad := range map[string]func(k *fake){
		"header":     func(k *fake) { k.lie = func(m []byte, mi *abi.MMInfo) { m[4]++ } },
		"no mapping": func(k *fake) { k.lie = func(m []byte, mi *abi.MMInfo) { mi.Offset++ } },
		"length 0":   func(k *fake) { k.lie = func(m []byte, mi *abi.MMInfo) { mi.Size = 0 } },
		"length":     func(k *fake) { k.lie = func(m []byte, mi *abi.MMInfo) { mi.Size = 1 << 31 } },
	} {
		t.Run(name, func(t *testing.T) {
			k := newFake(t)
			c := k.open()
			pd, err := c.AllocPD()
			require.NoError(t, err)
			cq, err := c.CreateCQ(4)
			require.NoError(t, err)
			mapped := len(k.mapped)
			bad(k)
			_, err = c.CreateCQ(4)
			require.Error(t, err)
			_, err = pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4})
			require.Error(t, err)
			k.lieAfter = 1 // the first of the two queues is good
			_, err = pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4})
			require.Error(t, err)
			require.Len(t, k.cqs, 1)
			require.Empty(t, k.qps)
			require.Len(t, k.mapped, mapped)
			k.lie = nil
		})
	}
}

func TestQueuePairLifecycle(t *testing.T) {
	b := newBed(t, eight)
	require.NotZero(t, b.qp.Num())
	require.Equal(t, abi.QPSReset, b.qp.State())
	one := []SendWR{{Opcode: abi.WRSend}}
	rone := []RecvWR{{ID: 1}}

	_, err := b.qp.PostRecv(rone)
	require.ErrorIs(t, err, syscall.EINVAL)
	for _, s := range []abi.QPState{abi.QPSReset, abi.QPSInit, abi.QPSRTR} {
		if s != abi.QPSReset {
			b.modify(s)
			_, err = b.qp.PostRecv(rone)
			require.NoError(t, err)
		}
		n, err := b.qp.Post(one)
		require.ErrorIs(t, err, syscall.EINVAL, s)
		require.Zero(t, n)
	}
	require.ErrorIs(t, b.qp.Modify(&QPAttr{State: abi.QPSSQE}, abi.QPMaskState), syscall.EINVAL)
	require.Equal(t, abi.QPSRTR, b.qp.State(), "a refused transition changes nothing")
	b.modify(abi.QPSRTS)
	require.Zero(t, b.kernel.bells, "no request reached the ring before RTS")
	ready, err := b.kernel.sqc.Ready()
	require.NoError(t, err)
	require.Zero(t, ready)
	n, err := b.qp.Post(one)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	attr, err := b.qp.Query()
	require.NoError(t, err)
	require.Equal(t, abi.QPSRTS, attr.State)
	require.EqualValues(t, 7, attr.RetryCnt)
	require.EqualValues(t, 9, attr.AV.DLID)
	require.Equal(t, 8, attr.Cap.MaxSendWR)

	require.ErrorIs(t, b.scq.Destroy(), syscall.EBUSY)
	require.NoError(t, b.qp.Destroy())
	require.ErrorIs(t, b.qp.Destroy(), syscall.EBADF)
	_, err = b.qp.Post(one)
	require.ErrorIs(t, err, syscall.EBADF)
	_, err = b.qp.PostRecv(rone)
	require.ErrorIs(t, err, syscall.EBADF)
	require.ErrorIs(t, b.qp.Modify(&QPAttr{}, abi.QPMaskState), syscall.EBADF)
	_, err = b.qp.Query()
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, b.scq.Destroy())
}

func TestCloseAnswersAndIsIdempotent(t *testing.T) {
	b := newBed(t, eight).connect()
	mr, err := b.pd.RegMR(make([]byte, 8), 0)
	require.NoError(t, err)
	b.taken()
	require.NoError(t, b.c.Close())
	var order []abi.Command
	for _, c := range b.taken() {
		order = append(order, c.cmd)
	}
	require.Equal(t, []abi.Command{abi.CmdDestroyQP, abi.CmdDestroyCQ, abi.CmdDestroyCQ, abi.CmdDeregMR, abi.CmdDeallocPD}, order)
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
	c, err := Open(k, "rxe0")
	require.NoError(t, err)
	pd, err := c.AllocPD()
	require.NoError(t, err)
	cq, err := c.CreateCQ(8)
	require.NoError(t, err)
	qp, err := pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1})
	require.NoError(t, err)
	_, err = pd.RegMR(make([]byte, 8), 0)
	require.NoError(t, err)
	for _, cmd := range []abi.Command{abi.CmdDestroyQP, abi.CmdDestroyCQ, abi.CmdDeregMR, abi.CmdDeallocPD} {
		k.fail[cmd] = syscall.EIO
	}
	require.ErrorIs(t, c.Close(), syscall.EIO)
	require.NoError(t, c.Close())
	require.Empty(t, k.pins)
	require.Empty(t, k.mapped)
	_, err = cq.Poll(make([]WC, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = qp.Post([]SendWR{{}})
	require.ErrorIs(t, err, net.ErrClosed)
}
