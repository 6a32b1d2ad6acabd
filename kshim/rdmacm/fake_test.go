package rdmacm

import (
	"sync"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/stretchr/testify/require"
)

// fake is the mini kernel with a device whose connection manager reaches itself
// without delay.
type fake struct {
	*kerneltest.Kernel
	t    testing.TB
	wire *kerneltest.CMWire
}

func newFake(t testing.TB) *fake {
	m, wire := emu.New(), kerneltest.NewCMWire()
	require.NoError(t, m.Register(wire.Device("rxe0", "10.0.0.1")))
	return &fake{kerneltest.NewKernel(m.Process("test")), t, wire}
}

// open opens a channel and closes it with the test; everything pinned must be
// given back by then.
func (k *fake) open() *Channel {
	k.t.Helper()
	c, err := Open(k)
	require.NoError(k.t, err)
	k.t.Cleanup(func() { require.NoError(k.t, c.Close()) })
	return c
}

// fail has commands answer err.
func (k *fake) fail(cmd abi.UCMCommand, err error) { k.Do(func() { k.Fail[cmd] = err }) }

// inject gives an event to the channel's reader.
func (c *Channel) inject(resp abi.UCMEventResp) {
	ev := make([]byte, abi.UCMEventRespSize)
	resp.Put(ev)
	c.kernel.(*fake).Do(func() { c.file.(*kerneltest.File).Give(ev) })
}

// inject gives an event of the id.
func (id *ID) inject(ev abi.UCMEvent, status int32) {
	id.ch.inject(abi.UCMEventResp{UID: id.uid, ID: id.num, Event: ev, Status: status})
}

// fakeQP is a queue pair that notes its calls.
type fakeQP struct {
	num  uint32
	mu   sync.Mutex
	seen []string // "INIT LOCAL_WRITE"
	last map[abi.QPState]verbs.QPAttr
	fail map[abi.QPState]error
}

func newFakeQP(num uint32) *fakeQP {
	return &fakeQP{num: num, last: map[abi.QPState]verbs.QPAttr{}, fail: map[abi.QPState]error{}}
}

func (q *fakeQP) Num() uint32 { return q.num }

func (q *fakeQP) Modify(attr *verbs.QPAttr, mask abi.QPAttrMask) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.fail[attr.State]; err != nil {
		return err
	}
	what := attr.State.String()
	if mask&abi.QPMaskAccessFlags != 0 {
		what += " " + attr.AccessFlags.String()
	}
	q.seen = append(q.seen, what)
	q.last[attr.State] = *attr
	return nil
}
