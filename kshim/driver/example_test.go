package driver_test

import (
	"fmt"
	"net/netip"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// copier is an RDMA device without a network, as the design that this project
// began with had it: a WRITE is a memmove between two regions of the machine,
// done when the doorbell rings. Every queue pair reaches every region by its key.
type copier struct {
	driver.Device // nil: stands for what this device is never asked, address handles

	mu      sync.Mutex
	regions map[uint32]*region // guarded by mu: by key
	lastKey uint32             // guarded by mu
}

// These say what the device is. Its rings are rxe's, so that clients know them.
func (d *copier) Name() string                { return "copy0" }
func (d *copier) DriverID() uint32            { return uint32(abi.DriverRXE) }
func (d *copier) NetDev() string              { return "lo" }
func (d *copier) Counters() map[string]uint64 { return nil }
func (d *copier) Close() error                { return nil }

func (d *copier) QueryDevice() abi.QueryDeviceResp {
	return abi.QueryDeviceResp{PhysPortCnt: 1, MaxPD: 1, MaxMR: 16, MaxMRSize: 1 << 30, MaxCQ: 16, MaxCQE: 1024, MaxQP: 16, MaxQPWR: 1024, MaxSGE: 1}
}

func (d *copier) QueryPort(uint8) (abi.QueryPortResp, error) {
	return abi.QueryPortResp{State: abi.PortActive, MaxMTU: abi.MTU1024, ActiveMTU: abi.MTU1024, MaxMsgSz: 1 << 30, GIDTblLen: 1}, nil
}

func (d *copier) GIDs(uint8) []driver.GIDEntry {
	return []driver.GIDEntry{{GID: netip.MustParseAddr("::ffff:127.0.0.1"), Type: uint32(abi.GIDTypeRoCEv2), NetDev: "lo"}}
}

// A protection domain protects nothing here.
type domain struct{}

func (d *copier) AllocPD() (driver.PD, error) { return domain{}, nil }
func (domain) Dealloc() error                 { return nil }

// region is registered memory: bytes, and the address that clients know them by.
type region struct {
	d      *copier
	key    uint32
	mem    driver.Memory
	iova   uint64
	access abi.AccessFlags
}

func (d *copier) RegMR(_ driver.PD, mem driver.Memory, iova uint64, access abi.AccessFlags) (driver.MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastKey++
	r := &region{d, d.lastKey, mem, iova, access}
	d.regions[r.key] = r
	return r, nil
}

func (r *region) LKey() uint32              { return r.key }
func (r *region) RKey() uint32              { return r.key }
func (r *region) Rereg(*driver.Rereg) error { return syscall.EOPNOTSUPP }

func (r *region) Dereg() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	delete(r.d.regions, r.key)
	return nil
}

// bytes gives n bytes at an address, nil if they are not all in the region.
func (r *region) bytes(addr uint64, n uint32) []byte {
	at := addr - r.iova
	if r.mem == nil || at > uint64(len(r.mem)) || uint64(n) > uint64(len(r.mem))-at {
		return nil
	}
	return r.mem[at : at+uint64(n)]
}

// queue is a completion queue: a ring that is mapped by the client, which polls it.
type queue struct {
	*ring.Queue
	entries *ring.Producer
}

func (d *copier) CreateCQ(cqe int, u *driver.Udata, _ driver.CQEvents) (driver.CQ, error) {
	q, err := ring.New(ring.CQElemSize, cqe)
	if err != nil || len(u.Out) < abi.RXECreateCQRespSize {
		return nil, syscall.EINVAL
	}
	(&abi.RXECreateCQResp{MI: mapped(u, q)}).Put(u.Out)
	return &queue{q, q.Producer()}, nil
}

// mapped tells a client where it can map a ring.
func mapped(u *driver.Udata, q *ring.Queue) abi.MMInfo {
	return abi.MMInfo{Offset: u.Mmap(q.Mapping()), Size: uint32(len(q.Mapping()))}
}

func (q *queue) CQE() int                        { return q.Cap() }
func (q *queue) Arm(bool) error                  { return syscall.EOPNOTSUPP } // it raises no events
func (q *queue) Resize(int, *driver.Udata) error { return syscall.EOPNOTSUPP }
func (q *queue) Destroy() error                  { return nil }

// pair is a queue pair. The core has checked each transition that Modify sees.
type pair struct {
	d     *copier
	sends *ring.Consumer
	cq    *queue

	mu    sync.Mutex
	attr  abi.QueryQPResp // guarded by mu
	entry ring.SendWQE    // guarded by mu
}

func (d *copier) CreateQP(init *driver.QPInit, u *driver.Udata, _ driver.QPEvents) (driver.QP, error) {
	size, _, _ := ring.SendCap(int(init.Cap.MaxSendSGE), 0)
	sq, err1 := ring.New(size, int(max(1, init.Cap.MaxSendWR)))
	rq, err2 := ring.New(ring.RecvElemSize(1), int(max(1, init.Cap.MaxRecvWR)))
	if err1 != nil || err2 != nil || len(u.Out) < abi.RXECreateQPRespSize {
		return nil, syscall.EINVAL
	}
	(&abi.RXECreateQPResp{SQMI: mapped(u, sq), RQMI: mapped(u, rq)}).Put(u.Out)
	return &pair{d: d, sends: sq.Consumer(), cq: init.SendCQ.(*queue)}, nil
}

