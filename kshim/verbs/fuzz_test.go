package verbs

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
)

// FuzzCompletions lets the kernel's side of a completion queue be anything,
// slots and indices, while work is outstanding: no panic, no hang, and no
// completion of a request that was not posted or was completed already.
//
// The input is a program: bytes that choose acts, each followed by its
// operands.
func FuzzCompletions(f *testing.F) {
	slot := make([]byte, ring.CQElemSize)
	_ = ring.EncodeWC(slot, &ring.WC{ID: ringID(false, 1, 0), Opcode: abi.WCSend})
	f.Add(append(append([]byte{0, 0}, slot...), 1, 1, 0, 0, 0, 3))
	_ = ring.EncodeWC(slot, &ring.WC{ID: ringID(true, 1, 3), Status: abi.WCLocLenErr})
	f.Add(append(append([]byte{4, 0, 0}, slot...), 1, 1, 0, 0, 0, 3, 3))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 3, 2, 0, 0, 0, 0x80, 3, 4, 3, 5, 3})
	f.Fuzz(func(t *testing.T, program []byte) {
		b := newBed(t, QPInit{MaxSendWR: 8, MaxRecvWR: 8, RecvCQ: nil})
		b.dev.Bell = func(*kerneltest.QP) {}
		b.connect()
		outstanding := map[uint64]bool{}
		next := uint64(0)
		post := func() {
			for range 3 {
				next++
				if n, _ := b.qp.Post([]SendWR{{ID: next, Opcode: abi.WRSend, Flags: abi.SendSignaled}}); n == 1 {
					outstanding[next] = true
				}
				next++
				if n, _ := b.qp.PostRecv([]RecvWR{{ID: next}}); n == 1 {
					outstanding[next] = true
				}
			}
		}
		take := func(n int) (b []byte) {
			n = min(n, len(program))
			b, program = program[:n], program[n:]
			return b
		}
		number := func() uint32 { return binary.LittleEndian.Uint32(append(take(4), 0, 0, 0, 0)[:4:4]) }
		post()
		queues := []*kerneltest.CQ{b.ksc, b.krc}
		for i := 0; len(program) > 0 && i < 200; i++ {
			op := take(1)[0]
			q := queues[op>>4&1].Queue.Mapping()
			switch op & 15 {
			case 0: // a slot
				at := abi.QueueBufData + int(append(take(1), 0)[0])%64*ring.CQElemSize
				copy(q[at:], take(ring.CQElemSize))
			case 1:
				binary.LittleEndian.PutUint32(q[abi.QueueBufProducerIndex:], number())
			case 2:
				binary.LittleEndian.PutUint32(q[abi.QueueBufConsumerIndex:], number())
			case 3:
				wc := make([]WC, 4)
				for _, cq := range []*CQ{b.scq, b.rcq} {
					n, _ := cq.Poll(wc)
					for _, c := range wc[:n] {
						require.True(t, outstanding[c.ID], "completion of %d", c.ID)
						delete(outstanding, c.ID)
					}
				}
			case 4:
				post()
			case 5: // the header
				copy(q[:8], take(8))
			}
		}
	})
}

// FuzzSysfs gives the parsers of attributes any text.
func FuzzSysfs(f *testing.F) {
	f.Add("rxe0\n", "2\n", "eth0\n", "fe80:0000:0000:0000:5054:00ff:fe12:3456\n", "RoCE v2\n", "17\n")
	f.Add("", "-1", "\x00", "::ffff:1.2.3.4%eth0", "IB/RoCE v1", "18446744073709551616")
	f.Fuzz(func(t *testing.T, name, version, parent, gid, kind, counter string) {
		k := newFake(t)
		k.fail(syscall.EOPNOTSUPP, abi.MethodQueryGIDTable) // so that sysfs is asked
		dir := "/sys/class/infiniband/" + strings.TrimSpace(name)
		for path, text := range map[string]string{
			"/sys/class/infiniband_verbs/uverbs0/ibdev":       name,
			"/sys/class/infiniband_verbs/uverbs0/abi_version": version,
			dir + "/parent":                      parent,
			dir + "/ports/1/gids/0":              gid,
			dir + "/ports/1/gids/" + counter:     gid,
			dir + "/ports/1/gid_attrs/types/0":   kind,
			dir + "/ports/1/hw_counters/a":       counter,
			dir + "/ports/1/hw_counters/" + kind: counter,
		} {
			k.Sys[path] = text + "\n" // the fake's files without text are event files
		}
		list, err := Devices(k)
		if err == nil {
			require.LessOrEqual(t, len(list), 1)
		}
		c, err := Open(k, strings.TrimSpace(name))
		if err != nil {
			return
		}
		gids, err := c.GIDs(1)
		if err == nil {
			for _, g := range gids {
				require.True(t, g.Addr.IsValid())
			}
		}
		_, _ = c.Counters()
		require.NoError(t, c.Close())
	})
}

// FuzzAnswers is a kernel that answers anything to every command, maps anything
// for a queue and tells of any events: no panic, no hang, and at the end
// nothing is still pinned, mapped or open.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte(strings.Repeat("\x00\x04\x00\x00\x00\x08\x00\x00\x00", 40)), []byte("\x06\x00\x00\x00\x3f"))
	f.Add([]byte("\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x05\x00\x00\x00\x01\x16"), []byte(strings.Repeat("\xff", 400)))
	f.Fuzz(func(t *testing.T, answers, queue []byte) {
		k := &liar{answers: answers, queue: queue, pins: map[*pin]struct{}{}, mapped: map[*byte]bool{}, next: 0x1000}
		c, err := Open(k, "rxe0")
		if err == nil {
			k.use(t, c)
			err = c.Close()
			if errors.Is(err, errClosed) {
				t.Fatal("closed before")
			}
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		require.Zero(t, k.pinned, "pins")
		require.Zero(t, k.opened, "files")
		if err == nil {
			require.Empty(t, k.mapped, "mappings")
		}
	})
}

// use uses a context as programs do.
func (k *liar) use(t *testing.T, c *Context) {
	_, _ = c.QueryDevice()
	_, _ = c.QueryPort(1)
	_, _ = c.GIDs(1)
	pd, err := c.AllocPD()
	if err != nil {
		return
	}
	mr, err := pd.RegMR(make([]byte, 64), abi.AccessLocalWrite)
	if err == nil {
		_ = mr.LKey()
	}
	cq, err := c.CreateCQ(8)
	if err != nil {
		return
	}
	wc := make([]WC, 8)
	qp, err := pd.CreateQP(QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: 16})
	if err == nil {
		for _, s := range []abi.QPState{abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
			_ = qp.Modify(&QPAttr{State: s}, abi.QPMaskState)
		}
		for range 4 {
			_, _ = qp.PostRecv([]RecvWR{{ID: 1, SGE: []SGE{{Addr: 1, Length: 2}}}})
			_, _ = qp.Post([]SendWR{{ID: 2, Opcode: abi.WRSend, Inline: []byte("inline")}})
			_, _ = cq.Poll(wc)
		}
		_, _ = qp.Query()
		_ = cq.Arm(true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = cq.Wait(ctx, wc)
		_ = qp.Modify(&QPAttr{State: abi.QPSErr}, abi.QPMaskState)
		_, _ = cq.Poll(wc)
		_ = qp.Destroy()
	}
	_ = cq.Destroy()
	_ = mr
}
