//go:build guest && linux

package guesttest

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
)

// device is the kernel's device, and self the address of its network interface.
const device = "rxe0"

var self = netip.MustParseAddr("10.77.0.1")

// patience bounds every wait: an emulated processor is slow.
const patience = time.Minute

func TestMain(m *testing.M) { leak.Main(m) }

// kernel is the real one.
func kernel(t testing.TB) kshim.Kernel {
	t.Helper()
	if _, err := os.Stat("/sys/class/infiniband/" + device); err != nil {
		t.Skipf("no device %s; go test ./tests/guest runs this in a guest", device)
	}
	k := must.Get(host.New(host.Options{}))(t)
	return k
}

// limited is a context that bounds a wait.
func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// side is one end: an event channel, a device.
type side struct {
	k   kshim.Kernel
	ch  *rdmacm.Channel
	dev *verbs.Context
	pd  *verbs.PD
}

// newSide opens everything; it is closed with the test, and nothing of it may
// be left in the kernel.
func newSide(t testing.TB) *side {
	t.Helper()
	s := &side{k: kernel(t)}
	s.ch = must.Get(rdmacm.Open(s.k))(t)
	t.Cleanup(func() { require.NoError(t, s.ch.Close()) })
	s.dev = must.Get(verbs.Open(s.k, device))(t)
	t.Cleanup(func() { require.NoError(t, s.dev.Close()) })
	s.pd = must.Get(s.dev.AllocPD())(t)
	return s
}

// conn is a queue pair with its completion queue.
type conn struct {
	*verbs.QP
	cq *verbs.CQ
}

func (s *side) newQP() (*conn, error) {
	cq, err := s.dev.CreateCQ(32)
	if err != nil {
		return nil, err
	}
	qp, err := s.pd.CreateQP(verbs.QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 8, MaxRecvWR: 8})
	if err != nil {
		_ = cq.Destroy()
		return nil, err
	}
	return &conn{qp, cq}, nil
}

func (c *conn) close() error {
	if err := c.QP.Destroy(); err != nil {
		return err
	}
	return c.cq.Destroy()
}

// common holds the parameters of these tests' connections.
var common = rdmacm.ConnParam{ResponderResources: 4, InitiatorDepth: 2, RetryCount: 7, RNRRetryCount: 7, MinRNRTimer: 12}

// cmIDs lists the kernel's ids of this process.
func cmIDs(t testing.TB) []netlinkmgr.CMID {
	t.Helper()
	m := must.Get(netlinkmgr.Open())(t)
	d := must.Get(m.Device(t.Context(), device))(t)
	list := must.Get(m.CMIDs(t.Context(), d))(t)
	return list
}