func (q *pair) Num() uint32    { return 0x11 }
func (q *pair) Status() any    { return nil }
func (q *pair) Destroy() error { return nil }

func (q *pair) State() abi.QPState { a, _ := q.Query(); return a.QPState }

func (q *pair) Query() (abi.QueryQPResp, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.attr, nil
}

func (q *pair) Modify(attr *abi.ModifyQP, mask abi.QPAttrMask) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if mask&abi.QPMaskState != 0 {
		q.attr.QPState = attr.QPState
	}
	return nil
}

// Doorbell takes the work requests out of the ring, copies, and completes each.
func (q *pair) Doorbell() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, err := q.sends.Ready()
	for ; n > 0 && err == nil; n-- {
		if err = q.entry.Decode(q.sends.Slot(0)); err != nil {
			return syscall.EINVAL
		}
		wc := ring.WC{ID: q.entry.WR.ID, QPN: q.Num(), Opcode: abi.WCRDMAWrite, ByteLen: q.entry.Length, Status: q.d.write(&q.entry.WR)}
		if free, err := q.cq.entries.Free(); err == nil && free > 0 && ring.EncodeWC(q.cq.entries.Slot(0), &wc) == nil {
			q.cq.entries.Publish(1)
		}
		q.sends.Release(1)
	}
	return err
}

// write is the device's one operation.
func (d *copier) write(wr *ring.SendWR) abi.WCStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	to := d.regions[wr.RKey]
	if wr.Opcode != abi.WRRDMAWrite || len(wr.SGE) != 1 || to == nil || to.access&abi.AccessRemoteWrite == 0 {
		return abi.WCRemAccessErr
	}
	from := d.regions[wr.SGE[0].LKey]
	if from == nil {
		return abi.WCLocProtErr
	}
	src, dst := from.bytes(wr.SGE[0].Addr, wr.SGE[0].Length), to.bytes(wr.RemoteAddr, wr.SGE[0].Length)
	if src == nil || dst == nil {
		return abi.WCRemAccessErr
	}
	copy(dst, src) // memmove
	return abi.WCSuccess
}

// A driver module of one's own: installed in a machine, loaded, and used by the
// same client that speaks to Linux.
func Example() {
	machine := emu.New(emu.Options{})
	device := &copier{regions: map[uint32]*region{}}
	must(machine.Install(emu.Module{
		Name: "copier", Needs: []string{"ib_uverbs"},
		Init: func(this *emu.Driver) error { return this.Register(device) },
	}))
	must(machine.Insmod("copier"))

	process := machine.Process("example")
	c, err := verbs.Open(process, "copy0")
	must(err)
	pd, err := c.AllocPD()
	must(err)
	src, dst := []byte("Test message"), make([]byte, 12)
	from, err := pd.RegMR(src, 0)
	must(err)
	to, err := pd.RegMR(dst, abi.AccessLocalWrite|abi.AccessRemoteWrite)
	must(err)
	cq, err := c.CreateCQ(16)
	must(err)
	qp, err := pd.CreateQP(verbs.QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 8, Type: abi.QPTRC})
	must(err)
	path := abi.QPDest{DGID: netip.MustParseAddr("::ffff:127.0.0.1").As16(), IsGlobal: 1, PortNum: 1}
	must(qp.Modify(&verbs.QPAttr{State: abi.QPSInit, PortNum: 1},
		abi.QPMaskState|abi.QPMaskPkeyIndex|abi.QPMaskPort|abi.QPMaskAccessFlags))
	must(qp.Modify(&verbs.QPAttr{State: abi.QPSRTR, AV: path, PathMTU: abi.MTU1024, DestQPNum: qp.Num()},
		abi.QPMaskState|abi.QPMaskAV|abi.QPMaskPathMTU|abi.QPMaskDestQPN|abi.QPMaskRQPSN|abi.QPMaskMaxDestRdAtomic|abi.QPMaskMinRNRTimer))
	must(qp.Modify(&verbs.QPAttr{State: abi.QPSRTS},
		abi.QPMaskState|abi.QPMaskSQPSN|abi.QPMaskTimeout|abi.QPMaskRetryCnt|abi.QPMaskRNRRetry|abi.QPMaskMaxQPRdAtomic))

	for _, rkey := range []uint32{to.RKey(), 12345} {
		_, err = qp.Post([]verbs.SendWR{{
			Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RemoteAddr: to.Addr(), RKey: rkey,
			SGE: []verbs.SGE{{Addr: from.Addr(), Length: 12, LKey: from.LKey()}},
		}})
		must(err)
		var wc [1]verbs.WC
		_, err = cq.Poll(wc[:])
		must(err)
		fmt.Printf("%v %q\n", wc[0].Status, dst)
	}
	fmt.Println(machine.Rmmod("copier"))
	must(c.Close())
	must(machine.Rmmod("copier"))
	process.Exit()
	// Output:
	// SUCCESS "Test message"
	// REM_ACCESS_ERR "Test message"
	// rmmod copier: 1 open files need the module; close them first: device or resource busy
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
